/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_worker.c - slots, generations, facts.
 *
 * test_border.c has the calls that are refused. A slot is looked at through
 * the id it is in: see id.h.
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
	/* requests from before the restart no longer run */
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
	/* late ends belong to another incarnation's cache */
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
	t = tcase_create("fleet");
	tcase_add_test(t, large_fleet);
	suite_add_tcase(s, t);
	return s;
}
