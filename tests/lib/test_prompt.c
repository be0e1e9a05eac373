/* SPDX-License-Identifier: BSD-2-Clause */
/* test_prompt.c - the prompt object: pieces, media, scopes, locals. */
#include "units.h"

static const uint64_t media_of_1[] = { 7, 3, 9 };
static const uint64_t media_of_3[] = { 5 };

/* Compares with the hashes of all units in this scope, made one by one. */
static inline void
ck_plain(const struct kvr_prompt *p, const struct kvr_scope *scope, size_t n,
    const struct hash_media *media, size_t n_media)
{
	const bool in_tokens = p->rule.unit == KVR_UNIT_TOKENS;
	unsigned char all[4 * UNITS];
	const struct plain plain = { &p->rule, scope, all, n, media, n_media };
	uint64_t local[UNITS], sequence[UNITS];
	size_t i;

	for (i = 0; i < n; i++)
		plain_put(all + (in_tokens ? 4 * i : i),
		    in_tokens ? tokens[i] : bytes[i], in_tokens ? 4 : 1);
	ck_assert_uint_eq(p->blocks, plain_blocks(&p->rule, n));
	for (i = 0; i < p->blocks; i++)
		local[i] = plain_local(&plain, i);
	plain_chain(&p->rule, scope, local, p->blocks, sequence);
	for (i = 0; i < p->blocks; i++) {
		ck_assert_uint_eq(p->local[i], local[i]);
		ck_assert_uint_eq(p->sequence[i], sequence[i]);
	}
}

/* --------------------------------------------------------------- pieces --- */

/* Three pieces, at every pair of cuts; the scope comes first or last. */
START_TEST(every_cut)
{
	const struct hash_rule rule = rule_of(_i);
	const struct kvr_scope scope = scope_of(&rule, "a");
	struct kvr_prompt *p = prompt_of(&rule), *one;
	bool late;

	/* a checker gets only the longest ones */
	for (size_t n = UNITS + 1 - test_amount(UNITS + 1); n <= UNITS; n++) {
		one = whole(&rule, &scope, n);
		ck_plain(one, &scope, n, NULL, 0);
		for (size_t a = 0; a <= n; a++) {
			for (size_t b = a; b <= n; b++) {
				late = rule.kind == KVR_HASH_KEYED && b % 2;
				begin(p, late ? NULL : &scope);
				give_units(p, 0, a);
				give_units(p, a, b - a);
				give_units(p, b, n - b);
				end(p, late ? &scope : NULL);
				ck_same(p, one);
			}
		}
		kvr_prompt_free(one);
	}
	kvr_prompt_free(p);
}
END_TEST

START_TEST(unit_by_unit)
{
	const struct hash_rule rule = rule_of(_i);
	const struct kvr_scope scope = scope_of(&rule, "a");
	struct kvr_prompt *p = prompt_of(&rule), *one = whole(&rule, &scope,
	    UNITS);

	begin(p, &scope);
	for (size_t i = 0; i < UNITS; i++) {
		give_units(p, i, 1);
		give_units(p, i, 0);
	}
	end(p, NULL);
	ck_same(p, one);
	kvr_prompt_free(p);
	kvr_prompt_free(one);
}
END_TEST

/* Closed and reopened at every cut: finished blocks are not chained again. */
START_TEST(reopened)
{
	const struct hash_rule rule = rule_of(_i);
	const struct kvr_scope scope = scope_of(&rule, "a");
	struct kvr_prompt *p = prompt_of(&rule), *part;

	for (size_t step = 1; step <= UNITS; step++) {
		begin(p, &scope);
		for (size_t at = 0; at < UNITS; at += step) {
			give_units(p, at, step < UNITS - at ? step
			    : UNITS - at);
			ck_assert_uint_eq(p->closed, 0);
			end(p, NULL);
			ck_assert_uint_eq(p->closed, 1);
			part = whole(&rule, &scope, p->units);
			ck_same(p, part);
			kvr_prompt_free(part);
		}
	}
	kvr_prompt_free(p);
}
END_TEST

/*
 * The chain is made at once where the scope is known, at end where it may
 * still change, and never twice over the same blocks in the same scope.
 */
