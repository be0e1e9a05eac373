/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_saved.c - a prompt whose end is saved and resumed goes on as if it had
 * never been put away, and other bytes are refused.
 */
#include "alloc.h"
#include "units.h"

#include <stdlib.h>

enum { SAVED = 200, HEAD = 88 };

/* The places of the numbers. */
enum { DIGEST = 24, COUNT = 56, BLOCKS = 72, LOCALS = 76, MEDIA = 80 };

static const uint64_t pictures[4] = { 7, 5, 9, 2 };

/* The first n units of a prompt, closed; with media in blocks 1, 3 and 20. */
static struct kvr_prompt *
beginning(const struct hash_rule *rule, const struct kvr_scope *scope, size_t n,
    bool media)
{
	struct kvr_prompt *p = prompt_of(rule);

	begin(p, scope);
	if (media) {
		ck_assert_int_eq(kvr_prompt_media(p, 3, pictures + 2, 2),
		    KVR_OK);
		ck_assert_int_eq(kvr_prompt_media(p, 1, pictures, 2), KVR_OK);
		ck_assert_int_eq(kvr_prompt_media(p, 20, pictures, 1), KVR_OK);
	}
	give_units(p, 0, n);
	end(p, NULL);
	return p;
}

static size_t
save(const struct kvr_prompt *p, unsigned char *out)
{
	size_t n = kvr_prompt_saved_bytes(p);

	ck_assert_uint_gt(n, 0);
	ck_assert_uint_le(n, SAVED);
	ck_assert_int_eq(kvr_prompt_save(p, out, n), KVR_OK);
	return n;
}

/* The hashes that a resumed prompt still has equal those of the whole one. */
static void
ck_same_from(const struct kvr_prompt *p, const struct kvr_prompt *whole,
    size_t first)
{
	const struct kvr_prompt_info x = info_of(p), y = info_of(whole);
	uint64_t la, lb, sa, sb;

	ck_assert_mem_eq(&x, &y, sizeof(x));
	ck_assert_uint_eq(p->root, whole->root);
	ck_assert_uint_eq(p->tail_digest, whole->tail_digest);
	for (size_t i = 0; i < x.blocks; i++) {
		ck_assert_int_eq(kvr_prompt_hash(whole, i, &lb, &sb), KVR_OK);
		ck_assert_int_eq(kvr_prompt_hash(p, i, &la, &sa),
		    i < first ? KVR_ESTATE : KVR_OK);
		if (i >= first) {
			ck_assert_uint_eq(la, lb);
			ck_assert_uint_eq(sa, sb);
		}
	}
	if (first > 0)
		ck_assert_uint_eq(*prompt_sequence(p, (uint32_t)first - 1),
		    whole->sequence[first - 1]);
	ck_assert_int_eq(kvr_prompt_hash(p, x.blocks, &la, &sa), KVR_EINVAL);
}

/* Every cut, every length after it; in another prompt, used before. */
START_TEST(goes_on_anywhere)
{
	const struct hash_rule rule = rule_of(_i >> 1);
	const struct kvr_scope scope = scope_of(&rule, "a");
	const bool media = _i & 1;
	struct kvr_prompt *p = whole(&rule, NULL, UNITS), *from, *want;
	unsigned char saved[SAVED];

	for (size_t cut = 0; cut <= UNITS; cut++) {
		from = beginning(&rule, &scope, cut, media);
		size_t size = save(from, saved);

		for (size_t n = cut; n <= UNITS; n++) {
			want = beginning(&rule, &scope, n, media);
			ck_assert_int_eq(kvr_prompt_resume(p, saved, size),
			    KVR_OK);
			ck_assert_uint_eq(p->closed, 0);
			give_units(p, cut, (n - cut) / 2);
			give_units(p, cut + (n - cut) / 2, n - cut -
			    (n - cut) / 2);
			end(p, n % 2 == 0 && rule.kind == KVR_HASH_KEYED
			    ? &scope : NULL);
			ck_same_from(p, want, from->blocks);
			kvr_prompt_free(want);
		}
		kvr_prompt_free(from);
	}
	kvr_prompt_free(p);
}
END_TEST

