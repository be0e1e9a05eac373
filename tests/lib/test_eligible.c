/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_eligible.c - which workers may be chosen, and the error when none may.
 */
#include "test.h"

#include "scene.h"

/* ---------------------------------------------------------- eligibility --- */

START_TEST(states)
{
	scene_of(3);
	scene.slots[1].state = KVR_STATE_DRAINING;
	scene.slots[2].state = KVR_STATE_DOWN;
	ck_assert_uint_eq(scene_verdict(0), KVR_ELIGIBLE);
	ck_assert_uint_eq(scene_verdict(1), KVR_NOT_UP);
	ck_assert_uint_eq(scene_verdict(2), KVR_NOT_UP);
	ck_assert_uint_eq(scene_chosen(), 0);
	ck_assert_uint_eq(scene.c.eligible, 1);
	scene.r.pinned = scene_id(1);
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_PINNED);
	scene.r.pinned = scene_id(2);
	ck_assert_int_eq(scene_choose(), KVR_ENOTALLOWED);
	ck_assert_uint_eq(scene_verdict(2), KVR_NOT_UP);
}
END_TEST

START_TEST(slots_not_in_use_are_nobody)
{
	scene_of(3);
	scene.generations[0] = 2;
	scene.generations[2] = 0;
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert_uint_eq(scene.c.eligible, 1);
	scene.generations[1] = 4;
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
	scene_of(0);
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
}
END_TEST

START_TEST(allowed)
{
	scene_of(5);
	scene_load(0, 0, 0, 0);
	scene.allowed[0] = scene_id(3);
	scene.allowed[1] = scene_id(1);
	scene.allowed[2] = scene_id(3);
	scene.allowed[3] =
	    scene_id(2) + id_of_worker(2, 0) - ID_WORKER; /* of the past */
	scene.allowed[4] = 0;
	scene.allowed[5] = UINT64_MAX;
	scene.p.n_allowed = 6;
	scene_load(3, 0, 1, 0);
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert_uint_eq(scene.c.eligible, 2);
	ck_assert_uint_eq(scene_verdict(2), KVR_NOT_ALLOWED);
	ck_assert_uint_eq(scene_verdict(0), KVR_NOT_ALLOWED);
	ck_assert_uint_eq(scene_verdict(3), KVR_ELIGIBLE);
	/* an empty set does not mean all workers */
	scene.allowed[0] = UINT64_MAX;
	scene.p.n_allowed = 1;
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
}
END_TEST

START_TEST(excluded)
{
	scene_of(3);
	scene.r.n_excluded = 4;
	scene.r.excluded[0] = scene_id(0);
	scene.r.excluded[1] = scene_id(2) + id_of_worker(2, 0) - ID_WORKER;
	scene.r.excluded[2] = UINT64_MAX;
	scene.r.excluded[3] = 0;
	scene_load(1, 0, 9, 0);
	ck_assert_uint_eq(scene_chosen(), 2);
	ck_assert_uint_eq(scene_verdict(0), KVR_NOT_ALLOWED);
	scene.r.excluded[1] = scene_id(2);
	ck_assert_uint_eq(scene_chosen(), 1);
	scene.r.excluded[3] = scene_id(1);
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
	/* excluded overrides allowed */
	scene.allowed[0] = scene_id(1);
	scene.p.n_allowed = 1;
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
}
END_TEST

START_TEST(required_taints)
{
	scene_of(3);
	scene.slots[0].taints = 5;
	scene.slots[1].taints = 7;
	scene.r.required_taints = 3;
	ck_assert_uint_eq(scene_verdict(0), KVR_LACKS_TAINT);
	ck_assert_uint_eq(scene_verdict(1), KVR_ELIGIBLE);
	ck_assert_uint_eq(scene_verdict(2), KVR_LACKS_TAINT);
	ck_assert_uint_eq(scene_chosen(), 1);
	scene.r.required_taints = UINT64_C(1) << 63;
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
}
END_TEST

