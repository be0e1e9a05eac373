/* SPDX-License-Identifier: BSD-2-Clause */
/* test_prompt_limits.c - prompts: bad input, failing memory, introspection. */
#include "id.h"

#include "alloc.h"
#include "units.h"

#include <stdlib.h>

static const uint64_t media_of_1[] = { 7, 3, 9 };
static const uint64_t media_of_3[] = { 5 };

/* ------------------------------------------------------------ bad input --- */

START_TEST(not_begun)
{
	const struct hash_rule rule = rule_of(_i);
	struct kvr_prompt *p = prompt_of(&rule);
	const uint64_t word = 1;
	uint64_t local = 77, sequence = 77;

	ck_assert_int_eq(try_units(p, 0, 1), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_media(p, 0, &word, 1), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_locals(p, &word, 1), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_allow(p, &word, 1), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_end(p, NULL), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_hash(p, 0, &local, &sequence),
	    KVR_ESTATE);
	ck_assert_uint_eq(info_of(p).units, 0);
	begin(p, NULL);
	give_units(p, 0, UNITS);
	ck_assert_int_eq(kvr_prompt_hash(p, 0, &local, &sequence),
	    KVR_ESTATE);
	ck_assert_uint_eq(local, 77);
	end(p, NULL);
	ck_assert_int_eq(kvr_prompt_hash(p, 0, &local, &sequence), KVR_OK);
	ck_assert_uint_eq(local, p->local[0]);
	begin(p, NULL);
	ck_assert_int_eq(kvr_prompt_hash(p, 0, &local, &sequence),
	    KVR_ESTATE);
	kvr_prompt_free(p);
}
END_TEST