/* It is saved again, after each few units, as an answer is that grows. */
START_TEST(again_and_again)
{
	const struct hash_rule rule = rule_of(_i >> 1);
	struct kvr_prompt *p, *want;
	unsigned char saved[SAVED], same[SAVED];
	size_t n, size, step = _i % 2 == 0 ? 1 : 5, first = 0;

	p = beginning(&rule, NULL, 0, true);
	for (n = 0; n < UNITS; n += step) {
		size = save(p, saved);
		first = p->blocks;
		ck_assert_int_eq(kvr_prompt_resume(p, saved, size), KVR_OK);
		end(p, NULL);
		ck_assert_uint_eq(save(p, same), size);
		ck_assert_mem_eq(saved, same, size);
		step = n + step > UNITS ? UNITS - n : step;
		give_units(p, n, step);
		end(p, NULL);
	}
	want = beginning(&rule, NULL, UNITS, true);
	ck_same_from(p, want, first);
	kvr_prompt_free(want);
	kvr_prompt_free(p);
}
END_TEST

/* The size depends on the incomplete part, not on the prompt's length. */
START_TEST(is_small)
{
	const struct hash_rule rule = plain_rule(0, KVR_UNIT_BYTES, 256, 0, 1);
	struct kvr_prompt *p = prompt_of(&rule);
	const size_t n = 2000000;
	char *text = calloc(n, 1);

	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, text, n), KVR_OK);
	ck_assert_uint_eq(kvr_prompt_saved_bytes(p), HEAD + n % 256);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, text, 512), KVR_OK);
	ck_assert_uint_eq(kvr_prompt_saved_bytes(p), HEAD);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, text, 255), KVR_OK);
	ck_assert_uint_eq(kvr_prompt_saved_bytes(p), HEAD + 255);
	free(text);
	kvr_prompt_free(p);
}
END_TEST

/* A prompt resumed far on takes no memory for the part before. */
START_TEST(resumes_in_little_memory)
{
	const struct hash_rule rule = plain_rule(0, KVR_UNIT_BYTES, 1, 0, 1);
	struct kvr_prompt *p = prompt_of(&rule), *q = prompt_of(&rule);
	unsigned char saved[SAVED];
	const size_t n = 100000;
	char *text = calloc(n, 1);

	ck_assert_ptr_nonnull(text);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, text, n), KVR_OK);
	ck_assert_int_eq(kvr_prompt_resume(q, saved, save(p, saved)), KVR_OK);
	ck_assert_int_eq(kvr_prompt_bytes(q, text, 50), KVR_OK);
	end(q, NULL);
	ck_assert_uint_eq(info_of(q).blocks, n + 50);
	ck_assert_uint_le(q->capacity, 100);
	/* and is then as good for a prompt of its own as before */
	ck_assert_int_eq(kvr_prompt_set_bytes(q, NULL, text, n), KVR_OK);
	ck_same(q, p);
	free(text);
	kvr_prompt_free(p);
	kvr_prompt_free(q);
}
END_TEST

/* Whole blocks as hashes come before it, after it, or both. */
START_TEST(blocks_by_hashes)
{
	const struct hash_rule rule = rule_of(_i);
	struct kvr_prompt *p = prompt_of(&rule), *want = prompt_of(&rule);
	static const uint64_t local[6] = { 1, 2, 3, 4, 5, 6 };
	unsigned char saved[SAVED];

	begin(want, NULL);
	ck_assert_int_eq(kvr_prompt_locals(want, local, 6), KVR_OK);
	end(want, NULL);
	begin(p, NULL);
	ck_assert_int_eq(kvr_prompt_locals(p, local, 3), KVR_OK);
	end(p, NULL);
	ck_assert_int_eq(kvr_prompt_resume(p, saved, save(p, saved)), KVR_OK);
	ck_assert_int_eq(try_units(p, 0, 1), rule.eagle ? KVR_ESTATE : KVR_OK);
	ck_assert_int_eq(kvr_prompt_resume(p, saved, HEAD), KVR_OK);
	ck_assert_int_eq(kvr_prompt_locals(p, local + 3, 3), KVR_OK);
	end(p, NULL);
	ck_same_from(p, want, 3);
	kvr_prompt_free(p);
	kvr_prompt_free(want);
}
END_TEST

/* -------------------------------------------------------------- refused --- */

