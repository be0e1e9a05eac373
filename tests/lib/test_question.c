/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_question.c - the parts of a question that every cost reads: sizes, the
 * digest of the prompt, blocks it would add, preferences.
 */
#include "question.h"

#include "scene.h"
#include "test.h"

#include <math.h>

/* Sizes in tokens and blocks; a scene has 16 tokens a block. */
START_TEST(measures_the_prompt)
{
	static const struct {
		uint32_t unit, size, blocks, tail;
		uint64_t tokens, whole;
		double block, per_token, request_blocks;
	} cases[] = {
		{ KVR_UNIT_TOKENS, 16, 4, 0, 64, 4, 16, 1.0 / 16, 4 },
		{ KVR_UNIT_TOKENS, 16, 4, 1, 65, 4, 16, 1.0 / 16, 5 },
		{ KVR_UNIT_TOKENS, 16, 0, 15, 15, 0, 16, 1.0 / 16, 1 },
		{ KVR_UNIT_TOKENS, 1, 7, 0, 7, 7, 1, 1, 7 },
		{ KVR_UNIT_TOKENS, 20, 3, 19, 79, 3, 20, 0, 4 },
		{ KVR_UNIT_BYTES, 256, 3, 128, 224, 3, 64, 1.0 / 64, 4 },
		{ KVR_UNIT_BYTES, 10, 4, 0, 10, 4, 2.5, 0, 4 }
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		scene_of(1);
		scene.p.rule.unit = cases[i].unit;
		scene.p.rule.block_size = cases[i].size;
		scene_length(cases[i].blocks, cases[i].tail);
		ck_assert_int_eq(scene_begin(), KVR_OK);
		ck_assert_uint_eq(scene.t.tokens, cases[i].tokens);
		ck_assert_uint_eq(scene.t.whole_blocks, cases[i].whole);
		ck_assert(scene.t.block == cases[i].block);
		ck_assert(scene.t.per_token == cases[i].per_token);
		ck_assert(scene.t.request_blocks == cases[i].request_blocks);
	}
	/* an index of EAGLE windows holds one block less */
	scene_of(1);
	scene_length(4, 0);
	scene.p.blocks = 3;
	ck_assert_int_eq(scene_begin(), KVR_OK);
	ck_assert_uint_eq(scene.t.whole_blocks, 4);
}
END_TEST

static uint64_t
digest(void)
{
	ck_assert_int_eq(scene_begin(), KVR_OK);
	return scene.t.digest;
}

/* The last hash stands for all before it; the scope for a prompt without. */
START_TEST(digest_of_the_whole_prompt)
{
	uint64_t whole;

	scene_of(1);
	whole = digest();
	scene.p.root++;
	scene.sequence[2]++;
	ck_assert_uint_eq(digest(), whole);
	scene.sequence[3]++;
	ck_assert_uint_ne(digest(), whole);
	scene.sequence[3]--;
	scene.p.tail_digest++;
	ck_assert_uint_ne(digest(), whole);
	scene.p.tail_digest--;
	scene_length(4, 1);
	ck_assert_uint_ne(digest(), whole);
	scene_length(0, 5);
	whole = digest();
	scene.sequence[3]++;
	ck_assert_uint_eq(digest(), whole);
	scene.p.root++;
	ck_assert_uint_ne(digest(), whole);
}
END_TEST

/* It lies between e^-1 and e, and is exactly 1 where nothing applies. */
START_TEST(dislike_by_hand)
{
	struct kvr_request r;

	(void)kvr_request_init(&r, sizeof(r));
	r.preferences[0].taints = 1;
	r.preferences[0].weight = 0.75;
	r.preferences[1].taints = 2;
	r.preferences[1].weight = -0.75;
	ck_assert(question_dislike(&r, 3) == 1);
	r.n_preferences = 1;
	ck_assert_double_eq_tol(question_dislike(&r, 3), exp(-tanh(0.75)),
	    1e-15);
	ck_assert(question_dislike(&r, 2) == 1);
	r.n_preferences = 2;
	ck_assert_double_eq_tol(question_dislike(&r, 2), exp(tanh(0.75)),
	    1e-15);
	ck_assert(question_dislike(&r, 3) == 1);
	r.preferences[0].weight = r.preferences[1].weight = 1.7e308;
	ck_assert_double_eq_tol(question_dislike(&r, 3), exp(-1), 1e-15);
	r.preferences[0].weight = r.preferences[1].weight = -1.7e308;
	ck_assert_double_eq_tol(question_dislike(&r, 3), exp(1), 1e-14);
}
END_TEST

