/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_stats.c - counters after known sequences, and the walk over the live
 * entries: complete, each entry once, whatever else comes and goes.
 */
#include "inner.h"

/* ------------------------------------------------------------ counters --- */

START_TEST(counted_from_the_start)
{
	struct kvr_stats s = stats();

	ck_assert_uint_eq(s.size, sizeof(s));
	ck_assert_uint_eq(s.region_bytes, 256 << 10);
	ck_assert_uint_gt(s.cells, 3000);
	ck_assert_uint_eq(s.cells_free, s.cells - 1); /* cell 0 is never used */
	ck_assert_uint_eq(s.workers, WORKERS);
	ck_assert_int_eq(s.clock, -1);
	/* all between the workers and the clock, and all behind it */
	ck_assert_uint_eq(s.nodes + s.entries + s.blocks + s.held_blocks +
	    s.leases, 0);
	ck_assert_uint_eq(s.observes + s.lease_opens + s.lease_commits +
		s.lease_finishes + s.lease_aborts + s.lease_reaps + s.expired +
		s.evicted_region + s.orphaned + s.splits + s.merges +
		s.extensions + s.truncated + s.clock_back + s.recoveries,
	    0);
}
END_TEST

START_TEST(counted_by_calls)
{
	uint64_t one, two, three;
	struct kvr_stats s;

	observe(0, "abcdef", 1);
	observe(1, "abcdxy", 2);
	observe(0, "abcdefgh", 3);
	one = reserve(2, "abcd", 4);
	two = reserve(2, "mn", 5);
	three = reserve(3, "op", 6);
	commit(one, 7);
	commit(one, 8);
	commit(two, 7);
	finish(one, 9);
	give_up(two, 10);
	s = stats();
	ck_assert_uint_eq(s.observes, 3);
	ck_assert_uint_eq(s.lease_opens, 3);
	ck_assert_uint_eq(s.lease_commits, 3);
	ck_assert_uint_eq(s.lease_finishes, 1);
	ck_assert_uint_eq(s.lease_aborts, 1);
	ck_assert_uint_eq(s.leases, 1);
	ck_assert_uint_eq(s.splits, 1);
	ck_assert_uint_eq(s.extensions, 1);
	ck_assert_uint_eq(s.merges, 0);
	ck_assert_uint_eq(s.clock_back, 1);
	ck_assert_int_eq(s.clock, 10);
	ck_tree("abcd:012(efgh:0 xy:1) mn:2 op:3!");
	ck_assert_uint_eq(s.nodes, 5);
	ck_assert_uint_eq(s.blocks, 4 + 4 + 2 + 2 + 2);
	ck_assert_uint_eq(s.entries, 6); /* one is for [abcdefgh] */
	ck_assert_uint_eq(s.held_blocks, 3 * 4 + 4 + 2 + 2 + 2);
	/* one piece a node, a cell an entry, one group, a lease of two */
	ck_assert_uint_eq(s.cells - 1 - s.cells_free, 5 + 5 + 6 + 1 + 2);
	give_up(three, 11);
	ck_assert_uint_eq(stats().lease_aborts, 2);
}
END_TEST

START_TEST(counted_by_worker)
{
	struct kvr_worker_stats s;
	struct kvr_load load = { .size = sizeof(load), .prefill_tokens = 100,
	    .active_blocks = 200, .requests = 300 };
	uint64_t lease;

	observe(0, "ab", 1);
	lease = reserve(0, "abcdef", 2);
	(void)reserve(0, "abcdef", 3);
	ck_assert_int_eq(kvr_lease_output(k, lease, 9, 4, 0), KVR_OK);
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	s = worker_stats(0);
	ck_assert_uint_eq(s.entries, 2);
	ck_assert_uint_eq(s.held_blocks, 6);
	ck_assert_uint_eq(s.requests, 302);
	ck_assert_uint_eq(s.prefill_tokens, 4 + 0 + 100);
	ck_assert_uint_eq(s.active_blocks, 206);
	ck_assert_uint_eq(s.output_blocks, 9);
	ck_assert_uint_eq(s.lease_opens, 2);
	ck_assert_uint_eq(s.prompt_tokens, 12);
	ck_assert_uint_eq(s.predicted_tokens, 2 + 6);
	ck_assert_uint_eq(s.overloaded, 0);
	ck_assert_uint_eq(s.best_tokens, 2 + 6);
	finish(lease, 5);
	ck_assert_uint_eq(worker_stats(0).lease_opens, 2); /* so far */
	ck_assert_uint_eq(worker_stats(1).entries, 0);
}
END_TEST

