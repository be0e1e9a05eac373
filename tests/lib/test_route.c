/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_route.c - what a worker costs: the reference's formula and figures, the
 * stages of a request, numbers at their limits.
 */
#include "route.h"

#include "scene.h"
#include "test.h"

#include <math.h>

/* ------------------------------------------------ the reference's cost --- */

/* 64 tokens, 6 blocks cached, 16 tokens waiting, 2 + 3 blocks decoding. */
static void
reference_scene(void)
{
	scene_of(1);
	scene.region.policy.prefill_scale = 2;
	scene_load(0, 16, 2, 0);
	scene_overlap(0, 6, 1);
}

START_TEST(reference_cost)
{
	reference_scene();
	ck_assert_uint_eq(scene_chosen(), 0);
	ck_assert(scene.c.cost == 7.0);
	ck_assert(scene_cost(0) == 7.0);
	ck_assert_uint_eq(scene.c.blocks, 6);
	ck_assert_uint_eq(scene.c.eligible, 1);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_COST);
}
END_TEST

START_TEST(reference_cost_without_prefill)
{
	reference_scene();
	scene.r.flags = KVR_IGNORE_PREFILL;
	ck_assert_uint_eq(scene_chosen(), 0);
	ck_assert(scene.c.cost == 5.0);
}
END_TEST

