/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cost_two_tier.c - the longest overlap, unless loads differ much.
 */
#include "cost_two_tier.h"

#include "scene.h"
#include "test.h"

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

/* No load is below 0, whatever the weight in a damaged region. */
START_TEST(two_tier_damaged_weight)
{
	static const double numbers[] = { -1, -1e9, -1e-300, NAN, 0 };
	uint32_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		ck_assert_uint_eq(two_tier(0, 0, 3, 4), 0);
		scene_load(0, 0, 0, 2);
		scene.slots[0].weight = numbers[i];
		ck_assert_uint_eq(scene_chosen(), 1);
		ck_assert(scene_cost(0) >= 0 && scene_cost(0) <= COST_MAX);
		ck_assert(scene.c.cost == 4);
	}
}
END_TEST

Suite *suite_cost_two_tier(void);

Suite *
suite_cost_two_tier(void)
{
	Suite *s = suite_create("cost_two_tier");
	TCase *t;

	t = tcase_create("two-tier");
	tcase_add_test(t, two_tier_vectors);
	tcase_add_test(t, two_tier_gap_is_strict);
	tcase_add_test(t, two_tier_thresholds);
	tcase_add_test(t, two_tier_counts_the_tail);
	tcase_add_test(t, two_tier_least_of_the_longest);
	tcase_add_test(t, two_tier_decode_goes_by_load);
	tcase_add_test(t, two_tier_damaged_weight);
	suite_add_tcase(s, t);
	return s;
}
