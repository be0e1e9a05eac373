/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_choice.c - choosing among the eligible: ties, sampling, two-tier, and
 * the exp and tanh that sampling and preferences need.
 */
#include "exp.h"

#include "scene.h"
#include "test.h"

#include <math.h>

/* ----------------------------------------------------------- exp, tanh --- */

START_TEST(exp_is_close)
{
	uint64_t i, n = test_amount(400000);
	double x, error;

	scene_seed(1);
	for (i = 0; i < n; i++) {
		x = (double)(scene_random() >> 11) * 0x1p-53;
		x = i % 3 == 0 ? x * 2 - 1 : i % 3 == 1 ? x * -40
		    : x * 1400 - 700;
		error = exp_of(x) / exp(x) - 1;
		if (!(fabs(error) < 0x1p-51))
			ck_abort_msg("x %a: %a", x, error);
	}
}
END_TEST

START_TEST(tanh_is_close)
{
	uint64_t i, n = test_amount(400000);
	double x, error;

	scene_seed(2);
	for (i = 0; i < n; i++) {
		x = (double)(scene_random() >> 11) * 0x1p-52 - 1;
		x = i % 3 == 0 ? x : i % 3 == 1 ? x * 1e-6 : x * 30;
		error = exp_tanh(x) - tanh(x);
		if (fabs(error) >= 0x1p-51 || exp_tanh(-x) != -exp_tanh(x))
			ck_abort_msg("x %a: %a", x, error);
	}
}
END_TEST

START_TEST(exp_at_the_ends)
{
	ck_assert(exp_of(0) == 1 && exp_of(-0.0) == 1);
	ck_assert(exp_of(-701) == 0 && exp_of(-INFINITY) == 0);
	ck_assert(exp_of(NAN) == 0);
	ck_assert(exp_of(-699) > 0 && exp_of(701) == exp_of(700));
	ck_assert(exp_of(INFINITY) == exp_of(700) && isfinite(exp_of(700)));
	ck_assert(exp_tanh(0) == 0);
	ck_assert(exp_tanh(INFINITY) == 1 && exp_tanh(-INFINITY) == -1);
	ck_assert(exp_tanh(1e300) == 1 && exp_tanh(-1e300) == -1);
}
END_TEST

/* The same bits on every machine. */
START_TEST(exp_is_the_same_everywhere)
{
	static const struct {
		double x, exp, tanh;
	} known[] = {
		{ -0x1p-1, 0x1.368b2fc6f960ap-1, -0x1.d9353d7568af3p-2 },
		{ -0x1p+0, 0x1.78b56362cef38p-2, -0x1.85efab514f394p-1 },
		{ 0x1p+0, 0x1.5bf0a8b14576ap+1, 0x1.85efab514f394p-1 },
		{ -0x1.4p+3, 0x1.7cd79b5647c9ap-15, -0x1.ffffffdc96f35p-1 },
		{ -0x1.23456789abcdep-3, 0x1.bc1f95b7e248ep-1,
		  -0x1.2152b0b66e9fep-3 },
		{ -0x1.edd2f1a9fbe77p+6, 0x1.da9fb9e4ee72p-179, -1 }
	};
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		ck_assert_msg(exp_of(known[i].x) == known[i].exp, "exp %a: %a",
		    known[i].x, exp_of(known[i].x));
		ck_assert_msg(exp_tanh(known[i].x) == known[i].tanh,
		    "tanh %a: %a", known[i].x, exp_tanh(known[i].x));
	}
}
END_TEST

/* ----------------------------------------------------------------- ties --- */

START_TEST(ties_go_to_the_least_loaded)
{
	scene_of(4);
	scene.region.policy.prefill_scale = 0;
	/* cost = blocks + 4 - active */
	scene_load(0, 10, 5, 3);
	scene_load(1, 90, 5, 2);
	scene_load(2, 20, 5, 2);
	scene_load(3, 20, 4, 2);
	scene_overlap(0, 4, 4);
	scene_overlap(1, 4, 4);
	scene_overlap(2, 4, 4);
	scene_overlap(3, 4, 3);
	ck_assert(scene_cost(0) == 5 && scene_cost(1) == 5);
	ck_assert(scene_cost(2) == 5 && scene_cost(3) == 5);
	ck_assert_uint_eq(scene_chosen(), 3);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_TIE);
	scene.slots[3].state = KVR_STATE_DOWN;
	ck_assert_uint_eq(scene_chosen(), 2);
	scene.slots[2].state = KVR_STATE_DOWN;
	ck_assert_uint_eq(scene_chosen(), 1);
	scene.slots[1].state = KVR_STATE_DOWN;
	ck_assert_uint_eq(scene_chosen(), 0);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_COST);
}
END_TEST