START_TEST(null_and_wrong_unit)
{
	const struct hash_rule rule = rule_of(0), in_bytes = rule_of(2);
	struct kvr_prompt *p = whole(&rule, NULL, UNITS), *b;
	struct kvr_prompt *same = whole(&rule, NULL, UNITS);
	struct kvr_prompt_info info = { .size = sizeof(info) };
	uint64_t w = 0;

	ck_assert_int_eq(prompt_new(NULL, &b), KVR_EINVAL);
	ck_assert_int_eq(prompt_new(&rule, NULL), KVR_EINVAL);
	kvr_prompt_free(NULL);
	ck_assert_int_eq(kvr_prompt_begin(NULL, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_tokens(NULL, tokens, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_bytes(NULL, bytes, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_media(NULL, 9, &w, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_locals(NULL, &w, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_end(NULL, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_allow(NULL, &w, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_tokens(NULL, NULL, tokens, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_bytes(NULL, NULL, bytes, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_info_get(NULL, &info), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_info_get(p, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_hash(NULL, 0, &w, &w), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_hash(p, 0, NULL, &w), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_hash(p, 0, &w, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_hash(p, p->blocks, &w, &w), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_hash(p, SIZE_MAX, &w, &w), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_tokens(p, NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_media(p, 9, NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_locals(p, NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_allow(p, NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_bytes(p, bytes, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, bytes, 1), KVR_EINVAL);
	ck_same(p, same);
	ck_assert_int_eq(kvr_prompt_tokens(p, NULL, 0), KVR_OK);
	ck_same(p, same);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, NULL, 0), KVR_OK);
	ck_assert_uint_eq(info_of(p).units, 0);
	ck_assert_uint_eq(p->closed, 1);
	b = prompt_of(&in_bytes);
	begin(b, NULL);
	ck_assert_int_eq(kvr_prompt_tokens(b, tokens, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_bytes(b, NULL, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_bytes(b, NULL, 0), KVR_OK);
	kvr_prompt_free(b);
	kvr_prompt_free(p);
	kvr_prompt_free(same);
}
END_TEST

/* Refused before anything is read: there is no memory behind these sizes. */
START_TEST(too_much)
{
	const struct hash_rule rule = rule_of(_i);
	struct kvr_prompt *p = whole(&rule, NULL, UNITS);
	struct kvr_prompt *same = whole(&rule, NULL, UNITS);
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 1,
	    SIZE_MAX / 2, SIZE_MAX / 4, SIZE_MAX / 8,
	    (size_t)(UINT32_MAX - 1) * BLOCK + BLOCK - UNITS + 24 };
	const uint64_t word = 1;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ck_assert_int_eq(try_units(p, 0, sizes[i]), KVR_EINVAL);
		ck_assert_int_eq(kvr_prompt_allow(p, &word, sizes[i] | 1u <<
		    31 | SIZE_MAX / 2), KVR_EINVAL);
		ck_assert_int_eq(kvr_prompt_media(p, 20, &word, sizes[i] |
		    SIZE_MAX / 2), KVR_EINVAL);
	}
	ck_assert_int_eq(kvr_prompt_media(p, UINT32_MAX - 1, &word, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_media(p, SIZE_MAX, &word, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_media(p, 9, &word, 1), KVR_OK);
	ck_assert_int_eq(kvr_prompt_media(p, 9, &word, SIZE_MAX), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_media(p, UINT32_MAX - 2, &word, 1),
	    KVR_OK);
	ck_same(p, same);
	if (!rule.eagle) {
		begin(p, NULL);
		ck_assert_int_eq(kvr_prompt_locals(p, &word, 1), KVR_OK);
		ck_assert_int_eq(kvr_prompt_locals(p, &word, SIZE_MAX),
		    KVR_EINVAL);
		ck_assert_int_eq(kvr_prompt_locals(p, &word,
		    UINT32_MAX - 1), KVR_EINVAL);
		ck_assert_uint_eq(p->blocks, 1);
	}
	kvr_prompt_free(p);
	kvr_prompt_free(same);
}
END_TEST

/* A block larger than the prompt is never complete; no block can be empty. */
START_TEST(absurd_block_size)
{
	struct hash_rule rule = plain_rule((uint32_t)_i, KVR_UNIT_BYTES, 0, 0,
	    1);
	struct kvr_prompt *p;

	ck_assert_int_eq(prompt_new(&rule, &p), KVR_EINVAL);
	rule.block_size = 1u << 20;
	p = prompt_of(&rule);
	ck_assert_int_eq(kvr_prompt_set_bytes(p, NULL, bytes, UNITS), KVR_OK);
	ck_assert_uint_eq(info_of(p).blocks, 0);
	ck_assert_uint_eq(info_of(p).tail, UNITS);
	ck_assert_int_eq(kvr_prompt_bytes(p, bytes, SIZE_MAX), KVR_EINVAL);
	kvr_prompt_free(p);
}
END_TEST

/* --------------------------------------------------------------- memory --- */

/* The state of a prompt that its user can read. */
struct seen {
	struct kvr_prompt_info info;
	uint32_t closed, begun;
	uint64_t root, hash[2][UNITS], allowed[4];
	size_t n_allowed;
};

static struct seen
look(const struct kvr_prompt *p)
{
	struct seen s;

	memset(&s, 0, sizeof(s));
	s.info = info_of(p);
	s.closed = p->closed;
	s.begun = p->begun;
	s.root = p->root;
	s.n_allowed = p->n_allowed;
	for (size_t i = 0; i < p->n_allowed; i++)
		s.allowed[i] = p->allowed[i];
	for (size_t i = 0; p->closed && i < p->blocks; i++)
		kvr_prompt_hash(p, i, &s.hash[0][i], &s.hash[1][i]);
	return s;
}

static int
step(struct kvr_prompt *p, unsigned i)
{
	static const uint64_t workers[400] = { 1, 5, 9 };
	static const uint64_t many[300] = { 1 };

	switch (i) {
	case 0:
		return kvr_prompt_begin(p, NULL);
	case 1:
		return kvr_prompt_media(p, 1, media_of_1, 3);
	case 2:
		return try_units(p, 0, 9);
	case 3:
		return kvr_prompt_allow(p, workers, 3);
	case 4:
		return kvr_prompt_media(p, 3, media_of_3, 1);
	case 5:
		return kvr_prompt_end(p, NULL);
	case 6:
		return try_units(p, 9, UNITS - 9);
	case 7:
		return kvr_prompt_end(p, NULL);
	case 8:
		return prompt_scratch(p, 1000) != NULL ? KVR_OK : KVR_ENOMEM;
	case 9:
		return prompt_scratch(p, 9000) != NULL ? KVR_OK : KVR_ENOMEM;
	case 10:
		return kvr_prompt_media(p, 30, many, 300);
	default:
		return 1;
	}
}

/*
 * Each allocation fails, once or from there on: the step that asked for it
 * returns an error and changes nothing, and succeeds when it is retried.
 */
START_TEST(allocations_fail)
{
	const struct hash_rule rule = rule_of(_i >> 1);
	struct kvr_prompt *p = prompt_of(&rule), *want = whole(&rule, NULL, 0);
	struct seen before, after;
	unsigned long n, failed = 0;
	int e;

	for (unsigned i = 0; step(want, i) <= 0; i++)
		continue;
	for (n = 1; n <= 12; n++) {
		kvr_prompt_free(p);
		p = prompt_of(&rule);
		(_i & 1 ? alloc_fail_from : alloc_fail_at)(n);
		for (unsigned i = 0; i <= 10; i++) {
			before = look(p);
			if ((e = step(p, i)) != KVR_OK) {
				ck_assert_int_eq(e, KVR_ENOMEM);
				after = look(p);
				ck_assert_mem_eq(&before, &after,
				    sizeof(before));
				failed++;
				alloc_reset();
				ck_assert_int_eq(step(p, i), KVR_OK);
			}
		}
		alloc_reset();
		ck_same(p, want);
	}
	/* local, sequence, allowed, media twice, scratch twice */
	ck_assert_uint_eq(failed, 7);
	kvr_prompt_free(p);
	kvr_prompt_free(want);
}
END_TEST

START_TEST(allocations_of_new)
{
	const struct hash_rule rule = rule_of(0);
	struct kvr_prompt *p = (struct kvr_prompt *)&p;

	for (unsigned long n = 1; n <= 2; n++) {
		alloc_fail_at(n);
		ck_assert_int_eq(prompt_new(&rule, &p), KVR_ENOMEM);
		ck_assert_ptr_eq(p, &p);
	}
	alloc_fail_at(3);
	ck_assert_int_eq(prompt_new(&rule, &p), KVR_OK);
	ck_assert_uint_eq(alloc_count(), 2);
	alloc_reset();
	kvr_prompt_free(p);
}
END_TEST

/* The old prompt stays until the new one cannot fail any more. */
START_TEST(allocations_of_set)
{
	const struct hash_rule rule = rule_of(_i);
	struct kvr_prompt *p = whole(&rule, NULL, UNITS);
	struct kvr_prompt *same = whole(&rule, NULL, UNITS);
	const size_t n = 4000;
	uint32_t *many = calloc(n, sizeof(*many));

	ck_assert_ptr_nonnull(many);
	for (unsigned long at = 1; at <= 2; at++) {
		alloc_fail_at(at);
		ck_assert_int_eq(rule.unit == KVR_UNIT_TOKENS
		    ? kvr_prompt_set_tokens(p, NULL, many, n)
		    : kvr_prompt_set_bytes(p, NULL, many, n), KVR_ENOMEM);
		ck_same(p, same);
	}
	alloc_reset();
	free(many);
	kvr_prompt_free(p);
	kvr_prompt_free(same);
}
END_TEST

/* Reusing a prompt for no more than before allocates nothing. */
START_TEST(reuse_is_free)
{
	const struct hash_rule rule = rule_of(_i);
	struct kvr_prompt *p = whole(&rule, NULL, UNITS);

	alloc_fail_from(1);
	for (size_t i = 0; i < 10; i++) {
		begin(p, NULL);
		give_units(p, 0, UNITS - i);
		end(p, NULL);
	}
	ck_assert_uint_eq(alloc_count(), 0);
	alloc_reset();
	kvr_prompt_free(p);
}
END_TEST

START_TEST(scratch_grows)
{
	const struct hash_rule rule = rule_of(0);
	struct kvr_prompt *p = prompt_of(&rule);
	unsigned char *s;
	size_t had = 0;

	ck_assert_ptr_nonnull(prompt_scratch(p, 0));
	for (size_t n = 1; n < 100000; n = n * 3 + 1) {
		s = prompt_scratch(p, n);
		ck_assert_ptr_nonnull(s);
		for (size_t i = 0; i < n; i++)
			ck_assert_uint_eq(s[i], i < had ? 7 : 0);
		memset(s, 7, n);
		had = n;
	}
	ck_assert_ptr_null(prompt_scratch(p, SIZE_MAX));
	ck_assert_uint_eq(*(unsigned char *)prompt_scratch(p, 1), 7);
	kvr_prompt_free(p);
}
END_TEST

/* -------------------------------------------------------- introspection --- */

START_TEST(info_says)
{
	const struct hash_rule rule = rule_of(_i);
	const uint32_t stride = BLOCK;
	struct kvr_prompt *p = prompt_of(&rule);
	struct kvr_prompt_info info = { .size = sizeof(info) };

	for (uint32_t n = 0; n <= UNITS; n++) {
		begin(p, NULL);
		give_units(p, 0, n);
		ck_assert_int_eq(kvr_prompt_info_get(p, &info), KVR_OK);
		ck_assert_uint_eq(info.size, sizeof(info));
		ck_assert_uint_eq(info.units, n);
		ck_assert_uint_eq(info.tokens,
		    rule.unit == KVR_UNIT_TOKENS ? n : (n + 3) / 4);
		ck_assert_uint_eq(info.blocks, plain_blocks(&rule, n));
		ck_assert_uint_eq(info.tail, n - info.blocks * stride);
	}
	/* A caller with an older struct. */
	info.size = offsetof(struct kvr_prompt_info, tokens);
	info.units = info.tokens = 99;
	ck_assert_int_eq(kvr_prompt_info_get(p, &info), KVR_OK);
	ck_assert_uint_eq(info.units, UNITS);
	ck_assert_uint_eq(info.tokens, 99);
	info.size = sizeof(size_t) - 1;
	info.units = 98;
	ck_assert_int_eq(kvr_prompt_info_get(p, &info), KVR_EINVAL);
	ck_assert_uint_eq(info.units, 98);
	kvr_prompt_free(p);
}
END_TEST

START_TEST(allowed_workers)
{
	const struct hash_rule rule = rule_of(0);
	static const uint64_t ids[] = { 9, 8, 5 };
	struct kvr_prompt *p = whole(&rule, NULL, UNITS);
	uint64_t mine[200];

	ck_assert_uint_eq(p->n_allowed, 0);
	ck_assert_int_eq(kvr_prompt_allow(p, ids, 3), KVR_OK);
	ck_assert_uint_eq(p->n_allowed, 3);
	ck_assert_mem_eq(p->allowed, ids, sizeof(ids));
	for (size_t i = 0; i < 200; i++)
		mine[i] = id_of_worker(1, (uint32_t)i);
	ck_assert_int_eq(kvr_prompt_allow(p, mine, 200), KVR_OK);
	memset(mine, 0, sizeof(mine));
	ck_assert_uint_eq(p->n_allowed, 200);
	ck_assert_uint_eq(p->allowed[199], id_of_worker(1, 199));
	ck_assert_int_eq(kvr_prompt_allow(p, ids + 1, 1), KVR_OK);
	ck_assert_uint_eq(p->n_allowed, 1);
	ck_assert_uint_eq(p->allowed[0], 8);
	/* More tokens do not forget it; begin does. */
	give_units(p, 0, 5);
	ck_assert_uint_eq(p->n_allowed, 1);
	ck_assert_int_eq(kvr_prompt_allow(p, NULL, 0), KVR_OK);
	ck_assert_uint_eq(p->n_allowed, 0);
	ck_assert_int_eq(kvr_prompt_allow(p, ids, 3), KVR_OK);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, 3), KVR_OK);
	ck_assert_uint_eq(p->n_allowed, 0);
	kvr_prompt_free(p);
}
END_TEST

Suite *suite_prompt_limits(void);

Suite *
suite_prompt_limits(void)
{
	Suite *s = suite_create("prompt_limits");
	TCase *t = units_case(s, "bad input");

	tcase_add_loop_test(t, not_begun, 0, 8);
	tcase_add_test(t, null_and_wrong_unit);
	tcase_add_loop_test(t, too_much, 0, 8);
	tcase_add_loop_test(t, absurd_block_size, 0, 2);
	t = units_case(s, "memory");
	tcase_add_loop_test(t, allocations_fail, 0, 16);
	tcase_add_test(t, allocations_of_new);
	tcase_add_loop_test(t, allocations_of_set, 0, 8);
	tcase_add_loop_test(t, reuse_is_free, 0, 8);
	tcase_add_test(t, scratch_grows);
	t = units_case(s, "looking");
	tcase_add_loop_test(t, info_says, 0, 8);
	tcase_add_test(t, allowed_workers);
	return s;
}