START_TEST(bad_arguments)
{
	const struct hash_rule rule = rule_of(0);
	struct kvr_prompt *p = prompt_of(&rule);
	unsigned char saved[SAVED];
	size_t n;

	ck_assert_uint_eq(kvr_prompt_saved_bytes(NULL), 0);
	ck_assert_uint_eq(kvr_prompt_saved_bytes(p), 0);
	ck_assert_int_eq(kvr_prompt_save(p, saved, SAVED), KVR_ESTATE);
	begin(p, NULL);
	give_units(p, 0, 9);
	ck_assert_uint_eq(kvr_prompt_saved_bytes(p), 0);
	ck_assert_int_eq(kvr_prompt_save(p, saved, SAVED), KVR_ESTATE);
	end(p, NULL);
	n = kvr_prompt_saved_bytes(p);
	ck_assert_int_eq(kvr_prompt_save(NULL, saved, n), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_save(p, NULL, n), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_save(p, saved, n - 1), KVR_EINVAL);
	memset(saved, 0x5a, sizeof(saved));
	ck_assert_int_eq(kvr_prompt_save(p, saved, SAVED), KVR_OK);
	ck_assert_uint_eq(saved[n], 0x5a);
	ck_assert_int_eq(kvr_prompt_resume(NULL, saved, n), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_resume(p, NULL, n), KVR_EINVAL);
	kvr_prompt_free(p);
}
END_TEST

/* A refused one leaves the prompt as it was. */
static void
refused(struct kvr_prompt *p, const struct kvr_prompt *same, const void *saved,
    size_t n, int error)
{
	ck_assert_int_eq(kvr_prompt_resume(p, saved, n), error);
	ck_assert_uint_eq(p->closed, 1);
	ck_same(p, same);
}

START_TEST(damaged)
{
	const struct hash_rule rule = rule_of(_i);
	struct kvr_prompt *from = beginning(&rule, NULL, 18, true);
	struct kvr_prompt *p = whole(&rule, NULL, 21);
	struct kvr_prompt *same = whole(&rule, NULL, 21);
	unsigned char saved[SAVED], bad[SAVED + 1] = { 0 };
	const size_t n = save(from, saved);

	for (size_t i = 0; i < n; i++) {
		memcpy(bad, saved, n);
		bad[i] ^= (unsigned char)(1 << i % 8);
		refused(p, same, bad, n, i >= 8 && i < 12 ? KVR_EVERSION
		    : i >= 16 && i < 24 ? KVR_EMISMATCH : KVR_EFORMAT);
		refused(p, same, saved, i, KVR_EFORMAT);
	}
	memcpy(bad, saved, n);
	refused(p, same, bad, n + 1, KVR_EFORMAT);
	memset(bad, 0, sizeof(bad));
	refused(p, same, bad, sizeof(bad), KVR_EFORMAT);
	kvr_prompt_free(from);
	kvr_prompt_free(p);
	kvr_prompt_free(same);
}
END_TEST

/* Another block size, unit, kind or secret: a mix-up of regions. */
START_TEST(of_another_region)
{
	struct hash_rule rules[] = {
		plain_rule(KVR_HASH_KEYED, KVR_UNIT_TOKENS, BLOCK, 0, 11),
		plain_rule(KVR_HASH_KEYED, KVR_UNIT_TOKENS, BLOCK + 1, 0, 11),
		plain_rule(KVR_HASH_KEYED, KVR_UNIT_TOKENS, BLOCK, 1, 11),
		plain_rule(KVR_HASH_KEYED, KVR_UNIT_TOKENS, BLOCK, 0, 12),
		plain_rule(KVR_HASH_KEYED, KVR_UNIT_BYTES, BLOCK, 0, 11),
		plain_rule(KVR_HASH_DYNAMO, KVR_UNIT_TOKENS, BLOCK, 0, 11),
	};
	enum { RULES = sizeof(rules) / sizeof(rules[0]) };
	struct kvr_prompt *from, *p, *same;
	unsigned char saved[SAVED];

	for (size_t i = 0; i < RULES; i++) {
		from = whole(&rules[i], NULL, 18);
		size_t n = save(from, saved);

		for (size_t j = 0; j < RULES; j++) {
			p = whole(&rules[j], NULL, 21);
			same = whole(&rules[j], NULL, 21);
			if (j == i)
				ck_assert_int_eq(kvr_prompt_resume(p, saved,
				    n), KVR_OK);
			else
				refused(p, same, saved, n, KVR_EMISMATCH);
			kvr_prompt_free(p);
			kvr_prompt_free(same);
		}
		kvr_prompt_free(from);
	}
}
END_TEST