/* Two workers; the one with the prompt is busy, so the load decides. */
START_TEST(best_beside_chosen)
{
	struct kvr_request r;
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_load load = { .size = sizeof(load), .active_blocks = 100 };
	struct kvr_stats before = stats(), s;

	use_cost(KVR_COST_DYNAMO);
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.n_excluded = 1;
	r.excluded[0] = id[2];
	observe(0, "abcdef", 1);
	observe(1, "ab", 1);
	observe(2, "abcdefgh", 1);
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	say("abcdefgh");
	ck_assert_int_eq(kvr_lease_open(k, p, &r, 2, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[1]);
	ck_assert_uint_eq(d.overlap_tokens, 2);
	ck_assert_uint_eq(d.best_worker, id[0]); /* the third is excluded */
	ck_assert_uint_eq(d.best_tokens, 6);
	ck_assert_uint_eq(worker_stats(1).best_tokens, 6);
	ck_assert_uint_eq(worker_stats(0).best_tokens, 0);
	/* where the caller chooses there is no other */
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[1], 3, &d), KVR_OK);
	ck_assert_uint_eq(d.best_worker, id[1]);
	ck_assert_uint_eq(d.best_tokens, d.overlap_tokens);
	s = stats();
	ck_assert_uint_eq(s.prompt_tokens - before.prompt_tokens, 16);
	ck_assert_uint_eq(s.predicted_tokens - before.predicted_tokens,
	    2 + d.overlap_tokens);
	ck_assert_uint_eq(s.best_tokens - before.best_tokens,
	    6 + d.overlap_tokens);
	/* kept when the worker is not */
	ck_assert_int_eq(kvr_worker_remove(k, id[1]), KVR_OK);
	ck_assert_uint_eq(stats().best_tokens, s.best_tokens);
}
END_TEST

/* ----------------------------------------------------------- one entry --- */

/* The walk's only entry of this worker that begins at this block. */
static struct kvr_entry
entry_of(uint32_t worker, uint32_t first, int64_t now)
{
	struct kvr_entry all[16], found;
	uint64_t cursor = 0;
	size_t i, n, met = 0;

	memset(&found, 0, sizeof(found));
	ck_assert_int_eq(kvr_entries(k, &cursor, now, all, sizeof(all[0]), 16,
	    &n), KVR_OK);
	ck_assert_uint_lt(n, 16);
	for (i = 0; i < n; i++)
		if (all[i].worker == id[worker] &&
		    all[i].first_block == first) {
			found = all[i];
			met++;
		}
	ck_assert_uint_eq(met, 1);
	return found;
}

START_TEST(entry_says_what_it_is)
{
	struct kvr_entry e;
	uint64_t lease, local, sequence;

	observe(0, "abcdef", 10);
	observe(1, "abcd", 20);
	lease = reserve(1, "abcdxyz", 30);
	ck_tree("abcd:01!(ef:0 xyz:1!)");
	e = entry_of(1, 0, 50);
	ck_assert_uint_eq(e.blocks, 4);
	ck_assert_int_eq(e.age_ns, 30);
	ck_assert_uint_eq(e.pins, 1);
	ck_assert_uint_eq(e.reserved, 0);
	ck_assert_uint_eq(e.parent, p->root);
	ck_assert_int_eq(kvr_prompt_hash(p, 3, &local, &sequence), KVR_OK);
	ck_assert_uint_eq(e.sequence, sequence);
	e = entry_of(1, 4, 50);
	ck_assert_uint_eq(e.blocks, 3);
	ck_assert_int_eq(e.age_ns, -1);
	ck_assert_uint_eq(e.parent, sequence);
	ck_assert_int_eq(kvr_prompt_hash(p, 6, &local, &sequence), KVR_OK);
	ck_assert_uint_eq(e.sequence, sequence);
	commit(lease, 60);
	ck_assert_int_eq(entry_of(1, 0, 65).age_ns, 5);
	e = entry_of(0, 0, 65); /* of two nodes */
	ck_assert_uint_eq(e.blocks, 6);
	ck_assert_uint_eq(e.parent, p->root);
	ck_assert_uint_eq(e.pins, 0);
	ck_assert_int_eq(e.age_ns, 55);
	/* the time of a call is never before the clock */
	ck_assert_int_eq(entry_of(0, 0, 0).age_ns, 50);
}
END_TEST

static size_t
live(int64_t now)
{
	struct kvr_entry all[64];
	uint64_t cursor = 0;
	size_t n;

	ck_assert_int_eq(kvr_entries(k, &cursor, now, all, sizeof(all[0]), 64,
	    &n), KVR_OK);
	ck_assert_uint_eq(cursor, 0);
	return n;
}

/* Entries that are due, or of a removed worker, exist and are not shown. */
START_TEST(only_the_live)
{
	uint64_t lease;

	observe(0, "ab", 10);
	observe(1, "cd", 20);
	observe(2, "ef", 20);
	lease = reserve(3, "gh", 20);
	ck_assert_uint_eq(live(20), 4);
	ck_assert_uint_eq(live(9 + TTL), 4);
	ck_assert_uint_eq(live(10 + TTL), 3);
	ck_assert_int_eq(kvr_worker_remove(k, id[1]), KVR_OK);
	ck_assert_uint_eq(live(20), 3);
	ck_assert_uint_eq(live(20 + TTL), 1); /* the lease is */
	give_up(lease, 20);
	ck_assert_uint_eq(live(20 + TTL), 0);
}
END_TEST

