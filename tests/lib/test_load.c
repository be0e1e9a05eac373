/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_load.c - loads, by leases and from outside, and the overload latch.
 */
#include "id.h"
#include "inner.h"

static int
try_load(uint32_t worker, uint32_t source, uint64_t prefill, uint64_t blocks,
    uint64_t requests, uint64_t used)
{
	struct kvr_load load = { .size = sizeof(load) };

	load.prefill_tokens = prefill;
	load.active_blocks = blocks;
	load.requests = requests;
	load.used_blocks = used;
	return kvr_worker_set_load(k, id[worker], source, &load);
}

static void
set_load(uint32_t worker, uint64_t prefill, uint64_t blocks,
    uint64_t requests, uint64_t used)
{
	ck_assert_int_eq(try_load(worker, 0, prefill, blocks, requests, used),
	    KVR_OK);
	region_sound();
}

/* External loads replace each other, and add to those of leases. */
START_TEST(loads_from_outside)
{
	uint64_t lease = reserve(0, "abcd", 1);

	ck_load(0, 4, 4, 0, 1);
	set_load(0, 100, 200, 300, 0);
	ck_load(0, 104, 204, 0, 301);
	set_load(0, 10, 0, 3, 0);
	ck_load(0, 14, 4, 0, 4);
	ck_assert_int_eq(kvr_lease_output(k, lease, 5, 1, 0), KVR_OK);
	ck_load(0, 14, 4, 5, 4);
	finish(lease, 2);
	ck_load(0, 10, 0, 0, 3);
	set_load(0, 0, 0, 0, 0);
	ck_load(0, 0, 0, 0, 0);
	ck_load(1, 0, 0, 0, 0);
}
END_TEST

/* Each source replaces its own load; the loads of all add up. */
START_TEST(loads_by_source)
{
	uint64_t lease = reserve(0, "abcd", 1);
	struct kvr_load load = { .size = sizeof(load) };

	ck_assert_int_eq(try_load(0, 0, 10, 20, 3, 7), KVR_OK);
	ck_assert_int_eq(try_load(0, 3, 100, 200, 30, 5), KVR_OK);
	ck_load(0, 4 + 110, 4 + 220, 0, 1 + 33);
	ck_assert_uint_eq(slot_at(k, id_slot(id[0]))->load_used, 7);
	ck_assert_int_eq(try_load(0, 0, 1, 2, 1, 0), KVR_OK);
	ck_load(0, 4 + 101, 4 + 202, 0, 1 + 31);
	ck_assert_uint_eq(slot_at(k, id_slot(id[0]))->load_used, 5);
	ck_load(1, 0, 0, 0, 0);
	ck_assert_int_eq(kvr_worker_get_load(k, id[0], 3, &load), KVR_OK);
	ck_assert_uint_eq(load.prefill_tokens, 100);
	ck_assert_uint_eq(load.active_blocks, 200);
	ck_assert_uint_eq(load.requests, 30);
	ck_assert_uint_eq(load.used_blocks, 5);
	ck_assert_int_eq(kvr_worker_get_load(k, id[0], 1, &load), KVR_OK);
	ck_assert_uint_eq(load.requests, 0);
	ck_assert_int_eq(kvr_worker_get_load(k, 99, 0, &load), KVR_EWORKER);
	ck_assert_int_eq(try_load(0, KVR_LOAD_SOURCES, 0, 0, 0, 0),
	    KVR_EINVAL);
	finish(lease, 2);
	ck_load(0, 101, 202, 0, 31);
	/* the engine restarted: its earlier load is no longer true */
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_load(0, 0, 0, 0, 0);
	ck_assert_int_eq(try_load(0, 1, 5, 6, 7, 8), KVR_OK);
	ck_load(0, 5, 6, 0, 7);
	region_sound();
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_load(0, 0, 0, 0, 0);
	region_sound();
}
END_TEST

/* A name that is given again begins without the loads of the one before. */
START_TEST(loads_leave_with_their_worker)
{
	ck_assert_int_eq(try_load(0, 2, 5, 6, 7, 8), KVR_OK);
	remove_worker(id[0]);
	ck_assert_int_eq(kvr_worker_add(k, "again", 5, NULL, &id[0]), KVR_OK);
	ck_load(0, 0, 0, 0, 0);
	region_sound();
}
END_TEST

/* All sources may set the largest load at once: no sum runs over. */
START_TEST(extreme_loads)
{
	const uint64_t tokens = INT64_MAX / 2 / KVR_LOAD_SOURCES;
	const uint64_t requests = INT32_MAX / KVR_LOAD_SOURCES;
	uint32_t i;

	for (i = 0; i < KVR_LOAD_SOURCES; i++)
		ck_assert_int_eq(try_load(0, i, tokens, tokens, requests,
		    UINT64_MAX), KVR_OK);
	ck_load(0, tokens * KVR_LOAD_SOURCES, tokens * KVR_LOAD_SOURCES, 0,
	    requests * KVR_LOAD_SOURCES);
	ck_assert_int_eq(try_load(0, 0, tokens + 1, 0, 0, 0), KVR_EINVAL);
	ck_assert_int_eq(try_load(0, 0, 0, tokens + 1, 0, 0), KVR_EINVAL);
	ck_assert_int_eq(try_load(0, 0, 0, 0, requests + 1, 0), KVR_EINVAL);
	region_sound();
}
END_TEST

/* ------------------------------------------------------------ overload --- */

