/* SPDX-License-Identifier: BSD-2-Clause */
/* test_session.c - effects of a request's affinity on its choice. */
#include "session.h"

#include "affinity.h"

#include "inner.h"

#define SECOND INT64_C(1000000000)
enum { DIGEST = 77, LONG = 640 };

static struct kvr_request r;
static struct kvr_decision d;

static void
region_with(uint32_t entries, uint32_t workers)
{
	struct kvr_options o = small_options();

	o.affinity_entries = entries;
	o.ttl_ns = 120 * SECOND;
	o.region_bytes = 1 << 20;
	o.max_workers = workers;
	region_of(&o);
	use_cost(KVR_COST_DYNAMO);
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.affinity = DIGEST;
	memset(&d, 0, sizeof(d));
	d.size = sizeof(d);
}

static void
setup(void)
{
	region_with(64, WORKERS);
}

/* The slot chosen for a prompt. */
static uint32_t
route(int64_t now)
{
	uint32_t i;
	int error = kvr_route(k, p, &r, now, &d);

	ck_assert_int_eq(error, KVR_OK);
	for (i = 0; i < WORKERS_MAX; i++)
		if (id[i] == d.worker)
			return i;
	ck_abort_msg("an unknown worker");
}

static void
chosen(uint32_t worker, uint32_t reason, uint32_t outcome)
{
	ck_assert_uint_eq(route(10 * SECOND), worker);
	ck_assert_uint_eq(d.reason, reason);
	ck_assert_uint_eq(d.affinity, outcome);
}

/* A turn of the session on a worker; all turns differ from the first block. */
static void
turn(uint32_t worker, uint32_t blocks, int64_t now)
{
	static uint32_t turns = 100;

	say_long(blocks, 0, turns++);
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[worker], now, &d),
	    KVR_OK);
	finish(d.lease, now);
}

static void
busy(uint32_t worker, uint64_t blocks)
{
	struct kvr_load load = { .size = sizeof(load) };

	load.active_blocks = blocks;
	load.requests = blocks > 0;
	ck_assert_int_eq(kvr_worker_set_load(k, id[worker], 0, &load),
	    KVR_OK);
}

static void
facts_of(uint32_t worker, uint32_t state, uint32_t role)
{
	struct kvr_worker facts;

	ck_assert_int_eq(kvr_worker_init(&facts, sizeof(facts)), KVR_OK);
	facts.state = state;
	facts.role = role;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &facts), KVR_OK);
}

/* ------------------------------------------------ the order of a key --- */

/* Counts how many of n new keys go to each worker. */
static void
spread(uint32_t n, uint32_t *counts, uint8_t *where)
{
	uint32_t i;

	memset(counts, 0, WORKERS_MAX * sizeof(*counts));
	for (i = 0; i < n; i++) {
		r.affinity = UINT64_C(0x9e3779b97f4a7c15) * (i + 1);
		where[i] = (uint8_t)route(10 * SECOND);
		counts[where[i]]++;
	}
}

/* Two regions that share a secret and nothing else; names in another order. */
START_TEST(routers_agree)
{
	uint32_t mode, counts[WORKERS_MAX], i, j, cost;
	uint8_t here[100], there[100];
	struct kvr *first;
	char name;

	for (cost = KVR_COST_BALANCED; cost <= KVR_COST_DYNAMO; cost++)
	for (mode = KVR_AFFINITY_HARD; mode <= KVR_AFFINITY_HASH; mode++) {
		r.affinity_mode = mode;
		use_cost(cost);
		say_long(LONG, 0, 1);
		spread(100, counts, here);
		for (i = 0; i < WORKERS; i++)
			ck_assert_uint_gt(counts[i], 10);
		first = k;
		kvr_prompt_free(p);
		region_with(mode == KVR_AFFINITY_HASH ? 0 : 8, WORKERS);
		r.affinity_mode = mode;
		use_cost(cost);
		for (i = 0; i < WORKERS; i++)
			remove_worker(id[i]);
		for (i = WORKERS; i-- > 0;) {
			name = (char)('0' + i);
			id[i] = worker_of(name);
		}
		say_long(LONG, 0, 2 + cost); /* whatever the prompt */
		spread(100, counts, there);
		for (j = 0; j < 100; j++)
			ck_assert_uint_eq(here[j], there[j]);
		kvr_free(first);
	}
}
END_TEST