/* Equal costs above the least are no tie. */
START_TEST(ties_are_at_the_least)
{
	scene_of(3);
	scene_load(0, 0, 2, 0);
	scene_load(1, 0, 2, 0);
	scene_load(2, 0, 1, 0);
	ck_assert_uint_eq(scene_chosen(), 2);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_COST);
	scene_load(2, 0, 3, 0);
	ck_assert_uint_ne(scene_chosen(), 2);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_TIE);
}
END_TEST

/* Idle workers: prompts spread evenly; 8 of them, chi square of 7. */
START_TEST(ties_spread)
{
	uint32_t i, n = 16000, count[8] = { 0 };
	double square = 0;

	scene_of(8);
	for (i = 0; i < n; i++) {
		scene.sequence[3] = i;
		count[scene_chosen()]++;
	}
	for (i = 0; i < 8; i++)
		square += pow(count[i] - n / 8.0, 2) / (n / 8.0);
	ck_assert_msg(square < 29.9, "chi square %f", square);
}
END_TEST

/* Same name, same prompt, same winner, in whatever slot it is. */
START_TEST(ties_do_not_know_the_order)
{
	uint32_t round, i, j;
	uint64_t winner, was;

	scene_of(60);
	for (round = 0; round < 300; round++) {
		scene.sequence[3] = round / 2;
		winner = scene.identity[scene_chosen()];
		for (i = 59; i > 0; i--) {
			j = (uint32_t)(scene_random() % (i + 1));
			was = scene.identity[i];
			scene.identity[i] = scene.identity[j];
			scene.identity[j] = was;
		}
		ck_assert_uint_eq(scene.identity[scene_chosen()], winner);
	}
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

/* ------------------------------------------------------------- sampling --- */

/* Chi square of n draws, by seeds 0 to n - 1, against the softmax. */
static double
sample(uint32_t workers, double temperature, uint32_t n)
{
	double p[SCENE_SLOTS], sum = 0, square = 0, least, most;
	uint32_t count[SCENE_SLOTS] = { 0 }, i;

	least = INFINITY;
	most = 0;
	for (i = 0; i < workers; i++) {
		p[i] = scene_verdict(i) == KVR_ELIGIBLE;
		least = p[i] > 0 ? fmin(least, scene_cost(i)) : least;
		most = p[i] > 0 ? fmax(most, scene_cost(i)) : most;
	}
	for (i = 0; i < workers; i++) {
		if (most > least)
			p[i] *= exp(-(scene_cost(i) - least) /
			    ((most - least) * temperature));
		sum += p[i];
	}
	scene.r.temperature = temperature;
	for (i = 0; i < n; i++) {
		scene.r.seed = i;
		count[scene_chosen()]++;
		if (scene.c.reason != KVR_REASON_SAMPLED ||
		    scene.c.cost != scene_cost(scene.c.slot))
			ck_abort_msg("seed %u", i);
	}
	for (i = 0; i < workers; i++)
		if (p[i] > 0)
			square += pow(count[i] - n * p[i] / sum, 2) /
			    (n * p[i] / sum);
		else
			ck_assert_uint_eq(count[i], 0);
	return square;
}

/* Limits: one in ten thousand for 4, 7 degrees; the seeds are fixed. */
START_TEST(sample_frequencies)
{
	double square;
	uint32_t i;

	scene_of(5);
	for (i = 0; i < 5; i++)
		scene_load(i, 0, 3 * i * i, 0);
	square = sample(5, 0.5, 30000);
	ck_assert_msg(square < 23.5, "chi square %f", square);
	square = sample(5, 2, 30000);
	ck_assert_msg(square < 23.5, "chi square %f", square);
	/* the scale is the spread: the same at a thousandth of it */
	for (i = 0; i < 5; i++)
		scene_load(i, 0, 3000 * i * i, 0);
	square = sample(5, 0.5, 30000);
	ck_assert_msg(square < 23.5, "chi square %f", square);
}
END_TEST

/* More than fit in a word of a set, some not eligible: 134 degrees. */
START_TEST(sample_of_many)
{
	double square;
	uint32_t i;

	scene_of(150);
	for (i = 0; i < 150; i++) {
		scene_load(i, 0, i * 7 % 150, 0);
		if (i % 10 == 0)
			scene.slots[i].state = KVR_STATE_DOWN;
	}
	square = sample(150, 1, 60000);
	ck_assert_msg(square < 205, "chi square %f", square);
}
END_TEST

START_TEST(sample_of_equals)
{
	double square;

	scene_of(8);
	square = sample(8, 0.01, 30000);
	ck_assert_msg(square < 29.9, "chi square %f", square);
}
END_TEST

START_TEST(sample_over_prompts)
{
	uint32_t count[2] = { 0 }, i;

	scene_of(2);
	scene.r.temperature = 1;
	for (i = 0; i < 4000; i++) {
		scene.sequence[3] = i;
		count[scene_chosen()]++;
	}
	ck_assert_uint_gt(count[0], 1870);
	ck_assert_uint_gt(count[1], 1870);
}
END_TEST

START_TEST(sample_is_repeatable)
{
	uint32_t i, first;

	scene_of(50);
	for (i = 0; i < 50; i++)
		scene_load(i, 0, i, 0);
	scene.region.policy.temperature = 3;
	for (i = 0; i < 200; i++) {
		scene.r.seed = i * 977;
		first = scene_chosen();
		scene.set.count = 0;
		ck_assert_uint_eq(scene_chosen(), first);
	}
	/* the request's temperature overrides the policy's, also when 0 */
	scene.r.temperature = 0;
	ck_assert_uint_eq(scene_chosen(), 0);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_COST);
}
END_TEST