/* A word of the saved prompt is changed, and the digest with it. */
static void
forged(const struct hash_rule *rule, const unsigned char *saved, size_t n,
    size_t at, uint64_t word, size_t length)
{
	struct kvr_prompt *p = whole(rule, NULL, 21);
	struct kvr_prompt *same = whole(rule, NULL, 21);
	unsigned char bad[SAVED];
	uint64_t check;

	memcpy(bad, saved, n);
	memcpy(bad + at, &word, length);
	check = hash_tail(rule, bad + 8, n - 8);
	memcpy(bad, &check, sizeof(check));
	refused(p, same, bad, n, KVR_EFORMAT);
	kvr_prompt_free(p);
	kvr_prompt_free(same);
}

/*
 * With KVR_HASH_DYNAMO it takes no secret to make the digest. Numbers that
 * contradict each other are refused all the same.
 */
START_TEST(numbers_that_cannot_be)
{
	const struct hash_rule rule = rule_of(_i);
	const size_t unit = rule.unit == KVR_UNIT_TOKENS ? 4 : 1;
	struct kvr_prompt *from = beginning(&rule, NULL, 18, true);
	unsigned char saved[SAVED];
	const size_t n = save(from, saved);

	/* 18 units, 4 blocks, 2 units left; media of block 20 */
	ck_assert_uint_eq(n, HEAD + 16 + 2 * unit);
	for (uint64_t units = 0; units < 40; units++)
		if (units != 18)
			forged(&rule, saved, n, COUNT, units, 8);
	forged(&rule, saved, n, COUNT, UINT64_MAX, 8);
	for (uint64_t blocks = 0; blocks < 8; blocks++)
		if (blocks != 4)
			forged(&rule, saved, n, BLOCKS, blocks, 4);
	forged(&rule, saved, n, BLOCKS, UINT32_MAX, 4);
	forged(&rule, saved, n, LOCALS, 2, 4);
	if (rule.eagle)
		forged(&rule, saved, n, LOCALS, 1, 4);
	forged(&rule, saved, n, MEDIA, 0, 8);
	forged(&rule, saved, n, MEDIA, 2, 8);
	forged(&rule, saved, n, MEDIA, UINT64_MAX, 8);
	forged(&rule, saved, n, HEAD, 3, 8);
	forged(&rule, saved, n, HEAD, UINT32_MAX - 1, 8);
	forged(&rule, saved, n, HEAD, UINT64_MAX, 8);
	if (rule.kind == KVR_HASH_DYNAMO)
		forged(&rule, saved, n, DIGEST, 1, 8);
	kvr_prompt_free(from);
}
END_TEST

/* Resumes a saved prompt with these numbers, and nothing else. */
static int
made(const struct hash_rule *rule, uint32_t blocks, uint64_t units,
    uint64_t n_media, size_t n)
{
	struct kvr_prompt *p = beginning(rule, NULL, 16, false);
	unsigned char saved[SAVED] = { 0 };
	uint64_t check;
	int error;

	save(p, saved);
	memset(saved + HEAD, 0, sizeof(saved) - HEAD);
	memcpy(saved + COUNT, &units, sizeof(units));
	memcpy(saved + BLOCKS, &blocks, sizeof(blocks));
	memcpy(saved + MEDIA, &n_media, sizeof(n_media));
	check = hash_tail(rule, saved + 8, n - 8);
	memcpy(saved, &check, sizeof(check));
	error = kvr_prompt_resume(p, saved, n);
	kvr_prompt_free(p);
	return error;
}

/* Numbers that agree with the length, but with no prompt. */
START_TEST(tails_that_cannot_be)
{
	const struct hash_rule rule = rule_of(_i);
	const size_t unit = rule.unit == KVR_UNIT_TOKENS ? 4 : 1;
	const uint64_t last = (uint64_t)UINT32_MAX * BLOCK;

	for (size_t n = 0; n <= 20; n++)
		ck_assert_int_eq(made(&rule, 4, 16 + n, 0, HEAD + n * unit),
		    n >= rule.eagle && n < BLOCK + rule.eagle ? KVR_OK
		    : KVR_EFORMAT);
	ck_assert_int_eq(made(&rule, 0, 0, 0, HEAD), KVR_OK);
	ck_assert_int_eq(made(&rule, 4, 15, 0, HEAD), KVR_EFORMAT);
	ck_assert_int_eq(made(&rule, UINT32_MAX - 1, last - BLOCK + 1, 0, HEAD +
	    unit), KVR_OK);
	ck_assert_int_eq(made(&rule, UINT32_MAX, last + 1, 0, HEAD + unit),
	    KVR_EFORMAT);
	/* shorter than its tail: the rest for media would wrap */
	ck_assert_int_eq(made(&rule, 0, 4, UINT64_MAX / 16, HEAD),
	    KVR_EFORMAT);
}
END_TEST