START_TEST(ties_are_near_the_best)
{
	uint32_t counts[WORKERS_MAX];
	uint8_t where[100];

	say_long(LONG, 0, 1); /* costs 1,280 where nothing runs */
	busy(0, 60);
	busy(1, 70);
	spread(100, counts, where);
	ck_assert_uint_gt(counts[0], 10);
	ck_assert_uint_eq(counts[1], 0);
	ck_assert_uint_eq(d.affinity, KVR_AFFINITY_NEW);
	ck_assert_uint_eq(d.reason, KVR_REASON_AFFINITY);
}
END_TEST

/* Neither load nor text matters, which one router has and another has not. */
START_TEST(hash_goes_by_the_key)
{
	uint32_t counts[WORKERS_MAX], i;
	uint8_t idle[100], where[100];

	r.affinity_mode = KVR_AFFINITY_HASH;
	say_long(LONG, 3, 1);
	spread(100, counts, idle);
	for (i = 0; i < WORKERS; i++)
		ck_assert_uint_gt(counts[i], 10);
	busy(0, 60);
	busy(1, 7000);
	(void)observed(3, SECOND);
	spread(100, counts, where);
	ck_assert_int_eq(memcmp(idle, where, sizeof(idle)), 0);
	ck_assert_uint_eq(d.affinity, KVR_AFFINITY_NONE);
	ck_assert_uint_eq(d.reason, KVR_REASON_AFFINITY);
}
END_TEST

/* Sessions of a worker beyond the bound move, each to its next; others stay. */
START_TEST(hash_keeps_the_bound)
{
	uint32_t counts[WORKERS_MAX], i, moved = 0;
	uint8_t idle[100], where[100];

	use_cost(KVR_COST_BALANCED);
	r.affinity_mode = KVR_AFFINITY_HASH;
	say_long(LONG, 0, 1);
	spread(100, counts, idle);
	for (i = 0; i < 200; i++) {
		r.affinity = 0;
		say_long(LONG, 0, 1000 + i);
		ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[1],
		    10 * SECOND, &d), KVR_OK);
	}
	say_long(LONG, 0, 1);
	spread(100, counts, where);
	ck_assert_uint_eq(counts[1], 0);
	for (i = 0; i < 100; i++) {
		if (idle[i] == 1)
			moved |= 1u << where[i];
		else
			ck_assert_uint_eq(where[i], idle[i]);
	}
	ck_assert_uint_ne(moved & (moved - 1), 0);
}
END_TEST

START_TEST(ties_yield_to_text)
{
	uint32_t counts[WORKERS_MAX];
	uint8_t where[100];

	say_long(LONG, 3, 1);
	(void)observed(3, SECOND);
	say_long(LONG, 3, 2);
	spread(100, counts, where);
	ck_assert_uint_eq(counts[3], 100);
	ck_assert_uint_eq(d.reason, KVR_REASON_COST);
}
END_TEST

/* Draws are from costs alone. */
START_TEST(temperature_draws)
{
	uint32_t i, there[WORKERS_MAX] = { 0 };

	r.temperature = 0.3;
	say_long(LONG, 0, 1);
	for (i = 0; i < 400; i++) {
		r.seed = i;
		there[route(10 * SECOND)]++;
		ck_assert_uint_eq(d.reason, KVR_REASON_SAMPLED);
	}
	for (i = 0; i < WORKERS; i++)
		ck_assert_uint_gt(there[i], 60);
}
END_TEST

/* H1: a binding that is void or has expired is as one that never was. */
START_TEST(dead_bindings_tie)
{
	uint64_t fresh;
	uint32_t want;

	say_long(LONG, 0, 1);
	want = route(10 * SECOND);
	ck_assert_uint_eq(d.affinity, KVR_AFFINITY_NEW);
	turn((want + 1) % WORKERS, 8, SECOND);
	say_long(LONG, 0, 1);
	chosen((want + 1) % WORKERS, KVR_REASON_AFFINITY, KVR_AFFINITY_HIT);
	ck_assert_int_eq(kvr_worker_reset(k, id[(want + 1) % WORKERS],
	    &fresh), KVR_OK);
	id[(want + 1) % WORKERS] = fresh;
	chosen(want, KVR_REASON_AFFINITY, KVR_AFFINITY_GONE);
	ck_assert_uint_eq(route(700 * SECOND), want);
	ck_assert_uint_eq(d.affinity, KVR_AFFINITY_NEW);
}
END_TEST

/* ---------------------------------------------------------------- hard --- */