static void
thresholds(double tokens, double of_batch, double of_blocks)
{
	struct kvr_policy policy = { .size = sizeof(policy) };

	ck_assert_int_eq(kvr_policy_get(k, &policy), KVR_OK);
	policy.overload_prefill_tokens = tokens;
	policy.overload_prefill_fraction = of_batch;
	policy.overload_blocks_fraction = of_blocks;
	ck_assert_int_eq(kvr_policy_set(k, &policy), KVR_OK);
}

static void
sized(uint32_t worker, uint64_t capacity, uint64_t max_batched)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	ck_assert_int_eq(kvr_worker_get(k, id[worker], &facts), KVR_OK);
	facts.capacity_tokens = capacity;
	facts.max_batched_tokens = max_batched;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &facts), KVR_OK);
}

START_TEST(busy_above_tokens)
{
	set_load(0, 1000, 0, 0, 0);
	ck_assert_uint_eq(
	    worker_stats(0).overloaded, 0); /* no threshold, no limit */
	thresholds(1000, -1, -1);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
	thresholds(999.5, -1, -1); /* a new policy counts at once */
	ck_assert_uint_eq(worker_stats(0).overloaded, 1);
	set_load(0, 999, 0, 0, 0);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
	thresholds(0, -1, -1);
	set_load(0, 0, 0, 0, 0);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
	set_load(0, 1, 0, 0, 0);
	ck_assert_uint_eq(worker_stats(0).overloaded, 1);
	thresholds(-1, -1, -1);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
}
END_TEST

/* A fraction of the batch, rounded down. */
START_TEST(busy_above_a_fraction)
{
	thresholds(-1, 0.5, -1);
	set_load(0, 1000000, 0, 0, 0);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0); /* batch not known */
	sized(0, 0, 101);
	ck_assert_uint_eq(worker_stats(0).overloaded, 1);
	set_load(0, 50, 0, 0, 0);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
	set_load(0, 51, 0, 0, 0);
	ck_assert_uint_eq(worker_stats(0).overloaded, 1);
	thresholds(-1, 1e300, -1);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
	thresholds(-1, 0, -1);
	ck_assert_uint_eq(worker_stats(0).overloaded, 1);
	/* either of the two is enough */
	thresholds(10, 100, -1);
	ck_assert_uint_eq(worker_stats(0).overloaded, 1);
}
END_TEST

/*
 * Own or published blocks above 60 of 100 set the latch; only both below clear
 * it; at the threshold it stays as it is.
 */
START_TEST(busy_latch)
{
	static const struct {
		uint64_t own, published;
		uint32_t busy;
	} steps[] = {
		{ 60, 60, 0 }, { 61, 0, 1 }, { 60, 0, 1 }, { 59, 60, 1 },
		{ 59, 59, 0 }, { 60, 60, 0 }, { 0, 61, 1 }, { 60, 0, 1 },
		{ 61, 59, 1 }, { 59, 0, 0 }, { 61, 61, 1 }, { 0, 60, 1 },
		{ 0, 0, 0 }
	};
	size_t i;

	sized(0, 100, 0);
	thresholds(-1, -1, 0.6);
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		set_load(0, 0, steps[i].own, 0, steps[i].published);
		ck_assert_msg(worker_stats(0).overloaded == steps[i].busy,
		    "step %zu", i);
	}
}
END_TEST

/* Without capacity or threshold the latch is clear, even if it was set. */
START_TEST(latch_is_let_go)
{
	thresholds(-1, -1, 0.6);
	set_load(0, 0, 1000, 0, 1000);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
	sized(0, 100, 0);
	ck_assert_uint_eq(worker_stats(0).overloaded, 1);
	sized(0, 0, 0);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
	sized(0, 100, 0);
	thresholds(-1, -1, -1);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
	thresholds(-1, -1, 0.6);
	ck_assert_uint_eq(worker_stats(0).overloaded, 1);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
}
END_TEST

/* Leases count like external loads: pinned, generated, private. */
START_TEST(leases_make_busy)
{
	uint64_t lease;

	sized(0, 10, 0);
	thresholds(8, -1, 0.5);
	lease = reserve(0, "abcd", 1);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
	ck_assert_int_eq(kvr_lease_output(k, lease, 2, 1, 0), KVR_OK);
	ck_assert_uint_eq(worker_stats(0).overloaded, 1);
	finish(lease, 2);
	ck_assert_uint_eq(worker_stats(0).overloaded, 0);
	say("abcdefghijklm");
	lease = reserved(1, 3); /* 13 tokens to prefill; capacity unknown */
	ck_assert_uint_eq(worker_stats(1).overloaded, 1);
	commit(lease, 3);
	ck_assert_uint_eq(worker_stats(1).overloaded, 1);
	ck_assert_int_eq(kvr_lease_first_token(k, lease, 4, 0), KVR_OK);
	ck_assert_uint_eq(worker_stats(1).overloaded, 0);
	give_up(lease, 5);
}
END_TEST

Suite *suite_load(void);

Suite *
suite_load(void)
{
	Suite *s = suite_create("load");
	TCase *t = small_case(s, "load");

	tcase_add_test(t, loads_from_outside);
	tcase_add_test(t, loads_by_source);
	tcase_add_test(t, loads_leave_with_their_worker);
	tcase_add_test(t, extreme_loads);
	tcase_add_test(t, busy_above_tokens);
	tcase_add_test(t, busy_above_a_fraction);
	tcase_add_test(t, busy_latch);
	tcase_add_test(t, latch_is_let_go);
	tcase_add_test(t, leases_make_busy);
	return s;
}
