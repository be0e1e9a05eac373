/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_worker.c - slots, generations, loads, the overload latch.
 *
 * What a call refuses is test_border.c's. A slot is looked at through the id
 * it is in: see id.h.
 */
#include "id.h"
#include "inner.h"

#include <stdio.h>

static uint32_t
slot_of(uint64_t worker)
{
	return id_slot(worker);
}

/* Counts the workers by walking over them; slots ascend. */
static uint32_t
walk(void)
{
	uint64_t worker = 0;
	uint32_t n = 0, slot = 0;

	for (;; n++) {
		ck_assert_int_eq(kvr_worker_next(k, &worker), KVR_OK);
		if (worker == 0)
			return n;
		ck_assert(n == 0 || slot_of(worker) > slot);
		slot = slot_of(worker);
	}
}

/* The first number that is no slot's must not be taken for a free one. */
START_TEST(no_slot_beyond_the_last)
{
	struct kvr_options o = small_options();
	uint64_t worker;
	struct kvr *damaged;

	ck_assert_int_eq(kvr_new(&o, &damaged), KVR_OK);
	damaged->region->slot_free = damaged->layout.slots + 1;
	ck_assert_int_ne(kvr_worker_add(damaged, "a", 1, NULL, &worker),
	    KVR_OK);
	ck_assert_int_eq(kvr_worker_add(damaged, "a", 1, NULL, &worker),
	    KVR_OK);
	ck_assert_uint_lt(id_slot(worker), damaged->layout.slots);
	kvr_free(damaged);
}
END_TEST

enum { FLEET = 1000 };

/* Members of a large fleet come and go, against a plain list. */
START_TEST(large_fleet)
{
	static uint64_t fleet[FLEET];
	uint64_t steps = test_amount(6000);
	struct kvr_options o = small_options();
	uint32_t i, there = 0;
	char name[16];

	by_chance();
	o.max_workers = FLEET / 2;
	o.region_bytes = 2 << 20;
	ck_assert_int_eq(kvr_new(&o, &k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	memset(fleet, 0, sizeof(fleet));
	for (; steps > 0; steps--) {
		i = pick(FLEET);
		snprintf(name, sizeof(name), "10.0.0.%u", i / 2);
		must(find_rank(name, i % 2) == fleet[i]);
		if (fleet[i] != 0) {
			remove_worker(fleet[i]);
			fleet[i] = 0;
			there--;
		} else if (there < FLEET / 2) {
			must(add_rank(name, i % 2, &fleet[i]) == KVR_OK);
			there++;
		} else {
			must(add_rank(name, i % 2, &fleet[i]) == KVR_EFULL);
		}
	}
	ck_assert_uint_eq(walk(), there);
	ck_assert_uint_eq(stats().workers, there);
	region_end();
}
END_TEST

/* --------------------------------------------------------------- slots --- */

START_TEST(walk_goes_by_slots)
{
	uint64_t worker = 0;

	ck_assert_uint_eq(walk(), WORKERS);
	remove_worker(id[1]);
	ck_assert_uint_eq(walk(), WORKERS - 1);
	ck_assert_int_eq(kvr_worker_next(k, &worker), KVR_OK);
	ck_assert_uint_eq(worker, id[0]);
	ck_assert_int_eq(kvr_worker_next(k, &worker), KVR_OK);
	ck_assert_uint_eq(worker, id[2]);
	remove_worker(id[2]); /* the walk's own position is removed */
	ck_assert_int_eq(kvr_worker_next(k, &worker), KVR_OK);
	ck_assert_uint_eq(worker, id[3]);
	ck_assert_int_eq(kvr_worker_next(k, &worker), KVR_OK);
	ck_assert_uint_eq(worker, 0);
}
END_TEST

enum { INCARNATIONS = 3000 };

/* However often workers return, an id of a slot is above all before it. */
START_TEST(ids_are_never_given_twice)
{
	uint64_t last[2 * WORKERS] = { 0 };
	uint32_t i, w;

	by_chance();
	for (i = 0; i < INCARNATIONS; i++) {
		w = pick(WORKERS);
		if (pick(2) == 0) {
			must(kvr_worker_reset(k, id[w], &id[w]) == KVR_OK);
		} else {
			remove_worker(id[w]);
			id[w] = worker_of((char)('0' + w));
		}
		must(slot_of(id[w]) < 2 * WORKERS);
		must(id[w] > last[slot_of(id[w])]);
		last[slot_of(id[w])] = id[w];
		if (pick(3) == 0)
			observe(w, "ab", i);
	}
}
END_TEST

/* Neither is 0 the id of a free slot. */
START_TEST(no_worker_has_id_0)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_worker facts = { .size = sizeof(facts) };

	remove_worker(id[0]);
	say("ab");
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, 0, 0, &d), KVR_EWORKER);
	ck_assert_int_eq(kvr_observe(k, p, 0, 0, 0, NULL), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_get(k, 0, &facts), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_forget(k, 0), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_remove(k, 0), KVR_EWORKER);
	ck_assert_int_eq(kvr_check(k), KVR_OK);
}
END_TEST

