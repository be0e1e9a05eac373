/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cost_dynamo.c - the cost of a worker: the reference's formula and
 * figures, and the shorter sum for the usual case.
 */
#include "cost_dynamo.h"

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
	scene.set.count = 0; /* no overlap: no credit either */
	scene.set.base += SCENE_SLOTS;
	ck_assert(scene_cost(0) == 2 + 4);
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

/* -------------------------------------------------------- decode stage --- */

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

/* ------------------------------------------------------ the usual case --- */

#define USUAL(change, want) do { \
	scene_of(3); \
	change; \
	ck_assert_int_eq(scene_begin(), KVR_OK); \
	ck_assert_msg(scene.t.usual == (want), #change); \
} while (0)

/* The short sum is for questions without the rarer terms. */
START_TEST(usual_or_not)
{
	USUAL(scene.r.flags = 0, true);
	USUAL(scene.r.flags = KVR_NOWAIT, true);
	USUAL(scene.r.stage = KVR_STAGE_PREFILL, true);
	USUAL(scene.r.overlap_credit = 7, true);
	USUAL(scene.r.prefill_scale = 0, true);
	USUAL(scene.region.policy.request_weight = 3, true);
	USUAL(scene.r.flags = KVR_IGNORE_PREFILL, false);
	USUAL(scene.r.flags = KVR_IGNORE_REUSE, false);
	USUAL(scene.r.stage = KVR_STAGE_DECODE, false);
	USUAL(scene.r.n_preferences = 1, false);
	USUAL(scene.region.policy.overlap_decay = 0.5, false);
	USUAL(scene.p.rule.block_size = 20, false);
	USUAL(scene.slots[2].weight = 2, false);
}
END_TEST

static uint32_t
any(uint32_t n)
{
	return (uint32_t)(scene_random() % n);
}

/* Few different loads and overlaps, so that many costs are equal. */
static void
any_usual_scene(void)
{
	static const double numbers[] = { 0, 0.25, 1, 1, 3, 1e300 };
	uint32_t i, n, workers = 1 + any(150);

	scene_of(workers);
	scene.region.policy.overlap_credit = numbers[any(5)];
	scene.region.policy.prefill_scale = numbers[any(6)];
	scene.region.policy.request_weight = numbers[any(5)];
	scene_length(any(8), 1 + any(15));
	for (i = 0; i < workers; i++) {
		if (any(3) > 0)
			scene_load(i, any(2) * 16 * any(5), any(4), any(2));
		if (any(40) == 0)
			scene_load(i, UINT64_MAX, UINT64_MAX, UINT32_MAX);
		if (any(5) == 0)
			scene.slots[i].state = KVR_STATE_DOWN;
		n = any(10); /* longer than the prompt, too */
		if (any(2) == 0)
			scene_overlap(i, n, any(n + 1));
	}
}

/* The short sum skips most workers, and chooses as the long one does. */
START_TEST(usual_takes_the_same)
{
	uint64_t rounds = test_amount(20000), ties = 0, chosen = 0;
	struct choice shorter, longer;

	scene_seed(3);
	for (; rounds > 0; rounds--) {
		any_usual_scene();
		if (scene_begin() != KVR_OK || scene.t.eligible == 0)
			continue;
		ck_assert(scene.t.usual);
		ck_assert_int_eq(route_take(&scene.t, &shorter), KVR_OK);
		scene.t.usual = false;
		ck_assert_int_eq(route_take(&scene.t, &longer), KVR_OK);
		ck_assert_uint_eq(shorter.slot, longer.slot);
		ck_assert_uint_eq(shorter.reason, longer.reason);
		ck_assert(shorter.cost == longer.cost);
		ties += shorter.reason == KVR_REASON_TIE;
		chosen++;
	}
	ck_assert_uint_gt(ties, chosen / 20);
	ck_assert_uint_lt(ties, chosen);
}
END_TEST

/* -------------------------------------------------------------- damage --- */

static bool
is_cost(double cost)
{
	return cost >= 0 && cost <= COST_MAX;
}

/* A number that no call accepts, in the region's policy or of worker 0. */
static bool
damage_one(uint32_t place, double number)
{
	struct kvr_policy *y = &scene.region.policy;
	double *const policy[] = { &y->prefill_scale, &y->request_weight,
		&y->overlap_credit, &y->overlap_decay };
	double *const load[] = { &scene.prefill[0], &scene.load_blocks[0],
		&scene.slots[0].weight };

	scene_of(2);
	scene_length(10, 1);
	scene_load(0, 16, 2, 3);
	scene_load(1, 16, 2, 3);
	scene_overlap(1, 4, 0);
	if (place < 4)
		*policy[place] = number;
	ck_assert_int_eq(scene_begin(), KVR_OK);
	if (place >= 4 && place < 7)
		*load[place - 4] = number;
	if (place == 6)
		scene.t.weighted = true;
	return place < 7;
}

/* After any damage, the result is still a cost. */
START_TEST(damage_makes_no_other_cost)
{
	static const double numbers[] = { -1, -1e9, -1e300, -INFINITY,
		INFINITY, NAN, -1e-300 };
	uint32_t i, place, slot;
	uint64_t expected;
	double cost;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		for (place = 0; damage_one(place, numbers[i]); place++) {
			for (slot = 0; slot < 2; slot++) {
				cost = route_cost(&scene.t, slot, &expected);
				ck_assert_msg(is_cost(cost),
				    "%g at %u: worker %u costs %g",
				    numbers[i], place, slot, cost);
			}
			ck_assert(place < 2 || place == 3 || place == 6 ||
			    scene.t.usual);
			ck_assert_int_eq(route_take(&scene.t, &scene.c),
			    KVR_OK);
			ck_assert_msg(is_cost(scene.c.cost), "%g at %u: the "
			    "best costs %g", numbers[i], place, scene.c.cost);
			scene.t.usual = false;
			ck_assert_int_eq(route_take(&scene.t, &scene.c),
			    KVR_OK);
			ck_assert(is_cost(scene.c.cost));
		}
}
END_TEST

Suite *suite_cost_dynamo(void);

Suite *
suite_cost_dynamo(void)
{
	Suite *s = suite_create("cost_dynamo");
	TCase *t;

	t = tcase_create("cost");
	tcase_add_test(t, reference_cost);
	tcase_add_test(t, reference_cost_without_prefill);
	tcase_add_test(t, reference_three_workers);
	tcase_add_test(t, credit_stops_at_zero);
	tcase_add_test(t, partial_tail_counts_as_prefill);
	tcase_add_test(t, decay_by_hand);
	tcase_add_test(t, decay_rounds_the_prompt_up);
	tcase_add_test(t, weights_of_the_policy);
	tcase_add_test(t, block_sizes_that_are_no_power_of_two);
	tcase_add_test(t, worker_weight_divides);
	tcase_add_test(t, preference_and_weight);
	suite_add_tcase(s, t);
	t = tcase_create("decode");
	tcase_add_test(t, decode_goes_by_load);
	tcase_add_test(t, decode_with_a_credit_of_its_own);
	suite_add_tcase(s, t);
	t = tcase_create("usual");
	tcase_add_test(t, usual_or_not);
	tcase_add_test(t, usual_takes_the_same);
	suite_add_tcase(s, t);
	t = tcase_create("damage");
	tcase_add_test(t, damage_makes_no_other_cost);
	suite_add_tcase(s, t);
	return s;
}