START_TEST(chained_once)
{
	const struct hash_rule rule = rule_of(_i);
	const struct kvr_scope scope = scope_of(&rule, "a");
	const bool keyed = rule.kind == KVR_HASH_KEYED;
	struct kvr_prompt *p = prompt_of(&rule);
	uint64_t last;

	begin(p, &scope);
	give_units(p, 0, UNITS - 9);
	ck_assert_uint_eq(p->chain.blocks, p->blocks);
	begin(p, NULL);
	give_units(p, 0, UNITS - 9);
	ck_assert_uint_eq(p->chain.blocks, keyed ? 0 : p->blocks);
	end(p, keyed ? &scope : NULL);
	ck_assert_uint_eq(p->chain.blocks, p->blocks);
	/* Damage shows only where it is read again. */
	last = p->sequence[p->blocks - 1];
	p->local[0]++;
	give_units(p, UNITS - 9, 9);
	ck_assert_uint_eq(p->chain.blocks, p->blocks);
	end(p, keyed ? &scope : NULL);
	ck_assert_uint_eq(p->sequence[plain_blocks(&rule, UNITS - 9) - 1],
	    last);
	kvr_prompt_free(p);
}
END_TEST

START_TEST(nothing_does_not_reopen)
{
	const struct hash_rule rule = rule_of(_i);
	struct kvr_prompt *p = whole(&rule, NULL, UNITS);

	give_units(p, 0, 0);
	ck_assert_uint_eq(p->closed, 1);
	ck_assert_int_eq(kvr_prompt_allow(p, NULL, 0), KVR_OK);
	ck_assert_uint_eq(p->closed, 1);
	kvr_prompt_free(p);
}
END_TEST

/* Media of blocks 1 and 3, given early or late, in any order, at every cut. */
START_TEST(media_at_every_cut)
{
	const struct hash_rule rule = rule_of(_i);
	const struct kvr_scope scope = scope_of(&rule, "a");
	static const struct hash_media all[] = { { 9, 1 }, { 5, 3 }, { 3, 1 },
	    { 7, 1 } };
	struct kvr_prompt *p = prompt_of(&rule);
	const size_t border = BLOCK + rule.eagle;

	for (size_t cut = 0; cut < 2 * BLOCK; cut++) {
		begin(p, &scope);
		if (cut % 3 == 0)
			ck_assert_int_eq(kvr_prompt_media(p, 3, media_of_3,
			    1), KVR_OK);
		ck_assert_int_eq(kvr_prompt_media(p, 1, media_of_1, 1),
		    KVR_OK);
		give_units(p, 0, cut);
		ck_assert_int_eq(kvr_prompt_media(p, 0, NULL, 0),
		    cut < border ? KVR_OK : KVR_ESTATE);
		ck_assert_int_eq(kvr_prompt_media(p, 1, media_of_1 + 1, 2),
		    KVR_OK);
		if (cut % 3 != 0)
			ck_assert_int_eq(kvr_prompt_media(p, 3, media_of_3,
			    1), KVR_OK);
		give_units(p, cut, UNITS - cut);
		end(p, NULL);
		ck_plain(p, &scope, UNITS, all, 4);
		ck_assert_int_eq(kvr_prompt_media(p, 3, media_of_3, 1),
		    KVR_ESTATE);
	}
	kvr_prompt_free(p);
}
END_TEST

/* Many, the last block first: sorted in place, duplicates kept. */
START_TEST(many_media)
{
	const struct hash_rule rule = rule_of(_i);
	struct kvr_scope none;
	struct hash_media all[500];
	struct kvr_prompt *p = prompt_of(&rule);
	uint64_t state = 2;

	kvr_scope_init(&none, sizeof(none));
	begin(p, NULL);
	for (size_t i = 0; i < 500; i++) {
		all[i].block = (uint32_t)(plain_random(&state) % 6);
		all[i].hash = plain_random(&state) % 64;
		ck_assert_int_eq(kvr_prompt_media(p, all[i].block,
		    &all[i].hash, 1), KVR_OK);
	}
	for (size_t i = 0; i < UNITS; i++)
		give_units(p, i, 1);
	end(p, NULL);
	ck_plain(p, &none, UNITS, all, 500);
	/* Forgotten by the next begin. */
	begin(p, NULL);
	give_units(p, 0, UNITS);
	end(p, NULL);
	ck_plain(p, &none, UNITS, NULL, 0);
	kvr_prompt_free(p);
}
END_TEST

/* --------------------------------------------------------------- scopes --- */

