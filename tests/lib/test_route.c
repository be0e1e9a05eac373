/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_route.c - which worker is chosen: ties, sampling, the stages of a
 * request, numbers at their limits.
 */
#include "route.h"

#include "scene.h"
#include "test.h"

#include <math.h>

/* ---------------------------------------------------------------- ties --- */

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

/* ------------------------------------------------------------ sampling --- */

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

/* ------------------------------------------------- stages of a request --- */

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

/* ------------------------------------------------------------ extremes --- */

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
		scene.region.policy.cost = KVR_COST_BALANCED;
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
		scene.region.policy.cost = i < 4 ? KVR_COST_BALANCED : 1000;
		scene_begin();
		ck_assert_int_eq(route_take(&scene.t, &scene.c), KVR_OK);
		ck_assert_uint_lt(scene.c.slot, 2);
		ck_assert(scene.c.cost >= 0 && scene.c.cost <= 1e300);
	}
}
END_TEST

Suite *suite_route(void);

Suite *
suite_route(void)
{
	Suite *s = suite_create("route");
	TCase *t;

	t = tcase_create("ties");
	tcase_add_test(t, ties_go_to_the_least_loaded);
	tcase_add_test(t, ties_are_at_the_least);
	tcase_add_test(t, ties_spread);
	tcase_add_test(t, ties_do_not_know_the_order);
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
	t = tcase_create("stages");
	tcase_add_test(t, stages_take_their_roles);
	suite_add_tcase(s, t);
	t = tcase_create("extremes");
	tcase_add_test(t, extremes);
	tcase_add_test(t, damaged_slots);
	suite_add_tcase(s, t);
	return s;
}