/* ------------------------------------------------------------ the walk --- */

enum { STAY = 60, COME = 30 };

/* A separate prompt for each number. */
static void
say_number(uint32_t n)
{
	say_long(2 + n % 40, 0, n);
}

/* Worker 3's prompts come and go; the others' stay. */
static void
disturb(void)
{
	say_number(STAY + pick(COME));
	switch (pick(5)) {
	case 0:
		ck_assert_int_eq(kvr_worker_reset(k, id[3], &id[3]), KVR_OK);
		break;
	case 1:
		(void)expire(1, pick(20));
		break;
	case 2:
		give_up(reserved(3, 1), 1);
		break;
	default:
		(void)observed(3, 1);
	}
}

/* Counts the visits of each remaining prompt, `capacity` entries a call. */
static void
walk_disturbed(const uint64_t *sequence, size_t capacity)
{
	uint32_t met[STAY] = { 0 }, i, calls = 0;
	struct kvr_entry e[STAY + COME];
	uint64_t cursor = 0;
	size_t n, j;

	do {
		must(kvr_entries(k, &cursor, 1, e, sizeof(e[0]), capacity,
		    &n) == KVR_OK);
		must(n <= capacity && ++calls < 1000);
		for (j = 0; j < n; j++)
			for (i = 0; i < STAY; i++)
				met[i] += e[j].worker != id[3] &&
				    e[j].sequence == sequence[i];
		for (i = pick(4); i > 0; i--)
			disturb();
	} while (cursor != 0);
	for (i = 0; i < STAY; i++)
		must(met[i] == 1);
}

START_TEST(walk_meets_each_once)
{
	static const size_t capacity[] = { 1, 2, 3, 7, 50, STAY + COME };
	uint64_t sequence[STAY];
	uint32_t i, round;

	by_chance();
	for (i = 0; i < STAY; i++) {
		say_number(i);
		must(observed(i % 3, 1) == p->blocks);
		sequence[i] = p->sequence[p->blocks - 1];
	}
	for (round = 0; round < 10; round++)
		for (i = 0; i < 6; i++)
			walk_disturbed(sequence, capacity[i]);
}
END_TEST

/* An element of any size gets as much of an entry as fits in it. */
START_TEST(walk_with_other_elements)
{
	_Alignas(struct kvr_entry) unsigned char out[4 * 128];
	struct kvr_entry want;
	uint64_t cursor;
	size_t element, n, known;

	observe(0, "abcd", 5);
	want = entry_of(0, 0, 7);
	for (element = sizeof(uint64_t); element <= 128; element++) {
		memset(out, 0x5a, sizeof(out));
		cursor = 0;
		ck_assert_int_eq(kvr_entries(k, &cursor, 7,
		    (struct kvr_entry *)(void *)out, element, 4, &n), KVR_OK);
		ck_assert_uint_eq(n, 1);
		known = element < sizeof(want) ? element : sizeof(want);
		ck_assert_mem_eq(out, &want, known);
		for (; known < sizeof(out); known++)
			must(out[known] == 0x5a);
	}
}
END_TEST

/* A made-up cursor is the end, or anywhere; never outside. */
START_TEST(strange_cursors)
{
	struct kvr_entry e[4];
	uint64_t cursor;
	size_t n;
	uint32_t i;

	by_chance();
	observe(0, "abcd", 1);
	cursor = UINT64_MAX;
	ck_assert_int_eq(kvr_entries(k, &cursor, 1, e, sizeof(e[0]), 4, &n),
	    KVR_OK);
	ck_assert_uint_eq(n, 0);
	ck_assert_uint_eq(cursor, 0);
	for (i = 0; i < 1000; i++) {
		cursor = (uint64_t)pick(k->layout.entry_buckets + 9) << 32 |
		    pick(k->layout.cells * 2);
		must(kvr_entries(k, &cursor, 1, e, sizeof(e[0]), 4, &n) ==
		    KVR_OK);
		must(n <= 1 && cursor == 0);
	}
}
END_TEST

Suite *suite_stats(void);

Suite *
suite_stats(void)
{
	Suite *s = suite_create("stats");
	TCase *t = small_case(s, "stats");

	tcase_add_test(t, counted_from_the_start);
	tcase_add_test(t, counted_by_calls);
	tcase_add_test(t, counted_by_worker);
	tcase_add_test(t, best_beside_chosen);
	tcase_add_test(t, entry_says_what_it_is);
	tcase_add_test(t, only_the_live);
	tcase_add_test(t, walk_meets_each_once);
	tcase_add_test(t, walk_with_other_elements);
	tcase_add_test(t, strange_cursors);
	return s;
}