/* At begin, at end, or both: the last one given is the scope. */
START_TEST(scope_now_or_later)
{
	const struct hash_rule rule = rule_of(_i & ~1);
	const struct kvr_scope a = scope_of(&rule, "a"), b = scope_of(&rule,
	    "b");
	struct kvr_prompt *p = prompt_of(&rule);
	struct kvr_prompt *in_a = whole(&rule, &a, UNITS);
	struct kvr_prompt *in_b = whole(&rule, &b, UNITS);

	begin(p, NULL);
	give_units(p, 0, UNITS);
	end(p, &a);
	ck_same(p, in_a);
	end(p, &b);
	ck_same(p, in_b);
	end(p, NULL);
	ck_same(p, in_b);
	begin(p, &b);
	give_units(p, 0, 10);
	end(p, &a);
	give_units(p, 10, UNITS - 10);
	end(p, NULL);
	ck_same(p, in_a);
	begin(p, &b);
	give_units(p, 0, 10);
	end(p, NULL);
	give_units(p, 10, UNITS - 10);
	end(p, &a);
	ck_same(p, in_a);
	/* begin forgets the scope too */
	begin(p, NULL);
	give_units(p, 0, UNITS);
	end(p, &b);
	ck_same(p, in_b);
	kvr_prompt_free(p);
	kvr_prompt_free(in_a);
	kvr_prompt_free(in_b);
}
END_TEST

START_TEST(scopes_share_nothing)
{
	const struct hash_rule rule = rule_of(_i);
	const struct kvr_scope a = scope_of(&rule, "a"), b = scope_of(&rule,
	    "b");
	struct kvr_prompt *in_a = whole(&rule, &a, UNITS);
	struct kvr_prompt *in_b = whole(&rule, &b, UNITS);

	ck_assert_uint_ne(in_a->root, in_b->root);
	for (size_t i = 0; i < in_a->blocks; i++) {
		ck_assert_int_eq(in_a->local[i] == in_b->local[i],
		    rule.kind == KVR_HASH_KEYED);
		for (size_t j = 0; j < in_b->blocks; j++)
			ck_assert_uint_ne(in_a->sequence[i],
			    in_b->sequence[j]);
	}
	kvr_prompt_free(in_a);
	kvr_prompt_free(in_b);
}
END_TEST

START_TEST(dynamo_scope_comes_first)
{
	const struct hash_rule rule = plain_rule(KVR_HASH_DYNAMO,
	    KVR_UNIT_TOKENS, BLOCK, 0, 11);
	struct kvr_scope scope = scope_of(&rule, "a");
	struct kvr_prompt *p = whole(&rule, &scope, UNITS);
	struct kvr_prompt *same = whole(&rule, &scope, UNITS);

	ck_assert_int_eq(kvr_prompt_end(p, &scope), KVR_EINVAL);
	scope.digest[KVR_SCOPE_MODEL] = 1;
	ck_assert_int_eq(kvr_prompt_begin(p, &scope), KVR_EMISMATCH);
	scope.digest[KVR_SCOPE_MODEL] = 0;
	scope.digest[KVR_SCOPE_TENANT] = 1;
	ck_assert_int_eq(kvr_prompt_begin(p, &scope), KVR_EMISMATCH);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, &scope, tokens, 1),
	    KVR_EMISMATCH);
	ck_same(p, same);
	kvr_prompt_free(p);
	kvr_prompt_free(same);
}
END_TEST

/* A scope struct may be shorter or longer than ours. */
START_TEST(scopes_of_any_size)
{
	const struct hash_rule rule = rule_of(0);
	struct {
		struct kvr_scope scope;
		uint64_t more;
	} longer = { scope_of(&rule, "a"), 5 };
	struct kvr_scope shorter = longer.scope, tiny = longer.scope;
	struct kvr_prompt *p = prompt_of(&rule);
	struct kvr_prompt *in_a = whole(&rule, &longer.scope, UNITS);

	longer.scope.size = sizeof(longer);
	shorter.size = offsetof(struct kvr_scope, digest[2]);
	shorter.digest[3] = 77; /* beyond its size */
	tiny.size = sizeof(size_t) - 1;
	ck_assert_int_eq(kvr_prompt_set_tokens(p, &longer.scope, tokens,
	    UNITS), KVR_ENEWER);
	longer.more = 0;
	ck_assert_int_eq(kvr_prompt_set_tokens(p, &longer.scope, tokens,
	    UNITS), KVR_OK);
	ck_same(p, in_a);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, &shorter, tokens, UNITS),
	    KVR_OK);
	ck_same(p, in_a);
	ck_assert_int_eq(kvr_prompt_set_tokens(p, &tiny, tokens, 1),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_begin(p, &tiny), KVR_EINVAL);
	ck_assert_int_eq(kvr_prompt_end(p, &tiny), KVR_EINVAL);
	ck_same(p, in_a);
	kvr_prompt_free(p);
	kvr_prompt_free(in_a);
}
END_TEST

/* --------------------------------------------------------------- locals --- */