/* Active prompt 1 2 4 5, this one 1 2 3 5: 5 is not shared. */
START_TEST(reference_potential_blocks)
{
	struct kvr_request all;

	scene_of(1);
	scene_load(0, 0, 4, 1);
	scene_overlap(0, 2, 2);
	scene_begin();
	ck_assert_uint_eq(question_new_blocks(&scene.p, &scene.t.request,
	    found_of(&scene.set, 0)), 2);
	ck_assert(scene_cost(0) == (4 - 2) + 6);
	all = scene.t.request;
	all.flags = KVR_IGNORE_REUSE;
	ck_assert_uint_eq(question_new_blocks(&scene.p, &all,
	    found_of(&scene.set, 0)), 4);
	/* absurd numbers from outside must not wrap */
	scene.found[0].active_blocks = 5;
	ck_assert_uint_eq(question_new_blocks(&scene.p, &scene.t.request,
	    found_of(&scene.set, 0)), 0);
}
END_TEST

/* 4 bytes are a token: 256 bytes are 64 tokens, 10 are 2.5. */
START_TEST(byte_mode)
{
	scene_of(1);
	scene.p.rule.unit = KVR_UNIT_BYTES;
	scene.p.rule.block_size = 256;
	scene_length(3, 128);
	scene_load(0, 32, 0, 0);
	ck_assert(scene_cost(0) == 4 + 3);
	ck_assert_uint_eq(prompt_blocks_tokens(&scene.p, 3), 192);
	scene.p.rule.block_size = 10;
	scene_length(4, 0);
	scene_load(0, 5, 0, 0);
	ck_assert(scene_cost(0) == 6 + 4);
	ck_assert_uint_eq(prompt_blocks_tokens(&scene.p, 3), 8);
	ck_assert_uint_eq(prompt_blocks_tokens(&scene.p, 4), 10);
}
END_TEST

START_TEST(token_counts_do_not_wrap)
{
	scene_of(1);
	scene.p.rule.block_size = 65536;
	ck_assert_uint_eq(prompt_blocks_tokens(&scene.p, UINT32_MAX),
	    UINT64_C(65536) * UINT32_MAX);
	scene_length(1, 0);
	scene_overlap(0, UINT32_MAX, 0);
	ck_assert(scene_cost(0) == 1);
}
END_TEST

START_TEST(preferences)
{
	struct kvr_preference *f = scene.r.preferences;

	scene_of(4);
	scene.slots[1].taints = 1;
	scene.slots[2].taints = 2;
	scene.slots[3].taints = 3;
	ck_assert(scene_cost(3) == 8);
	scene.r.n_preferences = 2;
	f[0].taints = 1;
	f[0].weight = 0.75;
	f[1].taints = 2 | 4;
	f[1].weight = -0.5;
	ck_assert(scene_cost(0) == 8);
	ck_assert_double_eq_tol(scene_cost(1), 8 * exp(-tanh(0.75)), 1e-14);
	ck_assert_double_eq_tol(scene_cost(2), 8 * exp(tanh(0.5)), 1e-14);
	ck_assert_double_eq_tol(scene_cost(3), 8 * exp(-tanh(0.25)), 1e-14);
	ck_assert_uint_eq(scene_chosen(), 1);
	f[0].weight = -1e308;
	f[1].weight = -1e308;
	ck_assert_double_eq_tol(scene_cost(3), 8 * exp(1), 1e-13);
	ck_assert_uint_eq(scene_chosen(), 0);
	/* only those within the count */
	scene.r.n_preferences = 0;
	ck_assert(scene_cost(3) == 8);
}
END_TEST

/* The tail has no hash, but its length counts; so does the scope. */
START_TEST(ties_know_the_whole_prompt)
{
	uint64_t length_seen = 0, root_seen = 0, hash_seen = 0;
	uint32_t i;

	scene_of(60);
	for (i = 0; i < 15; i++) {
		scene_length(4, i);
		length_seen |= UINT64_C(1) << scene_chosen();
	}
	scene_length(4, 0);
	for (i = 0; i < 15; i++) {
		scene.sequence[3] = i;
		hash_seen |= UINT64_C(1) << scene_chosen();
	}
	scene_length(0, 5);
	for (i = 0; i < 15; i++) {
		scene.p.root = i;
		root_seen |= UINT64_C(1) << scene_chosen();
	}
	ck_assert_int_gt(__builtin_popcountll(length_seen), 8);
	ck_assert_int_gt(__builtin_popcountll(hash_seen), 8);
	ck_assert_int_gt(__builtin_popcountll(root_seen), 8);
}
END_TEST

Suite *suite_question(void);

Suite *
suite_question(void)
{
	Suite *s = suite_create("question");
	TCase *t;

	t = tcase_create("measure");
	tcase_add_test(t, measures_the_prompt);
	tcase_add_test(t, digest_of_the_whole_prompt);
	tcase_add_test(t, ties_know_the_whole_prompt);
	tcase_add_test(t, byte_mode);
	tcase_add_test(t, token_counts_do_not_wrap);
	suite_add_tcase(s, t);
	t = tcase_create("cost");
	tcase_add_test(t, reference_potential_blocks);
	tcase_add_test(t, dislike_by_hand);
	tcase_add_test(t, preferences);
	suite_add_tcase(s, t);
	return s;
}