/* The blocks before are chained under the scope that they had. */
START_TEST(keeps_its_scope)
{
	const struct hash_rule rule = plain_rule(KVR_HASH_KEYED,
	    KVR_UNIT_TOKENS, BLOCK, 0, 11);
	const struct kvr_scope a = scope_of(&rule, "a");
	const struct kvr_scope b = scope_of(&rule, "b");
	struct kvr_prompt *p = whole(&rule, &a, 18);
	unsigned char saved[SAVED];

	ck_assert_int_eq(kvr_prompt_resume(p, saved, save(p, saved)), KVR_OK);
	ck_assert_int_eq(kvr_prompt_end(p, &b), KVR_ESTATE);
	ck_assert_uint_eq(p->closed, 0);
	ck_assert_int_eq(kvr_prompt_end(p, &a), KVR_OK);
	kvr_prompt_free(p);
}
END_TEST

/* --------------------------------------------------------------- memory --- */

START_TEST(allocations_fail)
{
	const struct hash_rule rule = rule_of(_i);
	struct kvr_prompt *from = beginning(&rule, NULL, 18, true);
	struct kvr_prompt *want = beginning(&rule, NULL, UNITS, true);
	struct kvr_prompt *p = prompt_of(&rule);
	unsigned char saved[SAVED];
	const size_t n = save(from, saved);

	alloc_fail_from(1);
	ck_assert_uint_eq(save(from, saved), n);
	ck_assert_uint_eq(alloc_count(), 0);
	/* local, sequence, media */
	for (unsigned long at = 1; at <= 3; at++) {
		alloc_fail_at(at);
		ck_assert_int_eq(kvr_prompt_resume(p, saved, n), KVR_ENOMEM);
		ck_assert_uint_eq(p->begun, 0);
	}
	alloc_reset();
	ck_assert_int_eq(kvr_prompt_resume(p, saved, n), KVR_OK);
	give_units(p, 18, UNITS - 18);
	end(p, NULL);
	ck_same_from(p, want, 4);
	kvr_prompt_free(from);
	kvr_prompt_free(want);
	kvr_prompt_free(p);
}
END_TEST

/* Resuming an earlier state takes no memory. */
START_TEST(reuse_is_free)
{
	const struct hash_rule rule = rule_of(_i);
	struct kvr_prompt *p = beginning(&rule, NULL, UNITS, true);
	unsigned char saved[SAVED];
	const size_t n = save(p, saved);

	alloc_fail_from(1);
	for (size_t i = 0; i < 10; i++) {
		ck_assert_int_eq(kvr_prompt_resume(p, saved, n), KVR_OK);
		give_units(p, 0, UNITS - i);
		end(p, NULL);
	}
	ck_assert_uint_eq(alloc_count(), 0);
	alloc_reset();
	kvr_prompt_free(p);
}
END_TEST

Suite *suite_saved(void);

Suite *
suite_saved(void)
{
	Suite *s = suite_create("saved");
	TCase *t = units_case(s, "goes on");

	tcase_add_loop_test(t, goes_on_anywhere, 0, 16);
	tcase_add_loop_test(t, again_and_again, 0, 16);
	tcase_add_test(t, is_small);
	tcase_add_test(t, resumes_in_little_memory);
	tcase_add_loop_test(t, blocks_by_hashes, 0, 8);
	t = units_case(s, "refused");
	tcase_add_test(t, bad_arguments);
	tcase_add_loop_test(t, damaged, 0, 8);
	tcase_add_test(t, of_another_region);
	tcase_add_loop_test(t, numbers_that_cannot_be, 0, 8);
	tcase_add_loop_test(t, tails_that_cannot_be, 0, 8);
	tcase_add_test(t, keeps_its_scope);
	t = units_case(s, "memory");
	tcase_add_loop_test(t, allocations_fail, 0, 8);
	tcase_add_loop_test(t, reuse_is_free, 0, 8);
	return s;
}