START_TEST(reset_keeps_name_and_facts)
{
	struct kvr_worker facts, got = { .size = sizeof(got) };
	struct kvr_load load = { .size = sizeof(load), .prefill_tokens = 5,
	    .active_blocks = 6, .requests = 7, .used_blocks = 8 };
	uint64_t old, worker, identity;

	remove_worker(id[0]);
	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.rank = 3;
	facts.role = KVR_ROLE_PREFILL;
	facts.state = KVR_STATE_DRAINING;
	facts.capacity_tokens = UINT64_C(1) << 40;
	facts.max_batched_tokens = 8192;
	facts.taints = 0x8000000000000001;
	facts.prefill_rate = 1234.5;
	facts.weight = 0.25;
	ck_assert_int_eq(kvr_worker_add(k, "n", 1, &facts, &worker), KVR_OK);
	ck_assert_int_eq(kvr_worker_set_load(k, worker, 0, &load), KVR_OK);
	old = worker;
	identity = k->loads.identity[slot_of(old)];
	ck_assert_int_eq(kvr_worker_reset(k, old, &worker), KVR_OK);
	ck_assert_uint_eq(k->loads.identity[slot_of(worker)], identity);
	ck_assert_int_eq(kvr_worker_get(k, worker, &got), KVR_OK);
	ck_assert_mem_eq(&got, &facts, sizeof(facts));
	ck_assert_uint_eq(find_rank("n", 3), worker);
	ck_assert_int_eq(kvr_worker_get(k, old, &got), KVR_EWORKER);
	ck_assert_uint_eq(stats().workers, WORKERS);
	/* what ran there before the restart no longer runs */
	id[0] = worker;
	ck_assert_uint_eq(worker_stats(0).requests, 0);
	ck_assert_uint_eq(worker_stats(0).prefill_tokens, 0);
	ck_assert_uint_eq(worker_stats(0).active_blocks, 0);
}
END_TEST

/* The minimum and maximum of every fact, kept as given. */
START_TEST(extreme_facts)
{
	struct kvr_worker facts, got = { .size = sizeof(got) };
	int most;

	for (most = 0; most < 2; most++) {
		ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)),
		    KVR_OK);
		facts.role = most ? KVR_ROLE_DECODE : KVR_ROLE_BOTH;
		facts.state = most ? KVR_STATE_DOWN : KVR_STATE_UP;
		facts.capacity_tokens = most ? UINT64_MAX : 0;
		facts.max_batched_tokens = most ? UINT64_MAX : 0;
		facts.taints = most ? UINT64_MAX : 0;
		facts.prefill_rate = most ? 1e15 : 0;
		facts.weight = most ? 1e6 : 1e-6;
		ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
		ck_assert_int_eq(kvr_worker_get(k, id[0], &got), KVR_OK);
		ck_assert_mem_eq(&got, &facts, sizeof(got));
	}
}
END_TEST

START_TEST(set_leaves_the_rank)
{
	struct kvr_worker facts, got = { .size = sizeof(got) };

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.rank = 9;
	facts.weight = 2;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	ck_assert_int_eq(kvr_worker_get(k, id[0], &got), KVR_OK);
	ck_assert_uint_eq(got.rank, 0);
	ck_assert_double_eq(got.weight, 2);
	ck_assert_uint_eq(find_rank("0", 0), id[0]);
}
END_TEST

/*
 * Any number of resets, with leases open on every incarnation: when a slot is
 * reclaimed, its leases are detached; only their ids stay valid.
 */