/* A history that was rewritten shares nothing with itself. */
START_TEST(hard_returns)
{
	uint32_t cost;

	turn(2, LONG, SECOND);
	say_long(LONG, 0, 1);
	for (cost = KVR_COST_BALANCED; cost <= KVR_COST_DYNAMO; cost++) {
		use_cost(cost);
		chosen(2, KVR_REASON_AFFINITY, KVR_AFFINITY_HIT);
		ck_assert_uint_eq(d.overlap_tokens, 0);
		ck_assert_uint_eq(d.overlap_blocks, 0);
	}
}
END_TEST

/* Neither costs nor a prefix that another worker holds move it. */
START_TEST(hard_is_pinned)
{
	uint32_t cost;

	turn(2, 8, SECOND);
	say_long(LONG, 0, 1);
	(void)observed(1, SECOND);
	busy(2, 100000);
	for (cost = KVR_COST_BALANCED; cost <= KVR_COST_DYNAMO; cost++) {
		use_cost(cost);
		chosen(2, KVR_REASON_AFFINITY, KVR_AFFINITY_HIT);
	}
	r.temperature = 5;
	chosen(2, KVR_REASON_AFFINITY, KVR_AFFINITY_HIT);
}
END_TEST

/* Alone among four workers, it may run 2 / 4 * (13 + 1) + 3 requests. */
START_TEST(hard_moves_above_the_bound)
{
	struct kvr_load load = { .size = sizeof(load), .requests = 3 };
	uint32_t i;

	use_cost(KVR_COST_BALANCED);
	turn(2, LONG, SECOND);
	say_long(LONG, 0, 1);
	for (i = 0; i < WORKERS; i++) {
		load.requests = i == 2 ? 4 : 3;
		ck_assert_int_eq(kvr_worker_set_load(k, id[i], 0, &load),
		    KVR_OK);
	}
	chosen(2, KVR_REASON_AFFINITY, KVR_AFFINITY_HIT);
	load.requests = 40;
	ck_assert_int_eq(kvr_worker_set_load(k, id[2], 0, &load), KVR_OK);
	ck_assert_uint_ne(route(10 * SECOND), 2);
	ck_assert_uint_eq(d.affinity, KVR_AFFINITY_MOVED);
	use_cost(KVR_COST_DYNAMO); /* which has no bound */
	chosen(2, KVR_REASON_AFFINITY, KVR_AFFINITY_HIT);
}
END_TEST

START_TEST(hard_moves_when_it_must)
{
	turn(2, 8, SECOND);
	say_long(LONG, 0, 1);
	facts_of(2, KVR_STATE_DRAINING, KVR_ROLE_BOTH);
	ck_assert_uint_ne(route(10 * SECOND), 2);
	ck_assert_uint_eq(d.affinity, KVR_AFFINITY_MOVED);
	ck_assert_int_eq(kvr_lease_open(k, p, &r, 10 * SECOND, &d), KVR_OK);
	finish(d.lease, 10 * SECOND);
	facts_of(2, KVR_STATE_UP, KVR_ROLE_BOTH);
	say_long(LONG, 0, 3);
	chosen(route(10 * SECOND), KVR_REASON_AFFINITY, KVR_AFFINITY_HIT);
	ck_assert_uint_ne(route(10 * SECOND), 2);
	ck_assert_uint_eq(stats().affinity_moved, 1);
}
END_TEST

/* The request's own restrictions come before its session. */
START_TEST(restrictions_come_first)
{
	uint64_t three[3] = { id[0], id[1], id[3] };

	turn(2, LONG, SECOND);
	say_long(LONG, 0, 1);
	chosen(2, KVR_REASON_AFFINITY, KVR_AFFINITY_HIT);
	r.pinned = id[1];
	chosen(1, KVR_REASON_PINNED, KVR_AFFINITY_MOVED);
	r.pinned = 0;
	r.excluded[0] = id[2];
	r.n_excluded = 1;
	ck_assert_uint_ne(route(10 * SECOND), 2);
	r.n_excluded = 0;
	facts_of(2, KVR_STATE_UP, KVR_ROLE_DECODE);
	r.stage = KVR_STAGE_PREFILL;
	ck_assert_uint_ne(route(10 * SECOND), 2);
	r.stage = KVR_STAGE_ALL;
	facts_of(2, KVR_STATE_UP, KVR_ROLE_BOTH);
	ck_assert_int_eq(kvr_prompt_allow(p, three, 3), KVR_OK);
	ck_assert_uint_ne(route(10 * SECOND), 2);
	r.required_taints = 4;
	ck_assert_int_eq(kvr_route(k, p, &r, 10 * SECOND, &d),
	    KVR_ENOWORKER);
}
END_TEST

/* ------------------------------------------- requests without sessions --- */