START_TEST(overloaded)
{
	scene_of(3);
	scene.slots[0].over_prefill = 1;
	scene.slots[1].over_blocks = 1;
	scene_load(2, 0, 100, 0);
	ck_assert_uint_eq(scene_verdict(0), KVR_OVERLOADED);
	ck_assert_uint_eq(scene_verdict(1), KVR_OVERLOADED);
	ck_assert_uint_eq(scene_chosen(), 2);
	ck_assert_uint_eq(scene.c.eligible, 1);
	scene.slots[2].over_prefill = 1;
	ck_assert_int_eq(scene_choose(), KVR_EALLOVERLOADED);
	/* overloaded, but not eligible anyway: that is no overload */
	scene.r.required_taints = 1;
	ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
	scene.slots[1].taints = 1;
	ck_assert_int_eq(scene_choose(), KVR_EALLOVERLOADED);
}
END_TEST

/* Two ranks of one engine, the first of them overloaded, beside another. */
static void
scene_of_ranks(void)
{
	scene_of(3);
	memcpy(scene.names[1].text, scene.names[0].text,
	    sizeof(scene.names[0].text));
	scene.slots[1].rank = 1;
	scene.slots[0].over_prefill = 1;
	scene_load(2, 0, 100, 0);
	scene_load(1, 0, 50, 0);
}

/* Excluded only if both ranks are overloaded. */
START_TEST(overloaded_ranks)
{
	scene_of_ranks();
	ck_assert_uint_eq(scene_verdict(0), KVR_ELIGIBLE);
	ck_assert_uint_eq(scene_chosen(), 0);
	scene.slots[1].over_blocks = 1;
	ck_assert_uint_eq(scene_verdict(0), KVR_OVERLOADED);
	ck_assert_uint_eq(scene_verdict(1), KVR_OVERLOADED);
	ck_assert_uint_eq(scene_chosen(), 2);
}
END_TEST

/* A rank that takes no requests does not relieve the others. */
START_TEST(overloaded_beside_a_rank_that_is_down)
{
	uint8_t state;

	scene_of_ranks();
	ck_assert_uint_eq(scene_chosen(), 0);
	for (state = KVR_STATE_DRAINING; state <= KVR_STATE_DOWN; state++) {
		scene.slots[1].state = state;
		ck_assert_uint_eq(scene_verdict(0), KVR_OVERLOADED);
		ck_assert_uint_eq(scene_verdict(1), KVR_NOT_UP);
		ck_assert_uint_eq(scene_chosen(), 2);
	}
	/* but it may be pinned while it is draining */
	scene.slots[1].state = KVR_STATE_DRAINING;
	scene.r.pinned = scene_id(1);
	ck_assert_uint_eq(scene_chosen(), 1);
	scene.r.pinned = scene_id(0);
	ck_assert_int_eq(scene_choose(), KVR_EPINNEDOVERLOADED);
}
END_TEST

START_TEST(pinned)
{
	scene_of(3);
	scene_load(1, 16, 100, 50);
	scene_overlap(1, 3, 2);
	scene.r.pinned = scene_id(1);
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_PINNED);
	ck_assert_uint_eq(scene.c.eligible, 1);
	ck_assert_uint_eq(scene.c.blocks, 3);
	ck_assert(scene.c.cost == (5 - 3) + 102);
	ck_assert_uint_eq(scene_verdict(0), KVR_NOT_ALLOWED);
	ck_assert_uint_eq(scene_verdict(1), KVR_ELIGIBLE);
	/* temperature and policy change nothing */
	scene.r.temperature = 100;
	ck_assert_uint_eq(scene_chosen(), 1);
	ck_assert_uint_eq(scene.c.reason, KVR_REASON_PINNED);
	scene.region.policy.cost = KVR_COST_BALANCED;
	ck_assert_uint_eq(scene_chosen(), 1);
}
END_TEST

START_TEST(pinned_and_not_eligible)
{
	scene_of(3);
	scene.r.pinned = scene_id(1);
	scene.slots[1].over_prefill = 1;
	ck_assert_int_eq(scene_choose(), KVR_EPINNEDOVERLOADED);
	scene.slots[1].role = KVR_ROLE_DECODE;
	ck_assert_int_eq(scene_choose(), KVR_ENOTALLOWED);
	scene.slots[1].role = KVR_ROLE_BOTH;
	scene.slots[1].over_prefill = 0;
	scene.r.required_taints = 1;
	ck_assert_int_eq(scene_choose(), KVR_ENOTALLOWED);
	scene.r.required_taints = 0;
	scene.allowed[0] = scene_id(0);
	scene.p.n_allowed = 1;
	ck_assert_int_eq(scene_choose(), KVR_ENOTALLOWED);
	scene.p.n_allowed = 0;
	scene.r.n_excluded = 1;
	scene.r.excluded[0] = scene_id(1);
	ck_assert_int_eq(scene_choose(), KVR_ENOTALLOWED);
}
END_TEST