START_TEST(reference_three_workers)
{
	scene_of(3);
	scene_length(10, 0);
	scene_load(0, 0, 10, 1);
	scene_load(1, 0, 5, 1);
	scene_load(2, 0, 9, 1);
	scene_overlap(0, 2, 10);
	scene_overlap(1, 5, 10);
	scene_overlap(2, 8, 10);
	ck_assert(scene_cost(0) == 18);
	ck_assert(scene_cost(1) == 10);
	ck_assert(scene_cost(2) == 11);
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert(scene.c.cost == 10);
	ck_assert_uint_eq(scene.c.eligible, 3);
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

/* Overlap beyond the worker's whole prefill gives no further credit. */
START_TEST(credit_stops_at_zero)
{
	scene_of(2);
	scene.region.policy.overlap_credit = 3;
	scene_overlap(0, 4, 0);
	scene_overlap(1, 2, 0);
	ck_assert(scene_cost(0) == 4);
	ck_assert(scene_cost(1) == 4);
	scene.slots[0].prefill = 160;
	/* a credit above 1 also pays for the prefill of others */
	ck_assert(scene_cost(0) == (14 - 12) + 4);
}
END_TEST

START_TEST(partial_tail_counts_as_prefill)
{
	scene_of(1);
	scene_length(4, 8);
	ck_assert(scene_cost(0) == 4.5 + 4);
	scene_length(0, 1);
	ck_assert(scene_cost(0) == 1.0 / 16);
}
END_TEST

/* 10 blocks; worker 1 has 20 blocks of prefill more than worker 0. */
START_TEST(decay_by_hand)
{
	scene_of(3);
	scene_length(10, 0);
	scene.region.policy.overlap_decay = 2;
	scene_load(0, 160, 0, 0);
	scene_load(1, 480, 0, 0);
	scene_load(2, 80, 0, 0);
	scene.slots[2].state = KVR_STATE_DOWN; /* its prefill is no measure */
	scene_overlap(0, 5, 0);
	scene_overlap(1, 10, 0);
	scene_overlap(2, 5, 0);
	ck_assert(scene_cost(0) == (20 - 5) + 10);
	/* 1 / (1 + 2 * (20 / 10)) = 0.2 of 10 blocks */
	ck_assert_double_eq_tol(scene_cost(1), (40 - 2) + 10, 1e-12);
	/* a worker that is not eligible has no more credit than the others */
	ck_assert(scene_cost(2) == (15 - 5) + 10);
	scene.slots[0].state = KVR_STATE_DOWN;
	ck_assert(scene_cost(1) == (40 - 10) + 10);
	scene.slots[0].state = KVR_STATE_UP;
	scene.r.flags = KVR_IGNORE_PREFILL;
	ck_assert(scene_cost(1) == 10);
}
END_TEST

START_TEST(decay_rounds_the_prompt_up)
{
	scene_of(2);
	scene_length(3, 1); /* 49 tokens are 4 blocks */
	scene.region.policy.overlap_decay = 1;
	scene.slots[1].prefill = 64;
	scene_overlap(1, 2, 0);
	/* 1 / (1 + 4 / 4) = half of 2 blocks */
	ck_assert(scene_cost(1) == (113.0 / 16 - 1) + 3);
}
END_TEST

START_TEST(weights_of_the_policy)
{
	scene_of(1);
	scene_load(0, 32, 7, 3);
	scene_overlap(0, 2, 1);
	ck_assert(scene_cost(0) == (6 - 2) + 10);
	scene.region.policy.request_weight = 1.5;
	ck_assert(scene_cost(0) == (6 - 2) + 10 + 4.5);
	scene.region.policy.prefill_scale = 0;
	ck_assert(scene_cost(0) == 10 + 4.5);
	scene.region.policy.prefill_scale = 3;
	scene.region.policy.overlap_credit = 0.5;
	ck_assert(scene_cost(0) == 3 * (6 - 1) + 10 + 4.5);
	scene.r.overlap_credit = 0;
	ck_assert(scene_cost(0) == 3 * 6 + 10 + 4.5);
	scene.r.prefill_scale = 0.25;
	ck_assert(scene_cost(0) == 1.5 + 10 + 4.5);
	scene.r.flags = KVR_IGNORE_REUSE;
	ck_assert(scene_cost(0) == 1.5 + 11 + 4.5);
}
END_TEST

START_TEST(block_sizes_that_are_no_power_of_two)
{
	uint32_t size;

	for (size = 1; size < 70; size++) {
		scene_of(1);
		scene.p.rule.block_size = size;
		scene_length(7, size / 2);
		scene_load(0, 1000003, 1, 0);
		ck_assert(scene_cost(0) ==
		    (1000003.0 + 7 * size + size / 2) / size + 8);
	}
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

START_TEST(worker_weight_divides)
{
	scene_of(2);
	scene_load(0, 0, 8, 0);
	scene_load(1, 0, 8, 0);
	scene.slots[0].weight = 2;
	ck_assert(scene_cost(0) == 8);
	ck_assert(scene_cost(1) == 16);
	ck_assert_uint_eq(scene_chosen(), 0);
	scene.slots[0].weight = 0.5;
	ck_assert(scene_cost(0) == 32);
	ck_assert_uint_eq(scene_chosen(), 1);
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

/* Preferred and weighted: the multiplier comes first, the division last. */
START_TEST(preference_and_weight)
{
	scene_of(1);
	scene.slots[0].taints = 8;
	scene.slots[0].weight = 3;
	scene.r.n_preferences = 1;
	scene.r.preferences[0].taints = 8;
	scene.r.preferences[0].weight = 2;
	ck_assert_double_eq_tol(scene_cost(0), 8 * exp(-tanh(2)) / 3, 1e-14);
}
END_TEST

/* ------------------------------------------------ stages of a request --- */

START_TEST(decode_goes_by_load)
{
	scene_of(2);
	scene.r.stage = KVR_STAGE_DECODE;
	scene.region.policy.request_weight = 2;
	scene_load(0, 99999, 5, 2);
	scene_load(1, 0, 4, 3);
	scene_overlap(1, 4, 4);
	/* no credit, no prefill, no shared blocks */
	ck_assert(scene_cost(0) == 5 + 4 + 4);
	ck_assert(scene_cost(1) == 4 + 4 + 6);
	ck_assert_uint_eq(scene_chosen(), 0);
}
END_TEST

START_TEST(decode_with_a_credit_of_its_own)
{
	scene_of(2);
	scene.r.stage = KVR_STAGE_DECODE;
	scene.r.overlap_credit = 0.5;
	scene.region.policy.request_weight = 2;
	scene.region.policy.overlap_decay = 9;
	scene_load(0, 99999, 5, 2);
	scene_load(1, 0, 4, 3);
	scene_overlap(0, 3, 1);
	scene_overlap(1, 4, 4);
	ck_assert(scene_cost(0) == (5 + 3 - 1.5) + 4);
	ck_assert(scene_cost(1) == (4 + 0 - 2) + 6);
	ck_assert_uint_eq(scene_chosen(), 1);
	scene.r.overlap_credit = 50;
	ck_assert(scene_cost(1) == 6);
	/* a credit of 0: as the plain formula, shared blocks still counted */
	scene.r.overlap_credit = 0;
	ck_assert(scene_cost(1) == 4 + 6);
}
END_TEST

START_TEST(stages_take_their_roles)
{
	static const uint32_t want[3][3] = {
		/* all: both, prefill, decode */
		{ KVR_ELIGIBLE, KVR_WRONG_ROLE, KVR_WRONG_ROLE },
		{ KVR_ELIGIBLE, KVR_ELIGIBLE, KVR_WRONG_ROLE },
		{ KVR_ELIGIBLE, KVR_WRONG_ROLE, KVR_ELIGIBLE }
	};
	uint32_t stage, role;

	scene_of(3);
	for (role = 0; role < 3; role++)
		scene.slots[role].role = (uint8_t)role;
	for (stage = 0; stage < 3; stage++) {
		scene.r.stage = stage;
		for (role = 0; role < 3; role++)
			ck_assert_uint_eq(scene_verdict(role),
			    want[stage][role]);
		ck_assert_int_eq(scene_choose(), KVR_OK);
		ck_assert_uint_eq(scene.c.eligible, stage == 0 ? 1 : 2);
	}
	scene.slots[0].state = KVR_STATE_DOWN;
	scene.r.stage = KVR_STAGE_ALL;
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
	scene.r.stage = KVR_STAGE_PREFILL;
	ck_assert_uint_eq(scene_chosen(), 1);
	scene.r.stage = KVR_STAGE_DECODE;
	ck_assert_uint_eq(scene_chosen(), 2);
}
END_TEST

/* ------------------------------------------------------------- extremes --- */

static void
check_extreme(void)
{
	uint32_t i;

	for (i = 0; i < 4; i++) {
		double c = scene_cost(i);

		ck_assert_msg(c >= 0 && c <= 1e300, "worker %u costs %g", i, c);
	}
	ck_assert_int_eq(scene_choose(), KVR_OK);
	ck_assert_uint_lt(scene.c.slot, 4);
	ck_assert(scene.c.cost >= 0 && scene.c.cost <= 1e300);
}

START_TEST(extremes)
{
	static const double numbers[] = { 0, 5e-324, 1, 1e300, 1.7e308 };
	uint32_t i;

	for (i = 0; i < 5 * 5 * 5 * 5; i++) {
		scene_of(4);
		scene.region.policy.overlap_credit = numbers[i % 5];
		scene.region.policy.overlap_decay = numbers[i / 5 % 5];
		scene.region.policy.prefill_scale = numbers[i / 25 % 5];
		scene.region.policy.request_weight = numbers[i / 25 % 5];
		scene.region.policy.temperature = numbers[i / 125];
		scene.r.seed = i;
		scene_load(1, UINT64_MAX, UINT64_MAX, UINT32_MAX);
		scene_load(2, INT64_MAX, 1, 1);
		scene.slots[1].weight = 1e-6;
		scene.slots[3].weight = 1e6;
		scene_overlap(1, 4, 4);
		scene_overlap(3, 4, 4);
		check_extreme();
		scene.region.policy.cost = KVR_COST_TWO_TIER;
		check_extreme();
	}
}
END_TEST

/* Values that no check accepts, but that a damaged region may hold. */
START_TEST(damaged_slots)
{
	uint32_t i;

	for (i = 0; i < 8; i++) {
		scene_of(4);
		scene.slots[0].weight = 0;
		scene.slots[1].weight = NAN;
		scene.slots[2].role = 255;
		scene.slots[3].state = 255;
		scene.region.policy.temperature = i % 2;
		scene.region.policy.overlap_decay = i / 2 % 2;
		ck_assert_uint_lt(scene_chosen(), 2);
		ck_assert(scene.c.cost == 1e300);
		scene.region.policy.cost = i < 4 ? KVR_COST_TWO_TIER : 1000;
		scene_begin();
		ck_assert_int_eq(route_take(&scene.t, &scene.c), KVR_OK);
		ck_assert_uint_lt(scene.c.slot, 2);
		ck_assert(scene.c.cost == 1e300);
	}
}
END_TEST

/* --------------------------------------------------------------- suite --- */

Suite *
suite_route(void)
{
	Suite *s = suite_create("route");
	TCase *t;

	t = tcase_create("cost");
	tcase_add_test(t, reference_cost);
	tcase_add_test(t, reference_cost_without_prefill);
	tcase_add_test(t, reference_three_workers);
	tcase_add_test(t, reference_potential_blocks);
	tcase_add_test(t, credit_stops_at_zero);
	tcase_add_test(t, partial_tail_counts_as_prefill);
	tcase_add_test(t, decay_by_hand);
	tcase_add_test(t, decay_rounds_the_prompt_up);
	tcase_add_test(t, weights_of_the_policy);
	tcase_add_test(t, block_sizes_that_are_no_power_of_two);
	tcase_add_test(t, byte_mode);
	tcase_add_test(t, token_counts_do_not_wrap);
	tcase_add_test(t, worker_weight_divides);
	tcase_add_test(t, preferences);
	tcase_add_test(t, preference_and_weight);
	suite_add_tcase(s, t);
	t = tcase_create("stages");
	tcase_add_test(t, decode_goes_by_load);
	tcase_add_test(t, decode_with_a_credit_of_its_own);
	tcase_add_test(t, stages_take_their_roles);
	suite_add_tcase(s, t);
	t = tcase_create("extremes");
	tcase_add_test(t, extremes);
	tcase_add_test(t, damaged_slots);
	suite_add_tcase(s, t);
	return s;
}