START_TEST(locals_are_blocks)
{
	const struct hash_rule rule = rule_of(_i & 3);
	const struct kvr_scope scope = scope_of(&rule, "a");
	struct kvr_prompt *one = whole(&rule, &scope, UNITS);
	struct kvr_prompt *p = prompt_of(&rule);

	for (size_t from = 0; from <= one->blocks; from++) {
		for (size_t to = from; to <= one->blocks; to++) {
			begin(p, &scope);
			give_units(p, 0, from * BLOCK);
			ck_assert_int_eq(kvr_prompt_locals(p, one->local +
			    from, to - from), KVR_OK);
			give_units(p, to * BLOCK, UNITS - to * BLOCK);
			end(p, NULL);
			ck_same(p, one);
		}
	}
	kvr_prompt_free(one);
	kvr_prompt_free(p);
}
END_TEST

START_TEST(locals_only_at_borders)
{
	const struct hash_rule rule = rule_of(_i);
	const uint64_t local[2] = { 1, 2 };
	struct kvr_prompt *p = prompt_of(&rule);
	bool border;

	ck_assert_int_eq(kvr_prompt_locals(p, local, 1), KVR_ESTATE);
	for (size_t n = 0; n < 3 * BLOCK; n++) {
		begin(p, NULL);
		give_units(p, 0, n);
		border = rule.eagle ? n == 0 : n % BLOCK == 0;
		ck_assert_int_eq(kvr_prompt_locals(p, local, 1),
		    border ? KVR_OK : KVR_ESTATE);
		ck_assert_int_eq(kvr_prompt_locals(p, local, 0),
		    border ? KVR_OK : KVR_ESTATE);
		ck_assert_uint_eq(info_of(p).tail, border ? rule.eagle
		    : rule.eagle ? (n - 1) % BLOCK + 1 : n % BLOCK);
	}
	/* Their media are part of them. */
	begin(p, NULL);
	ck_assert_int_eq(kvr_prompt_media(p, 1, media_of_1, 1), KVR_OK);
	ck_assert_int_eq(kvr_prompt_locals(p, local, 2), KVR_ESTATE);
	ck_assert_int_eq(kvr_prompt_locals(p, local, 1), KVR_OK);
	ck_assert_int_eq(kvr_prompt_locals(p, local, 1), KVR_ESTATE);
	kvr_prompt_free(p);
}
END_TEST

/* EAGLE windows overlap: all by hashes or none. */
START_TEST(eagle_locals)
{
	const struct hash_rule rule = rule_of(4 + (_i & 1));
	struct kvr_prompt *one = whole(&rule, NULL, UNITS);
	struct kvr_prompt *p = prompt_of(&rule);

	begin(p, NULL);
	ck_assert_int_eq(kvr_prompt_locals(p, one->local, 2), KVR_OK);
	ck_assert_int_eq(kvr_prompt_locals(p, one->local + 2,
	    one->blocks - 2), KVR_OK);
	ck_assert_int_eq(try_units(p, 0, 1), KVR_ESTATE);
	end(p, NULL);
	ck_assert_mem_eq(p->sequence, one->sequence,
	    one->blocks * sizeof(*p->sequence));
	ck_assert_uint_eq(p->units, p->blocks * BLOCK + 1);
	ck_assert_uint_eq(info_of(p).tail, 1);
	kvr_prompt_free(one);
	kvr_prompt_free(p);
}
END_TEST

Suite *suite_prompt(void);

Suite *
suite_prompt(void)
{
	Suite *s = suite_create("prompt");
	TCase *t = units_case(s, "pieces");

	tcase_add_loop_test(t, every_cut, 0, 8);
	tcase_add_loop_test(t, unit_by_unit, 0, 8);
	tcase_add_loop_test(t, reopened, 0, 8);
	tcase_add_loop_test(t, chained_once, 0, 8);
	tcase_add_loop_test(t, nothing_does_not_reopen, 0, 8);
	tcase_add_loop_test(t, media_at_every_cut, 0, 8);
	tcase_add_loop_test(t, many_media, 0, 8);
	t = units_case(s, "scopes");
	tcase_add_loop_test(t, scope_now_or_later, 0, 8);
	tcase_add_loop_test(t, scopes_share_nothing, 0, 8);
	tcase_add_test(t, dynamo_scope_comes_first);
	tcase_add_test(t, scopes_of_any_size);
	t = units_case(s, "locals");
	tcase_add_loop_test(t, locals_are_blocks, 0, 4);
	tcase_add_loop_test(t, locals_only_at_borders, 0, 8);
	tcase_add_loop_test(t, eagle_locals, 0, 2);
	return s;
}