START_TEST(pinned_to_nobody)
{
	const uint64_t nobody[] = {
		4, UINT64_C(1) << 32, UINT64_MAX, UINT32_MAX,
		id_of_lease(scene_id(1) >> 2), /* of another kind */
		id_of_worker(1, 1), /* another generation of slot 1 */
		id_of_worker(2, 0), /* the end of slot 0 */
		id_of_worker(1, 149)
	};
	size_t i;

	scene_of(3);
	scene.generations[149] = 1; /* marked in use, but never given out */
	for (i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
		scene.r.pinned = nobody[i];
		ck_assert_int_eq(scene_choose(), KVR_EWORKER);
	}
	scene.generations[1] = 4;
	scene.r.pinned = id_of_worker(4, 1);
	ck_assert_int_eq(scene_choose(), KVR_EWORKER);
}
END_TEST

/* The prompt's own error precedes all others. */
START_TEST(empty_prompt)
{
	scene_of(1);
	scene_length(0, 0);
	ck_assert_int_eq(scene_choose(), KVR_EEMPTY);
	scene.r.pinned = 77;
	ck_assert_int_eq(scene_choose(), KVR_EEMPTY);
	scene_of(0);
	scene_length(0, 0);
	ck_assert_int_eq(scene_choose(), KVR_EEMPTY);
}
END_TEST

START_TEST(failure_writes_nothing)
{
	struct choice before;

	scene_of(1);
	scene.slots[0].over_prefill = 1;
	memset(&scene.c, 0x5a, sizeof(scene.c));
	before = scene.c;
	ck_assert_int_eq(scene_choose(), KVR_EALLOVERLOADED);
	ck_assert_mem_eq(&before, &scene.c, sizeof(before));
}
END_TEST

/* The words of the sets, and their ends. */
START_TEST(every_number_of_workers)
{
	uint32_t n, i;

	for (n = 1; n <= SCENE_SLOTS; n++) {
		scene_of(n);
		for (i = 0; i + 1 < n; i++)
			scene_load(i, 0, 1, 0);
		ck_assert_uint_eq(scene_chosen(), n - 1);
		ck_assert_uint_eq(scene.c.eligible, n);
		scene.allowed[0] = scene_id(n - 1);
		scene.allowed[1] = scene_id(n / 2);
		scene.p.n_allowed = 2;
		scene.r.n_excluded = 1;
		scene.r.excluded[0] = scene_id(n - 1);
		/* allowed are the last and n / 2; the last is excluded */
		if (n / 2 == n - 1)
			ck_assert_int_eq(scene_choose(), KVR_ENOWORKER);
		else
			ck_assert_uint_eq(scene_chosen(), n / 2);
	}
}
END_TEST

/* With a damaged slot count nothing beyond the slots is read. */
START_TEST(slots_used_is_bounded)
{
	scene_of(3);
	scene.region.slots_used = UINT32_MAX;
	ck_assert_int_eq(scene_choose(), KVR_OK);
	ck_assert_uint_eq(scene.c.eligible, 3);
	ck_assert_uint_eq(scene_verdict(UINT32_MAX), KVR_NOT_ALLOWED);
}
END_TEST

/* --------------------------------------------------------------- suite --- */

Suite *
suite_eligible(void)
{
	Suite *s = suite_create("eligible");
	TCase *t;

	t = tcase_create("eligible");
	tcase_add_test(t, states);
	tcase_add_test(t, slots_not_in_use_are_nobody);
	tcase_add_test(t, allowed);
	tcase_add_test(t, excluded);
	tcase_add_test(t, required_taints);
	tcase_add_test(t, overloaded);
	tcase_add_test(t, overloaded_ranks);
	tcase_add_test(t, overloaded_beside_a_rank_that_is_down);
	tcase_add_test(t, pinned);
	tcase_add_test(t, pinned_and_not_eligible);
	tcase_add_test(t, pinned_to_nobody);
	tcase_add_test(t, empty_prompt);
	tcase_add_test(t, failure_writes_nothing);
	tcase_add_test(t, every_number_of_workers);
	tcase_add_test(t, slots_used_is_bounded);
	suite_add_tcase(s, t);
	return s;
}