START_TEST(decode_has_no_session)
{
	turn(2, LONG, SECOND);
	busy(2, 1);
	say_long(LONG, 0, 1);
	r.stage = KVR_STAGE_DECODE;
	ck_assert_uint_ne(route(10 * SECOND), 2);
	ck_assert_uint_eq(d.affinity, KVR_AFFINITY_NONE);
	r.overlap_credit = 1;
	ck_assert_uint_ne(route(10 * SECOND), 2);
}
END_TEST

START_TEST(ignored_reuse_has_no_ties)
{
	turn(2, LONG, SECOND);
	busy(2, 1);
	say_long(LONG, 0, 1);
	r.flags = KVR_IGNORE_REUSE;
	chosen(2, KVR_REASON_AFFINITY, KVR_AFFINITY_HIT);
	r.affinity++;
	ck_assert_uint_ne(route(10 * SECOND), 2);
	ck_assert_uint_eq(d.affinity, KVR_AFFINITY_NEW);
	ck_assert_uint_ne(d.reason, KVR_REASON_AFFINITY);
	r.affinity_mode = KVR_AFFINITY_HASH;
	(void)route(10 * SECOND);
	ck_assert_uint_eq(d.affinity, KVR_AFFINITY_NONE);
	ck_assert_uint_eq(d.reason, KVR_REASON_AFFINITY);
}
END_TEST

/* Neither the table nor the mode matters. */
START_TEST(no_key_no_change)
{
	struct kvr_decision plain = { .size = sizeof(plain) };
	uint32_t i;

	by_chance();
	for (i = 0; i < 20; i++) {
		r.affinity = 1 + pick(3);
		turn(pick(WORKERS), 1 + pick(LONG), SECOND);
	}
	r.affinity = 0;
	for (i = 0; i < 200; i++) {
		say_by_chance();
		busy(pick(WORKERS), pick(100));
		use_cost(pick(2));
		r.affinity_mode = pick(2);
		ck_assert_int_eq(kvr_route(k, p, NULL, 2 * SECOND, &plain),
		    KVR_OK);
		(void)route(2 * SECOND);
		must(memcmp(&plain, &d, sizeof(d)) == 0);
		must(d.affinity == KVR_AFFINITY_NONE);
	}
}
END_TEST

/* Candidates show the cost by which a worker was taken. */
START_TEST(candidates_agree)
{
	struct kvr_candidate c[WORKERS];
	size_t n, i;

	turn(2, LONG, SECOND);
	say_long(LONG, 0, 1);
	(void)route(10 * SECOND);
	ck_assert_int_eq(kvr_candidates(k, p, &r, 10 * SECOND, c,
	    sizeof(c[0]), WORKERS, &n), KVR_OK);
	for (i = 0; i < n; i++)
		if (c[i].worker == d.worker)
			ck_assert(c[i].cost == d.cost);
}
END_TEST

START_TEST(found_is_counted)
{
	turn(2, 8, SECOND);
	ck_assert_uint_eq(stats().affinity_found, 0);
	turn(2, 8, SECOND);
	turn(1, 8, SECOND);
	ck_assert_uint_eq(stats().affinity_found, 2);
	ck_assert_uint_eq(stats().affinity_moved, 1);
	(void)route(SECOND);
	ck_assert_uint_eq(stats().affinity_found, 2);
}
END_TEST

Suite *suite_session(void);

Suite *
suite_session(void)
{
	Suite *s = suite_create("session");
	TCase *t = tcase_create("session");

	tcase_add_checked_fixture(t, setup, region_end);
	tcase_add_test(t, temperature_draws);
	tcase_add_test(t, routers_agree);
	tcase_add_test(t, ties_are_near_the_best);
	tcase_add_test(t, hash_goes_by_the_key);
	tcase_add_test(t, hash_keeps_the_bound);
	tcase_add_test(t, ties_yield_to_text);
	tcase_add_test(t, dead_bindings_tie);
	tcase_add_test(t, hard_returns);
	tcase_add_test(t, hard_is_pinned);
	tcase_add_test(t, hard_moves_above_the_bound);
	tcase_add_test(t, hard_moves_when_it_must);
	tcase_add_test(t, restrictions_come_first);
	tcase_add_test(t, decode_has_no_session);
	tcase_add_test(t, ignored_reuse_has_no_ties);
	tcase_add_test(t, no_key_no_change);
	tcase_add_test(t, candidates_agree);
	tcase_add_test(t, found_is_counted);
	suite_add_tcase(s, t);
	return s;
}