START_TEST(leases_let_go_of_slots)
{
	enum { TIMES = 5 * WORKERS };
	uint64_t lease[TIMES], gone, clock;
	uint32_t i;

	for (i = 0; i < TIMES; i++) {
		lease[i] = reserve(0, "abcd", i);
		observe(0, "mnop", i);
		gone = id[0];
		ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
		ck_assert_uint_ne(id[0], gone);
		region_sound();
	}
	ck_assert_uint_eq(stats().leases, TIMES);
	ck_assert_uint_eq(worker_stats(0).requests, 0);
	/* what ends late was in another incarnation's cache */
	clock = slot_at(k, slot_of(id[0]))->clock;
	for (i = 0; i < TIMES; i++) {
		ck_assert_int_eq(kvr_lease_commit(k, lease[i], 100, 0), KVR_OK);
		ck_assert_uint_eq(slot_at(k, slot_of(id[0]))->clock, clock);
		ck_assert_int_eq(
		    kvr_lease_first_token(k, lease[i], 100, 0), KVR_OK);
		ck_assert_int_eq(kvr_lease_output(k, lease[i], 9, 100, 0),
		    KVR_OK);
		if (i % 2 == 0)
			finish(lease[i], 100);
		else
			give_up(lease[i], 100);
		region_sound();
	}
	ck_assert_uint_eq(worker_stats(0).output_blocks, 0);
	(void)expire(100, UINT32_MAX);
	ck_tree("");
}
END_TEST

/* Retired slots have thousands of entries to reclaim before reuse. */
START_TEST(spare_slots_are_cleared)
{
	uint32_t i, j;
	char text[3] = "..";

	for (i = 0; i < 3 * WORKERS; i++) {
		for (j = 0; j < 100; j++) {
			text[0] = (char)('a' + j % 10);
			text[1] = (char)('a' + j / 10);
			observe(i % 2, text, 1);
		}
		ck_assert_int_eq(kvr_worker_reset(k, id[i % 2], &id[i % 2]),
		    KVR_OK);
		ck_assert_uint_eq(overlap(i % 2, 1), 0);
		region_sound();
	}
	ck_assert_uint_gt(stats().orphaned, 0);
}
END_TEST

/* --------------------------------------------------------------- loads --- */

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

/* What is set from outside is added to what leases book, and replaced. */
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

/* Each source replaces what it said itself; all of them add up. */
START_TEST(loads_by_source)
{
	uint64_t lease = reserve(0, "abcd", 1);
	struct kvr_load load = { .size = sizeof(load) };

	ck_assert_int_eq(try_load(0, 0, 10, 20, 3, 7), KVR_OK);
	ck_assert_int_eq(try_load(0, 3, 100, 200, 30, 5), KVR_OK);
	ck_load(0, 4 + 110, 4 + 220, 0, 1 + 33);
	ck_assert_uint_eq(slot_at(k, slot_of(id[0]))->load_used, 7);
	ck_assert_int_eq(try_load(0, 0, 1, 2, 1, 0), KVR_OK);
	ck_load(0, 4 + 101, 4 + 202, 0, 1 + 31);
	ck_assert_uint_eq(slot_at(k, slot_of(id[0]))->load_used, 5);
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
	/* the engine restarted: what was said of it is no longer true */
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

/* The largest that all sources may say at once: no sum runs over. */
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

/* What leases book counts like what is set: pinned, generated, private. */
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

Suite *suite_worker(void);

Suite *
suite_worker(void)
{
	Suite *s = suite_create("worker");
	TCase *t = small_case(s, "slots");

	tcase_add_test(t, walk_goes_by_slots);
	tcase_add_test(t, ids_are_never_given_twice);
	tcase_add_test(t, no_worker_has_id_0);
	tcase_add_test(t, reset_keeps_name_and_facts);
	tcase_add_test(t, extreme_facts);
	tcase_add_test(t, set_leaves_the_rank);
	tcase_add_test(t, leases_let_go_of_slots);
	tcase_add_test(t, spare_slots_are_cleared);
	tcase_add_test(t, no_slot_beyond_the_last);
	t = small_case(s, "load");
	tcase_add_test(t, loads_from_outside);
	tcase_add_test(t, loads_by_source);
	tcase_add_test(t, loads_leave_with_their_worker);
	tcase_add_test(t, extreme_loads);
	tcase_add_test(t, busy_above_tokens);
	tcase_add_test(t, busy_above_a_fraction);
	tcase_add_test(t, busy_latch);
	tcase_add_test(t, latch_is_let_go);
	tcase_add_test(t, leases_make_busy);
	t = tcase_create("fleet");
	tcase_add_test(t, large_fleet);
	suite_add_tcase(s, t);
	return s;
}