START_TEST(sample_cold)
{
	uint32_t i;

	scene_of(3);
	scene_load(0, 0, 2, 0);
	scene_load(1, 0, 1, 0);
	scene_load(2, 0, 2, 0);
	for (i = 0; i < 1000; i++) {
		scene.r.seed = i;
		scene.r.temperature = i % 2 == 0 ? 1e-3 : 5e-324;
		ck_assert_uint_eq(scene_chosen(), 1);
	}
}
END_TEST

START_TEST(sample_skips_the_ineligible)
{
	uint32_t i;

	scene_of(6);
	scene.slots[0].state = KVR_STATE_DOWN;
	scene.slots[5].state = KVR_STATE_DRAINING;
	scene.slots[3].role = KVR_ROLE_DECODE;
	scene.r.temperature = 1e9;
	for (i = 0; i < 2000; i++) {
		uint32_t slot;

		scene.r.seed = i;
		slot = scene_chosen();
		ck_assert(slot == 1 || slot == 2 || slot == 4);
	}
}
END_TEST

/* ------------------------------------------------------------- two-tier --- */

static uint32_t
two_tier(uint32_t d0, uint32_t l0, uint32_t d1, uint32_t l1)
{
	scene_of(2);
	scene.region.policy.cost = KVR_COST_TWO_TIER;
	scene_length(10, 0);
	scene_load(0, 0, 0, l0);
	scene_load(1, 0, 0, l1);
	if (d0 > 0)
		scene_overlap(0, d0, 0);
	if (d1 > 0)
		scene_overlap(1, d1, 0);
	return scene_chosen();
}

START_TEST(two_tier_vectors)
{
	ck_assert_uint_eq(two_tier(0, 0, 6, 4), 1);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_OVERLAP);
	ck_assert(scene.c.cost == 4);
	ck_assert_uint_eq(scene.c.blocks, 6);
	ck_assert_uint_eq(two_tier(0, 0, 5, 4), 0);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_LOAD);
	ck_assert_uint_eq(two_tier(0, 0, 10, 40), 0);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_LOAD);
	ck_assert_uint_eq(two_tier(0, 640, 10, 704), 1);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_OVERLAP);
	ck_assert_uint_eq(two_tier(0, 640, 10, 705), 0);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_LOAD);
}
END_TEST

START_TEST(two_tier_gap_is_strict)
{
	ck_assert_uint_eq(two_tier(0, 0, 10, 32), 1);
	ck_assert_uint_eq(two_tier(0, 0, 10, 33), 0);
}
END_TEST

START_TEST(two_tier_thresholds)
{
	ck_assert_uint_eq(two_tier(0, 0, 3, 4), 0);
	scene.region.policy.two_tier_overlap = 0.2;
	ck_assert_uint_eq(scene_chosen(), 1);
	scene.region.policy.two_tier_load_gap = 3;
	ck_assert_uint_eq(scene_chosen(), 0);
	scene.slots[0].requests = 100;
	scene.slots[1].requests = 150;
	ck_assert_uint_eq(scene_chosen(), 0);
	scene.region.policy.two_tier_load_ratio = 1.5;
	ck_assert_uint_eq(scene_chosen(), 1);
	scene.region.policy.two_tier_overlap = 1;
	ck_assert_uint_eq(scene_chosen(), 0);
}
END_TEST

/* A share of the prompt's tokens in blocks, rounded up: 10 of 21. */
START_TEST(two_tier_counts_the_tail)
{
	ck_assert_uint_eq(two_tier(0, 0, 6, 4), 1);
	scene_length(11, 15);
	ck_assert_uint_eq(scene_chosen(), 0);
	scene_length(11, 0);
	ck_assert_uint_eq(scene_chosen(), 1);
}
END_TEST

START_TEST(two_tier_least_of_the_longest)
{
	uint32_t i;

	scene_of(6);
	scene.region.policy.cost = KVR_COST_TWO_TIER;
	scene_length(10, 0);
	for (i = 0; i < 6; i++)
		scene_load(i, 0, 0, 5 + i);
	scene_overlap(1, 8, 0);
	scene_overlap(2, 9, 0);
	scene_overlap(4, 9, 0);
	scene_overlap(5, 9, 0);
	ck_assert_uint_eq(scene_chosen(), 2);
	scene.slots[4].weight = 2;
	ck_assert_uint_eq(scene_chosen(), 4);
	ck_assert(scene.c.cost == 4.5);
	/* equal load: prefill, then blocks */
	scene.slots[4].weight = 1;
	scene_load(4, 10, 0, 7);
	scene_load(2, 20, 0, 7);
	ck_assert_uint_eq(scene_chosen(), 4);
	scene_load(2, 10, 3, 7);
	ck_assert_uint_eq(scene_chosen(), 4);
	scene_load(4, 10, 4, 7);
	ck_assert_uint_eq(scene_chosen(), 2);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_OVERLAP);
	/* the longest overlap does not count where it is not eligible */
	scene_overlap(0, 10, 0);
	scene.slots[0].state = KVR_STATE_DOWN;
	ck_assert_uint_eq(scene_chosen(), 2);
	scene.slots[0].state = KVR_STATE_UP;
	ck_assert_uint_eq(scene_chosen(), 0);
}
END_TEST

START_TEST(two_tier_decode_goes_by_load)
{
	ck_assert_uint_eq(two_tier(0, 0, 10, 4), 1);
	scene.r.stage = KVR_STAGE_DECODE;
	ck_assert_uint_eq(scene_chosen(), 0);
	scene.r.overlap_credit = 1;
	ck_assert_uint_eq(scene_chosen(), 1);
	scene.r.stage = KVR_STAGE_ALL;
	scene.r.overlap_credit = 0;
	ck_assert_uint_eq(scene_chosen(), 0);
}
END_TEST

/* --------------------------------------------------------------- suite --- */

Suite *
suite_choice(void)
{
	Suite *s = suite_create("choice");
	TCase *t;

	t = tcase_create("exp");
	tcase_add_test(t, exp_is_close);
	tcase_add_test(t, tanh_is_close);
	tcase_add_test(t, exp_at_the_ends);
	tcase_add_test(t, exp_is_the_same_everywhere);
	suite_add_tcase(s, t);
	t = tcase_create("ties");
	tcase_add_test(t, ties_go_to_the_least_loaded);
	tcase_add_test(t, ties_are_at_the_least);
	tcase_add_test(t, ties_spread);
	tcase_add_test(t, ties_do_not_know_the_order);
	tcase_add_test(t, ties_know_the_whole_prompt);
	suite_add_tcase(s, t);
	t = tcase_create("sampling");
	tcase_add_test(t, sample_frequencies);
	tcase_add_test(t, sample_of_many);
	tcase_add_test(t, sample_of_equals);
	tcase_add_test(t, sample_over_prompts);
	tcase_add_test(t, sample_is_repeatable);
	tcase_add_test(t, sample_cold);
	tcase_add_test(t, sample_skips_the_ineligible);
	suite_add_tcase(s, t);
	t = tcase_create("two-tier");
	tcase_add_test(t, two_tier_vectors);
	tcase_add_test(t, two_tier_gap_is_strict);
	tcase_add_test(t, two_tier_thresholds);
	tcase_add_test(t, two_tier_counts_the_tail);
	tcase_add_test(t, two_tier_least_of_the_longest);
	tcase_add_test(t, two_tier_decode_goes_by_load);
	suite_add_tcase(s, t);
	return s;
}
