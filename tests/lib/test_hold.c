/* SPDX-License-Identifier: BSD-2-Clause */
/* test_hold.c - a worker holds exactly the blocks that its engine reports. */
#include "hold.h"

#include "alias.h"
#include "alloc.h"
#include "engine.h"
#include "survival.h"

#include <stdio.h>

static void
setup(void)
{
	k = NULL;
	holds_with(4096, 512 << 10, 1);
}

/* The engine has a window of five tokens, and maybe a memory for tails. */
static void
windows(uint64_t capacity, uint32_t mode)
{
	struct kvr_worker facts;

	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	facts.window_mode = mode;
	facts.window_tokens = 5;
	facts.window_capacity = capacity;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
}

/* Tokens of the text that worker 0 is predicted to reuse. */
static uint64_t
reuses(const char *text)
{
	struct kvr_candidate c[WORKERS_MAX];
	size_t i, n;

	say(text);
	ck_assert_int_eq(kvr_candidates(k, p, NULL, k->region->clock, c,
	    sizeof(c[0]), WORKERS_MAX, &n), KVR_OK);
	for (i = 0; i < n; i++)
		if (c[i].worker == id[0])
			return c[i].overlap_tokens;
	ck_abort();
}

/* ------------------------------------------------ what is not believed --- */

/* Prompts that are used once, each another one, of a worker without events. */
static void
observe_others(uint32_t from, uint32_t n, int64_t now)
{
	for (; n > 0; n--, from++) {
		const uint32_t tokens[] = { 100000 + from, 2 };

		ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, 2),
		    KVR_OK);
		ck_assert_int_eq(kvr_observe(k, p, id[2], now, 0, NULL),
		    KVR_OK);
	}
}

/* Of the first worker, in tokens; 0: none. Its events are all that counts. */
static void
told_capacity(uint64_t tokens)
{
	struct kvr_worker facts;

	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	facts.capacity_tokens = tokens;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
}

/* An engine of 100 blocks, each of one token; its capacity may be told. */
static void
engine_of_100(bool told, bool quarter_missing)
{
	uint32_t i;

	holds_with(4096, 512 << 10, 1);
	told_capacity(told ? 100 : 0);
	for (i = 0; i < 800 && got.state != KVR_EVENTS_DEGRADED; i++) {
		char text[2] = { (char)(1 + i % 250), '\0' };
		char gone[2] = { (char)(1 + (i + 150) % 250), '\0' };

		if (i >= 100 && !(quarter_missing && i % 4 == 0))
			event(KVR_EVENT_REMOVED, KVR_TIER_GPU, gone, 0, 1);
		event(KVR_EVENT_STORED, KVR_TIER_GPU, text, 0, 1);
	}
	region_sound();
}

START_TEST(all_removals_are_there)
{
	engine_of_100(_i == 0, false);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(worker_stats(0).events_held, 100);
	ck_assert_uint_eq(worker_stats(0).events_capacity, 100);
}
END_TEST

/* A few removals before the cache is full have other causes. */
START_TEST(early_removals_prove_nothing)
{
	char text[2] = { 0, '\0' };
	int i;

	for (i = 1; i <= 100; i++) {
		text[0] = (char)i;
		stored(text, 0);
		if (i > 4 && i <= 20)
			removed(text, 0);
	}
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(worker_stats(0).events_held, 84);
}
END_TEST

/* It holds more than the capacity that was told. */
START_TEST(removals_are_missing)
{
	engine_of_100(true, true);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(worker_stats(0).events_cause, KVR_DEGRADED_SURPLUS);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	ck_assert_uint_le(worker_stats(0).held_blocks, 110);
	ck_assert_uint_lt(seq, 350);
	cleared();
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(worker_stats(0).events_cause, KVR_DEGRADED_OTHER);
}
END_TEST

/* The cache is larger than was told: nothing was removed before. */
START_TEST(a_capacity_that_is_told_too_small)
{
	uint32_t i;

	told_capacity(50);
	for (i = 0; i < 400; i++) {
		char text[2] = { (char)(1 + i % 250), '\0' };
		char gone[2] = { (char)(1 + (i + 155) % 250), '\0' };

		if (i >= 95)
			event(KVR_EVENT_REMOVED, KVR_TIER_GPU, gone, 0, 1);
		event(KVR_EVENT_STORED, KVR_TIER_GPU, text, 0, 1);
	}
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(worker_stats(0).events_capacity, 95);
}
END_TEST

/* A request whose prompt is held, of which the engine finds so much. */
static void
ask_for(const char *text, uint64_t cached)
{
	struct kvr_report r;
	struct kvr_decision d = { .size = sizeof(d) };

	say(text);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], 1, &d), KVR_OK);
	ck_assert_int_eq(kvr_lease_commit(k, d.lease, 1, 0), KVR_OK);
	ck_assert_int_eq(kvr_report_init(&r, sizeof(r)), KVR_OK);
	r.kind = KVR_REPORT_VALUE;
	r.cached_tokens = cached;
	r.prompt_tokens = strlen(text);
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, &r, 1, 0), KVR_OK);
}

/* Reports of 0 end the belief in blocks whose removal never came. */
START_TEST(reports_contradict_events)
{
	static const char text[] = "a prompt that has been long gone";
	uint32_t i;

	stored(text, 0);
	for (i = 0; i < 8; i++)
		ask_for(text, strlen(text) - 1);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
	for (i = 0; i < 32 && worker_stats(0).events_state ==
	    KVR_EVENTS_COMPLETE; i++)
		ask_for(text, 0);
	ck_assert_uint_gt(i, 3); /* a few are no evidence */
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(worker_stats(0).events_cause, KVR_DEGRADED_REPORTS);
	ck_assert_uint_ne(worker_stats(0).retain, KVR_RETAIN_EVENTS);
	region_sound();
}
END_TEST

/* Reports before a stream has begun are no evidence against it. */
START_TEST(reports_before_a_stream)
{
	struct survival *s = survival_at(k, id_slot(id[0]));

	put_once(s->judged, 32.0f);
	put_once(s->missed, 1.0f);
	stored("abcdefgh", 0);
	ask_for("abcdefgh", 7);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
}
END_TEST

/*
 * Blocks of 1 and of 4 tokens stand in one group, so that parents are never
 * announced: they are orphans, nothing is held above them, and nothing grows.
 */
START_TEST(two_sizes_in_one_group)
{
	enum { MANY = 1000 };
	static struct kvr_event e[MANY];
	static uint64_t names[4 * MANY];
	static uint32_t tokens[4] = { 'a', 'b', 'c', 'd' };
	uint64_t rounds = test_amount(100), i, free_cells;
	uint32_t j;

	stored("abc", 0);
	free_cells = k->region->free_cells;
	for (i = 0; i < rounds; i++) {
		for (j = 0; j < MANY; j++) {
			(void)kvr_event_init(&e[j], sizeof(e[j]));
			names[j] = 1000000 + i * MANY + j;
			e[j].kind = KVR_EVENT_STORED;
			e[j].hashes_at = j;
			e[j].hashes = 1;
			e[j].block_tokens = j % 2 == 0 ? 4 : 1;
			e[j].tokens = e[j].block_tokens;
			e[j].flags = KVR_EVENT_PARENT;
			e[j].parent = names[j] - 1;
		}
		ck_assert_int_eq(apply_to(0, e, MANY, names, MANY, tokens, 4,
		    1), KVR_OK);
		ck_assert_uint_eq(got.orphans, MANY);
	}
	ck_assert_uint_eq(worker_stats(0).events_orphans, rounds * MANY);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 4);
	ck_assert_uint_eq(k->region->free_cells, free_cells);
	ck_assert_uint_eq(has(0, "abcd"), 3);
	region_sound();
}
END_TEST

/* The same blocks are announced again and again, as if they were copies. */
START_TEST(copies_that_are_none)
{
	uint32_t i;

	told_capacity(50);
	stored("abcdefghij", 0);
	for (i = 0; i < 20 && got.state == KVR_EVENTS_COMPLETE; i++)
		stored("abcdefghij", 0);
	ck_assert_uint_le(i, 10);
	ck_assert_uint_eq(worker_stats(0).events_cause, KVR_DEGRADED_SURPLUS);
	/* they are told to be the same from a clear on */
	flags_of_batch = KVR_BATCH_FULL;
	cleared();
	for (i = 0; i < 20; i++)
		stored("abcdefghij", 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	removed("abcdefghij", 5);
	ck_assert_uint_eq(has(0, "abcdefghij"), 5);
}
END_TEST

/* Its caller is silent: then the worker is as if it had no events. */
START_TEST(a_caller_that_is_gone)
{
	stored("abc", 0);
	ck_assert_int_eq(kvr_events_until(k, id[0], 100), KVR_OK);
	ck_assert_int_eq(worker_stats(0).events_until, 100);
	region_sound();
	observe_others(0, 1, 99);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
	ck_assert_int_eq(kvr_events_until(k, id[0], 200), KVR_OK);
	observe_others(1, 1, 150);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
	ck_assert_int_eq(k->region->events_due, 200);
	region_sound();
	observe_others(2, 1, 200);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(worker_stats(0).events_cause, KVR_DEGRADED_SILENT);
	ck_assert_int_eq(worker_stats(0).events_until, 0);
	ck_assert_int_eq(k->region->events_due, 0);
	ck_assert_uint_ne(worker_stats(0).retain, KVR_RETAIN_EVENTS);
	region_sound();
	/* requests make it hold blocks again */
	say("xyz");
	ck_assert_int_eq(kvr_observe(k, p, id[0], 201, 0, NULL), KVR_OK);
	ck_assert_uint_eq(has(0, "xyz"), 3);
	/* a caller that says nothing of itself may be silent for ever */
	cleared();
	stored("abc", 0);
	observe_others(3, 1, 1000000);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
}
END_TEST

START_TEST(times_of_callers)
{
	ck_assert_int_eq(kvr_events_until(NULL, id[0], 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_events_until(k, id[0], -1), KVR_EINVAL);
	ck_assert_int_eq(kvr_events_until(k, id[0], INT64_MAX), KVR_EINVAL);
	ck_assert_int_eq(kvr_events_until(k, 7, 1), KVR_EWORKER);
	ck_assert_int_eq(kvr_events_until(k, id[0], 1), KVR_OK);
	ck_assert_int_eq(worker_stats(0).events_until, 0); /* no stream */
	stored("abc", 0);
	ck_assert_int_eq(kvr_events_until(k, id[0], 1000), KVR_OK);
	ck_assert_int_eq(kvr_events_until(k, id[0], 0), KVR_OK);
	observe_others(0, 1, 2000);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
	ck_assert_int_eq(kvr_events_until(k, id[0], 3000), KVR_OK);
	ck_assert_int_eq(kvr_worker_remove(k, id[0]), KVR_OK);
	observe_others(1, 1, 4000);
	ck_assert_int_eq(k->region->events_due, 0);
	region_sound();
}
END_TEST

/* No prompt can match them until one has their scope. */
START_TEST(scopes_that_no_prompt_has)
{
	stored("abc", 0);
	ck_assert_uint_eq(got.unseen, 3);
	stored("abcde", 3); /* no beginning of a prompt */
	ck_assert_uint_eq(got.unseen, 0);
	ck_assert_uint_eq(worker_stats(0).events_unseen, 3);
	say("xyz");
	ck_assert_int_eq(kvr_observe(k, p, id[1], 1, 0, NULL), KVR_OK);
	stored("xyz", 0);
	ck_assert_uint_eq(got.unseen, 0);
	ck_assert_uint_eq(worker_stats(0).events_unseen, 3);
}
END_TEST

/* However many scopes there were, most of the others count as unseen. */
START_TEST(many_scopes)
{
	struct kvr_scope scope;
	const uint32_t tokens[] = { 'a', 'b', 'c', 'd' };
	uint64_t i, seen = 0;

	for (i = 0; i < 20000; i++) {
		ck_assert_int_eq(kvr_scope_init(&scope, sizeof(scope)), KVR_OK);
		ck_assert_int_eq(kvr_scope_set(k, &scope, KVR_SCOPE_SALT, &i,
		    sizeof(i)), KVR_OK);
		ck_assert_int_eq(kvr_prompt_set_tokens(p, &scope, tokens, 4),
		    KVR_OK);
		ck_assert_int_eq(kvr_observe(k, p, id[1], 1, 0, NULL), KVR_OK);
		ck_assert(scope_seen(k, hash_root(&k->rule, &scope)));
	}
	for (i = 0; i < 1000; i++)
		seen += scope_seen(k, i * UINT64_C(0x9e3779b97f4a7c15));
	ck_assert_uint_lt(seen, 600);
}
END_TEST

/* ------------------------------------------------------------- by hand --- */

START_TEST(stored_is_held_until_it_is_removed)
{
	stored("abcdef", 0);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_EVENTS);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 7); /* and the root */
	ck_assert_uint_eq(has(0, "abcdef"), 6);
	ck_assert_uint_eq(has(0, "abcdefgh"), 6);
	ck_assert_uint_eq(has(0, "abcxyz"), 3);
	stored("abcdefgh", 6);
	stored("abcxyz", 3);
	ck_assert_uint_eq(has(0, "abcdefgh"), 8);
	ck_assert_uint_eq(has(0, "abcxyz"), 6);
	removed("abcdefgh", 7);
	ck_assert_uint_eq(has(0, "abcdefgh"), 7);
	removed("abcdefg", 3);
	ck_assert_uint_eq(has(0, "abcdefgh"), 3);
	ck_assert_uint_eq(has(0, "abcxyz"), 6);
	removed("abcxyz", 0);
	ck_assert_uint_eq(has(0, "abcxyz"), 0);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 0);
	ck_assert_uint_eq(worker_stats(0).entries, 0);
}
END_TEST

/* No TTL ends it: that of the region is 1000. */
START_TEST(time_ends_nothing)
{
	uint32_t left;

	stored("abc", 0);
	ck_assert_int_eq(kvr_expire(k, 1000 * TTL, 1000, &left), KVR_OK);
	say("abc");
	ck_assert_uint_eq(has(0, "abc"), 3);
}
END_TEST

/* Blocks that are stored twice are gone with the second removal. */
START_TEST(copies_are_counted_over_tiers)
{
	stored("abc", 0);
	event(KVR_EVENT_STORED, KVR_TIER_GPU, "abc", 0, 3);
	event(KVR_EVENT_STORED, KVR_TIER_HOST, "abc", 0, 3);
	removed("abc", 0);
	removed("abc", 1);
	ck_assert_uint_eq(has(0, "abc"), 3);
	event(KVR_EVENT_REMOVED, KVR_TIER_HOST, "abc", 2, 3);
	ck_assert_uint_eq(has(0, "abc"), 2);
	event(KVR_EVENT_REMOVED, KVR_TIER_HOST, "abc", 0, 2);
	ck_assert_uint_eq(has(0, "abc"), 1); /* one more copy */
	removed("a", 0);
	ck_assert_uint_eq(has(0, "abc"), 0);
}
END_TEST

START_TEST(full_reports_are_no_copies)
{
	flags_of_batch = KVR_BATCH_FULL;
	stored("abc", 0);
	stored("abc", 0);
	removed("abc", 2);
	ck_assert_uint_eq(has(0, "abc"), 2);
	event(KVR_EVENT_STORED, KVR_TIER_HOST, "ab", 0, 2);
	removed("ab", 0);
	ck_assert_uint_eq(has(0, "abc"), 2);
	event(KVR_EVENT_REMOVED, KVR_TIER_HOST, "ab", 0, 2);
	ck_assert_uint_eq(has(0, "abc"), 0);
}
END_TEST

/* A block that was removed ahead of the one behind it goes with that one. */
START_TEST(holes_close)
{
	stored("abcdef", 0);
	event(KVR_EVENT_REMOVED, KVR_TIER_GPU, "abcdef", 2, 3);
	region_sound();
	ck_assert_uint_eq(has(0, "abcdef"), 6);
	removed("abcdef", 3);
	ck_assert_uint_eq(has(0, "abcdef"), 2);
	stored("abcdef", 2);
	event(KVR_EVENT_REMOVED, KVR_TIER_GPU, "abcdef", 2, 3);
	event(KVR_EVENT_STORED, KVR_TIER_GPU, "abcdef", 2, 3);
	removed("abcdef", 3);
	ck_assert_uint_eq(has(0, "abcdef"), 3);
}
END_TEST

/* Behind a hole, and behind a parent that is unknown. */
START_TEST(copies_behind_a_hole_count)
{
	stored("abcd", 0);
	event(KVR_EVENT_REMOVED, KVR_TIER_GPU, "abcd", 1, 2);
	stored("abcde", 2);
	ck_assert_uint_eq(got.orphans, 1);
	removed("abcd", 2);
	ck_assert_uint_eq(has(0, "abcd"), 4);
	removed("abcd", 2);
	ck_assert_uint_eq(has(0, "abcd"), 1);
	stored("xycd", 3);
	ck_assert_uint_eq(got.orphans, 1);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
}
END_TEST

START_TEST(unknown_parents_are_orphans)
{
	stored("abc", 0);
	stored("xyzuv", 3);
	ck_assert_uint_eq(got.orphans, 2);
	ck_assert_uint_eq(worker_stats(0).events_orphans, 2);
	ck_assert_uint_eq(has(0, "xyzuv"), 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	removed("xyzuv", 3);
	removed("qq", 0);
	ck_assert_uint_eq(has(0, "abc"), 3);
}
END_TEST

START_TEST(a_clear_ends_all)
{
	uint64_t old = id[0];

	stored("abc", 0);
	cleared();
	ck_assert(id[0] == old);
	ck_assert_uint_eq(has(0, "abc"), 0);
	stored("xabc", 0);
	ck_assert_uint_eq(has(0, "xabc"), 4);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_EVENTS);
}
END_TEST

/* Entries from before the first event do not count. */
START_TEST(a_stream_begins_with_nothing)
{
	observe(0, "abc", 1);
	ck_assert_uint_eq(has(0, "abc"), 3);
	stored("xy", 0);
	ck_assert_uint_eq(has(0, "abc"), 0);
	ck_assert_uint_eq(has(0, "xy"), 2);
}
END_TEST

/* After a loss the blocks count as if they had been observed. */
START_TEST(lost_batches_degrade)
{
	stored("abc", 0);
	ck_assert_int_eq(kvr_events_lost(k, id[0], 9), KVR_OK);
	region_sound();
	ck_assert_uint_eq(has(0, "abc"), 3);
	ck_assert(worker_stats(0).retain != KVR_RETAIN_EVENTS);
	seq = 9;
	removed("abc", 0);
	ck_assert_uint_eq(has(0, "abc"), 3);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	region_sound();
}
END_TEST

START_TEST(an_empty_region_degrades)
{
	stored("abc", 0);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	region_sound();
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(has(0, "abc"), 0);
	observe(0, "abc", 1);
	ck_assert_uint_eq(has(0, "abc"), 3);
}
END_TEST

/* Facts by which its blocks are not known any more. */
START_TEST(another_retention_degrades)
{
	struct kvr_worker facts;

	stored("abc", 0);
	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_TTL;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	region_sound();
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 0);
	say("xyz");
	ck_assert_int_eq(kvr_observe(k, p, id[0], 1, 0, NULL), KVR_OK);
	ck_assert_uint_eq(has(0, "xyz"), 3);
}
END_TEST

/* A window is no such fact. */
START_TEST(a_window_degrades_nothing)
{
	stored("abc", 0);
	windows(0, (uint32_t)_i);
	region_sound();
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_EVENTS);
	ck_assert_uint_eq(has(0, "abc"), 3);
	removed("abc", 2);
	ck_assert_uint_eq(has(0, "abc"), 2);
}
END_TEST

/* A request adds nothing but while it runs, and until it is confirmed. */
START_TEST(a_lease_counts_while_it_runs)
{
	struct kvr_decision d = { .size = sizeof(d) };

	stored("abc", 0);
	say("abcxy");
	ck_assert_int_eq(kvr_observe(k, p, id[0], 1, 0, NULL), KVR_OK);
	ck_assert_uint_eq(has(0, "abcxy"), 3);
	say("abcdef");
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], 1, &d), KVR_OK);
	ck_assert_uint_eq(has(0, "abcdef"), 6);
	ck_assert_int_eq(kvr_lease_commit(k, d.lease, 1, 0), KVR_OK);
	stored("abcde", 3);
	say("abcdefgh");
	ck_assert_int_eq(kvr_lease_extend(k, d.lease, p, 1, 0), KVR_OK);
	region_sound();
	ck_assert_uint_eq(has(0, "abcdefgh"), 8);
	removed("abcde", 4);
	ck_assert_uint_eq(has(0, "abcdefgh"), 8);
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, NULL, 1, 0), KVR_OK);
	region_sound();
	ck_assert_uint_eq(has(0, "abcdefgh"), 4);
}
END_TEST

/* A block without an alias is not held, and none behind it. */
START_TEST(a_full_table_takes_no_more)
{
	holds_with(8, 512 << 10, 1);
	stored("abcdef", 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	stored("abcdefghi", 6);
	ck_assert_uint_eq(got.orphans, 3);
	stored("abcdefghij", 9);
	ck_assert_uint_eq(got.orphans, 1);
	stored("abcdefg", 6);
	ck_assert_uint_eq(got.orphans, 0);
	ck_assert_uint_eq(has(0, "abcdefghij"), 7);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_EVENTS);
	region_sound();
	removed("abcdefghij", 4);
	ck_assert_uint_eq(has(0, "abcdefghij"), 4);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 5);
	region_sound();
	/* aliases of an earlier life are free again */
	cleared();
	stored("uvwxyz", 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(has(0, "uvwxyz"), 6);
}
END_TEST

/* Blocks [from, to) of one prompt, by one event of worker w, perhaps anew. */
static int
store_many(uint32_t w, uint64_t number, uint32_t from, uint32_t to, bool anew)
{
	enum { MANY = 20000 };
	uint64_t *hashes = malloc(MANY * sizeof(*hashes));
	uint32_t *tokens = malloc(MANY * sizeof(*tokens)), i;
	struct kvr_event e[2];
	int error;

	ck_assert(hashes != NULL && tokens != NULL && to <= MANY);
	for (i = 0; i < 2; i++)
		(void)kvr_event_init(&e[i], sizeof(e[i]));
	for (i = 0; i < MANY; i++) {
		hashes[i] = 1000 + i;
		tokens[i] = i;
	}
	e[0].kind = KVR_EVENT_CLEARED;
	e[1].kind = KVR_EVENT_STORED;
	e[1].block_tokens = 1;
	e[1].hashes = e[1].tokens = to - from;
	e[1].hashes_at = e[1].tokens_at = from;
	e[1].flags = from > 0 ? KVR_EVENT_PARENT : 0;
	e[1].parent = from > 0 ? hashes[from - 1] : 0;
	seq = number;
	error = apply_to(w, &e[!anew], anew ? 2 : 1, hashes, MANY, tokens, MANY,
	    1);
	free(hashes);
	free(tokens);
	return error;
}

/*
 * More live aliases than a call looks at lie before the dead ones. The call
 * returns KVR_EBUSY, and the next one finds room, whether the batch itself
 * ends the life or it had ended before.
 */
START_TEST(a_table_full_of_dead_waits)
{
	enum { LIVE = 17000, DEAD = 1000 };
	uint32_t last = _i == 0 ? LIVE : LIVE + DEAD;
	uint64_t was;

	holds_with(LIVE + DEAD + 2, 4 << 20, 1);
	ck_assert_int_eq(store_many(1, 0, 0, LIVE, false), KVR_OK);
	ck_assert_int_eq(store_many(0, 0, 0, DEAD, false), KVR_OK);
	region_sound();
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	was = id[0];
	if (_i == 0) {
		ck_assert_int_eq(store_many(0, 1, 0, DEAD, true), KVR_EBUSY);
		ck_assert_uint_eq(id[0], was);
		region_sound();
		ck_assert_uint_eq(worker_stats(0).events_state,
		    KVR_EVENTS_DEGRADED);
		ck_assert_int_eq(store_many(0, 1, 0, DEAD, true), KVR_OK);
		ck_assert(id[0] == was);
	} else {
		ck_assert_int_eq(kvr_events_lost(k, id[0], 7), KVR_OK);
		ck_assert_int_eq(store_many(1, 1, LIVE, LIVE + DEAD, false),
		    KVR_EBUSY);
		region_sound();
		ck_assert_int_eq(store_many(1, 1, LIVE, LIVE + DEAD, false),
		    KVR_OK);
	}
	region_sound();
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(worker_stats(0).events_blocks, _i == 0 ? DEAD + 1
	    : 0);
	ck_assert_uint_eq(worker_stats(1).events_blocks, last + 1);
	/* and none is left */
	ck_assert_int_eq(store_many(1, _i == 0 ? 1 : 2, last, last + 2, false),
	    KVR_OK);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(got.orphans, 2);
}
END_TEST

/* Not even one for another scope: then nothing of it is on record. */
START_TEST(no_alias_for_a_root)
{
	static const uint32_t token = 'x';
	static const uint64_t hash = 77;
	struct kvr_event e;

	holds_with(4, 512 << 10, 1);
	stored("abc", 0);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 4);
	(void)kvr_event_init(&e, sizeof(e));
	ck_assert_int_eq(kvr_scope_set(k, &e.scope, KVR_SCOPE_SALT, "s", 1),
	    KVR_OK);
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 1;
	e.hashes = e.tokens = 1;
	ck_assert_int_eq(apply_to(0, &e, 1, &hash, 1, &token, 1, 1), KVR_OK);
	ck_assert_uint_eq(got.orphans, 1);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 4);
	region_sound();
}
END_TEST

/* Blocks of two index blocks are held as a whole. */
START_TEST(larger_blocks_of_the_engine)
{
	holds_with(4096, 512 << 10, 1);
	each = 2;
	stored("abcdef", 0);
	ck_assert_uint_eq(has(0, "abcdef"), 6);
	ck_assert_uint_eq(has(0, "abcxxx"), 3);
	removed("abcdef", 2);
	ck_assert_uint_eq(has(0, "abcdef"), 4);
	stored("abcdefgh", 2);
	ck_assert_uint_eq(has(0, "abcdefgh"), 8);
}
END_TEST

START_TEST(blocks_that_do_not_fit_degrade)
{
	holds_with(4096, 512 << 10, 2);
	each = 3;
	stored("abcdef", 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
	say("abcd");
	ck_assert_int_eq(kvr_observe(k, p, id[0], 1, 0, NULL), KVR_OK);
	ck_assert_uint_eq(has(0, "abcd"), 2);
}
END_TEST

/* A prompt of 40 letters. Its first 8 are like those of 25 others. */
static const char *
write_prompt(uint32_t i)
{
	static char text[LETTERS + 1];
	uint32_t j;

	for (j = 0; j < 40; j++)
		text[j] = (char)('A' + (i / (j < 8 ? 26 : 1) + j) % 26);
	text[40] = '\0';
	return text;
}

/* The entry used longest ago leaves, whether events or requests have fed it. */
START_TEST(a_full_region_keeps_what_is_used)
{
	static const char hot[] = "hot and held";
	struct kvr_decision d = { .size = sizeof(d) };
	char cold[TEXT];
	uint32_t i;

	holds_with(5000, 512 << 10, 1);
	stored(hot, 0);
	for (i = 0; i < 400; i++) {
		int64_t now = 2 + (int64_t)i;

		observe_others(10 * i, 10, now);
		snprintf(cold, sizeof(cold), "%u is cold", i);
		stored(cold, 0);
		say(hot);
		if (_i == 1) {
			ck_assert_int_eq(kvr_observe(k, p, id[0], now, 0,
			    NULL), KVR_OK);
			continue;
		}
		ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], now, &d),
		    KVR_OK);
		ck_assert_int_eq(kvr_lease_finish(k, d.lease, NULL, now, 0),
		    KVR_OK);
	}
	region_sound();
	ck_assert_uint_eq(has(0, hot), strlen(hot));
	ck_assert_uint_gt(worker_stats(0).events_evicted, 10);
	ck_assert(worker_stats(0).events_evicted <
	    k->region->counts.evicted_region);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_EVENTS);
}
END_TEST

/* An evicted block is no hint, nor are those behind it until all are stored. */
START_TEST(what_has_left_comes_back)
{
	uint32_t i;

	holds_with(4096, 256 << 10, 1);
	flags_of_batch = _i == 0 ? 0 : KVR_BATCH_FULL;
	stored("once", 0);
	stored("once more", 4);
	for (i = 0; i < 2000 && has(0, "once more") > 0; i++)
		observe_others(i, 1, 2 + (int64_t)i);
	ck_assert_uint_eq(has(0, "once more"), 0);
	ck_assert_uint_gt(worker_stats(0).events_evicted, 0);
	region_sound();
	stored("once more?", 9);
	ck_assert_uint_eq(got.orphans, 1);
	ck_assert_uint_eq(has(0, "once more?"), 0);
	stored("once more", 4);
	ck_assert_uint_eq(has(0, "once more"), 0);
	ck_assert_uint_eq(got.orphans, 0);
	/* a part of it, and then the rest */
	stored("once", 0);
	ck_assert_uint_eq(has(0, "once more"), 4);
	stored("once more", 4);
	ck_assert_uint_eq(has(0, "once more"), 9);
	region_sound();
	for (i = 0; i < 3; i++) { /* each copy, if they count */
		removed("once more", 4);
		region_sound();
	}
	ck_assert_uint_eq(has(0, "once more"), 4);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 5);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
}
END_TEST

/* They need no new names, so a full table of names keeps none of them away. */
START_TEST(what_has_left_comes_back_to_a_full_table)
{
	uint32_t i;

	holds_with(10, 128 << 10, 1);
	stored("once", 0);
	stored("once more", 4);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 10);
	for (i = 0; i < 4000 && has(0, "once more") > 0; i++)
		observe_others(i, 1, 2 + (int64_t)i);
	ck_assert_uint_eq(has(0, "once more"), 0);
	stored("once", 0);
	ck_assert_uint_eq(has(0, "once more"), 4);
	stored("once more", 4);
	ck_assert_uint_eq(has(0, "once more"), 9);
	stored("once more!", 9);
	ck_assert_uint_eq(got.orphans, 1);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
}
END_TEST

/* Removals of evicted blocks end their aliases, and look for them but once. */
START_TEST(what_has_left_is_removed)
{
	enum { LONG = 4000 };
	uint64_t steps;
	uint32_t i;

	holds_with(LONG + 10, 1 << 20, 1);
	ck_assert_int_eq(store_many(0, 0, 0, LONG, false), KVR_OK);
	for (i = 0; i < 20000 && worker_stats(0).held_blocks > 0; i++)
		observe_others(i, 1, 2);
	ck_assert_uint_eq(worker_stats(0).held_blocks, 0);
	region_sound();
	for (i = LONG; i-- > 0;) {
		const uint64_t name = 1000 + i;
		struct kvr_event e;

		(void)kvr_event_init(&e, sizeof(e));
		e.kind = KVR_EVENT_REMOVED;
		e.hashes = 1;
		ck_assert_int_eq(apply_to(0, &e, 1, &name, 1, NULL, 0, 3),
		    KVR_OK);
		steps = k->region->counts.steps;
		ck_assert_uint_lt(steps, i == LONG - 1 ? 8 * LONG : 100);
	}
	ck_assert_uint_eq(worker_stats(0).events_blocks, 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	region_sound();
}
END_TEST

/* Prompts of worker 0 by events, and long ones that requests hold. */
static uint32_t
burst(uint64_t *lease, uint32_t n)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t tokens[2000] = { 0 }, i;

	holds_with(8000, 768 << 10, 1);
	for (i = 0; i < 200; i++) {
		stored(write_prompt(i), 0);
		ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	}
	for (i = 0; i < n; i++) {
		tokens[0] = 100000 + i;
		ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, 2000),
		    KVR_OK);
		ck_assert_int_eq(kvr_lease_open(k, p, NULL, 2, &d), KVR_OK);
		lease[i] = d.lease;
	}
	return d.recorded_blocks;
}

/* The first letters of a prompt, and others behind them. */
static void
say_prefix(uint32_t i, const char *rest)
{
	char text[16];

	(void)snprintf(text, sizeof(text), "%.10s%s", write_prompt(i), rest);
	say(text);
}

/* Leases take the cells that are spared; what is held is not parted then. */
START_TEST(no_room_to_part)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t lease[8];
	uint32_t i;

	(void)burst(lease, 8);
	for (i = 0; i < 40; i++) {
		say_prefix(i, "zzz"); /* parts the node, and no entry */
		(void)observed(2, 2);
	}
	say_prefix(1, "zzz");
	for (i = 0; i < 20000 && k->region->free_cells > 1; i++)
		ck_assert_int_eq(kvr_lease_open(k, p, NULL, 2, &d), KVR_OK);
	ck_assert_uint_le(k->region->free_cells, 1);
	ck_assert_uint_eq(worker_stats(0).events_evicted, 0);
	for (i = 0; i < 40; i++) {
		say_prefix(i, "");
		(void)observed(0, 2);
		region_sound();
	}
}
END_TEST

/* A burst of long prompts takes room of all workers, and the trust of none. */
START_TEST(a_burst_costs_hints)
{
	uint64_t lease[64];
	uint32_t i, recorded = burst(lease, 64);

	/* no cell is left */
	ck_assert_uint_lt(recorded, 2000);
	for (i = 0; i < 200; i += 3)
		removed(write_prompt(i), 20);
	stored("no room", 0);
	ck_assert_uint_eq(got.orphans, 7);
	for (i = 0; i < 64; i++)
		ck_assert_int_eq(kvr_lease_abort(k, lease[i], 3, 0), KVR_OK);
	ck_assert_uint_gt(worker_stats(0).events_evicted, 0);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
	stored("room", 0);
	ck_assert_uint_eq(has(0, "room"), 4);
	region_sound();
}
END_TEST

/* Dynamo's publishers give local hashes in place of tokens. */
START_TEST(local_hashes_will_do)
{
	static const uint32_t tokens[] = { 'a', 'b', 'c', 'd' };
	struct kvr_options o = small_options();
	struct kvr_worker facts;
	struct kvr_event e;
	struct hash_chain chain;
	struct kvr_scope scope;
	uint64_t both[8];
	size_t i;

	region_end();
	o.event_blocks = 100;
	o.hash = KVR_HASH_DYNAMO;
	o.region_bytes = 512 << 10;
	region_of(&o);
	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	(void)kvr_scope_init(&scope, sizeof(scope));
	(void)hash_start(&k->rule, &scope, &chain);
	hash_token_blocks(&k->rule, &chain, tokens, 4, both + 4);
	for (i = 0; i < 4; i++)
		both[i] = 100 + i;
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 1;
	e.flags = KVR_EVENT_LOCALS;
	e.hashes = e.tokens = 2;
	e.tokens_at = 4;
	ck_assert_int_eq(apply_to(0, &e, 1, both, 8, NULL, 0, 1), KVR_OK);
	ck_assert_uint_eq(has(0, "abcd"), 2);
	e.flags |= KVR_EVENT_PARENT;
	e.parent = 101;
	e.hashes_at = 2;
	e.tokens_at = 6;
	ck_assert_int_eq(apply_to(0, &e, 1, both, 8, NULL, 0, 1), KVR_OK);
	ck_assert_uint_eq(has(0, "abcd"), 4);
}
END_TEST

/* The stream outlives the handle. */
START_TEST(another_handle_goes_on)
{
	struct kvr_options o = small_options();
	size_t bytes = 512 << 10;
	void *memory = aligned_alloc(CELL, bytes);
	struct kvr_worker facts;

	ck_assert_ptr_nonnull(memory);
	region_end();
	o.event_blocks = 1000;
	ck_assert_int_eq(kvr_new_at(&o, memory, bytes, &k), KVR_OK);
	people(WORKERS);
	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	stored("abcdef", 0);
	kvr_prompt_free(p);
	kvr_free(k);
	ck_assert_int_eq(kvr_attach_at(NULL, memory, bytes, &k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(k, &p), KVR_OK);
	ck_assert_uint_eq(has(0, "abcdef"), 6);
	removed("abcdef", 4);
	ck_assert_uint_eq(got.outcome, KVR_EVENTS_APPLIED);
	ck_assert_uint_eq(has(0, "abcdef"), 4);
	region_end();
	free(memory);
	setup();
}
END_TEST

/* One event about blocks that are known, or not, by their names alone. */
static int
named(uint32_t kind, uint32_t block, const char *text, size_t from, size_t to)
{
	struct kvr_event e;
	uint64_t hashes[TEXT];
	size_t i;

	(void)kvr_event_init(&e, sizeof(e));
	e.kind = kind;
	e.block_tokens = block;
	for (i = from; i < to; i++)
		hashes[i - from] = name_of(text, i + 1);
	e.hashes = to - from;
	return apply_to(0, &e, 1, hashes, to - from, NULL, 0, 1);
}

/* An event without tokens is another copy, or is not known. */
START_TEST(names_alone_are_copies)
{
	stored("abc", 0);
	ck_assert_int_eq(named(KVR_EVENT_STORED, 0, "abcd", 1, 4), KVR_OK);
	ck_assert_uint_eq(got.orphans, 1);
	removed("abc", 1);
	ck_assert_uint_eq(has(0, "abc"), 3);
	removed("abc", 1);
	ck_assert_uint_eq(has(0, "abc"), 1);
	/* nothing, of nothing, and of another size */
	ck_assert_int_eq(named(KVR_EVENT_STORED, 1, "a", 0, 0), KVR_OK);
	ck_assert_int_eq(named(KVR_EVENT_REMOVED, 0, "a", 0, 0), KVR_OK);
	ck_assert_uint_eq(got.orphans, 0);
	ck_assert_int_eq(named(KVR_EVENT_STORED, 7, "xy", 0, 2), KVR_OK);
	ck_assert_uint_eq(got.orphans, 2);
	ck_assert_int_eq(named(99, 0, "a", 0, 1), KVR_OK);
	ck_assert_uint_eq(has(0, "abc"), 1);
	region_sound();
}
END_TEST

/* The name of a root names no block, even in an event. */
START_TEST(a_root_has_no_copies)
{
	struct kvr_event e;
	uint64_t name = 0;
	uint32_t i;

	stored("abc", 0);
	for (i = 1; i < k->region->alias_fresh; i++)
		if (alias_at(k, i)->parent == 0)
			name = alias_at(k, i)->name;
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.hashes = 1;
	ck_assert_int_eq(apply_to(0, &e, 1, &name, 1, NULL, 0, 1), KVR_OK);
	ck_assert_uint_eq(got.orphans, 1);
	region_sound();
	e.kind = KVR_EVENT_REMOVED;
	ck_assert_int_eq(apply_to(0, &e, 1, &name, 1, NULL, 0, 1), KVR_OK);
	ck_assert_uint_eq(has(0, "abc"), 3);
	region_sound();
}
END_TEST

/* A stream that mixes copies and sets of tiers degrades. 0: sets come first. */
START_TEST(copies_of_two_kinds_degrade)
{
	flags_of_batch = _i == 0 ? KVR_BATCH_FULL : 0;
	stored("abc", 0);
	flags_of_batch ^= KVR_BATCH_FULL;
	ck_assert_int_eq(apply_to(0, NULL, 0, NULL, 0, NULL, 0, 1), KVR_OK);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE); /* it has none */
	stored("abc", 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
	cleared();
	stored("abc", 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(has(0, "abc"), 3);
}
END_TEST

/*
 * A piece of a batch that takes too many steps degrades its worker, and harms
 * no other: an end that comes and goes behind a path of many nodes. However
 * many pieces there are, each has all the steps.
 */
START_TEST(too_many_steps_degrade)
{
	enum { DEEP = 60, TIMES = 6000 };
	static struct kvr_event e[2 * TIMES];
	static const uint32_t token = 'z';
	char text[DEEP + 1];
	uint64_t hash = 7;
	uint32_t i;

	memset(text, 'a', DEEP);
	text[DEEP] = 0;
	stored(text, 0);
	for (i = 1; i < DEEP; i++) { /* so that no two are merged */
		text[i] = 'b';
		event(KVR_EVENT_STORED, KVR_TIER_GPU, text, i, i + 1);
		text[i] = 'a';
	}
	region_sound();
	for (i = 0; i < 2 * TIMES; i++) {
		(void)kvr_event_init(&e[i], sizeof(e[i]));
		e[i].kind = i % 2 == 0 ? KVR_EVENT_STORED : KVR_EVENT_REMOVED;
		e[i].hashes = e[i].tokens = 1;
		e[i].block_tokens = 1;
		e[i].flags = KVR_EVENT_PARENT;
		e[i].parent = name_of(text, DEEP);
	}
	observe(1, "others", 1);
	ck_assert_int_eq(apply_to(0, e, 2 * TIMES, &hash, 1, &token, 1, 1),
	    KVR_OK);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	apply_uncut(0, e, 100, &hash, 1, &token, 1);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	apply_uncut(0, e, 2 * TIMES, &hash, 1, &token, 1);
	ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(has(1, "others"), 6);
	region_sound();
}
END_TEST

/*
 * The steps end before the event, or within it: among copies, known blocks or
 * removals. The worker is degraded each time.
 */
START_TEST(no_steps_left)
{
	static const uint32_t tokens[] = { 'a', 'b', 'c', 'd' };
	uint64_t hashes[4];
	struct kvr_event e;
	uint32_t i;

	for (i = 0; i < 4; i++)
		hashes[i] = name_of("abcd", i + 1);
	for (i = 0; i < 6; i++) {
		holds_with(4096, 512 << 10, 1);
		stored("abcd", 0);
		(void)kvr_event_init(&e, sizeof(e));
		e.kind = i < 4 ? KVR_EVENT_STORED : KVR_EVENT_REMOVED;
		e.hashes = 4;
		e.tokens = i < 2 ? 4 : 0;
		e.block_tokens = i < 4 ? 1 : 0;
		steps_before = steps_most(k) / 4 - i % 2;
		apply_uncut(0, &e, 1, hashes, 4, tokens, 4);
		steps_before = 0;
		ck_assert_uint_eq(got.state, KVR_EVENTS_DEGRADED);
		ck_assert_uint_eq(has(0, "abcd"), i < 5 ? 4 : 3);
		region_sound();
	}
}
END_TEST

/* A worker that is only counted needs no hashes, nor memory for them. */
START_TEST(counting_hashes_nothing)
{
	struct kvr_worker facts;

	(void)kvr_worker_init(&facts, sizeof(facts));
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	alloc_fail_from(1);
	event(KVR_EVENT_STORED, KVR_TIER_GPU, "abc", 0, 3);
	alloc_reset();
	ck_assert_uint_eq(got.stored, 3);
	ck_assert_uint_eq(has(0, "abc"), 0);
}
END_TEST

/* A batch that was not hashed for a worker of this kind degrades it. */
START_TEST(without_hashes_it_degrades)
{
	struct kvr_event e;
	struct event_batch b = { .events = &e, .element = sizeof(e), .n = 1 };

	stored("abc", 0);
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	hold_apply(k, 0, &b, 1);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_DEGRADED);
	region_sound();
}
END_TEST

/* Blocks beyond the longest prompt are not held. */
START_TEST(too_long_a_path)
{
	struct kvr_options o = small_options();
	struct kvr_worker facts;

	region_end();
	o.event_blocks = 100;
	o.max_prompt_blocks = 4;
	region_of(&o);
	(void)kvr_worker_init(&facts, sizeof(facts));
	facts.retain = KVR_RETAIN_EVENTS;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	stored("abcdef", 0);
	ck_assert_uint_eq(got.orphans, 6);
	ck_assert_uint_eq(worker_stats(0).events_blocks, 0);
	stored("abc", 0);
	stored("abcdef", 3);
	ck_assert_uint_eq(got.orphans, 3);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	ck_assert_uint_eq(has(0, "abcdef"), 3);
	region_sound();
}
END_TEST

/* Images stand in the same tokens; a block with a second name is held once. */
START_TEST(two_names_of_one_block)
{
	static const uint32_t tokens[] = { 'a', 'b' };
	static const uint64_t other[] = { 77, 78 };
	struct kvr_event e;

	stored("ab", 0);
	stored("abc", 2);
	stored("abd", 2);
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 1;
	e.hashes = e.tokens = 2;
	ck_assert_int_eq(apply_to(0, &e, 1, other, 2, tokens, 2, 1), KVR_OK);
	ck_assert_uint_eq(got.orphans, 2);
	region_sound();
	e.kind = KVR_EVENT_REMOVED;
	ck_assert_int_eq(apply_to(0, &e, 1, other, 2, NULL, 0, 1), KVR_EINVAL);
	e.tokens = 0;
	ck_assert_int_eq(apply_to(0, &e, 1, other, 2, NULL, 0, 1), KVR_OK);
	region_sound();
	ck_assert_uint_eq(has(0, "abc"), 3);
	removed("abc", 2);
	removed("abd", 2);
	removed("ab", 0);
	ck_assert_uint_eq(has(0, "ab"), 0);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	/* one name of two blocks */
	stored("a", 0);
	event(KVR_EVENT_STORED, KVR_TIER_GPU, "b", 0, 1);
	(void)kvr_event_init(&e, sizeof(e));
	e.kind = KVR_EVENT_STORED;
	e.block_tokens = 1;
	e.hashes = e.tokens = 2;
	ck_assert_int_eq(apply_to(0, &e, 1, (const uint64_t[]){ 99,
	    name_of("a", 1) }, 2, tokens, 2, 1), KVR_OK);
	region_sound();
}
END_TEST

static uint64_t
open_for(const char *text)
{
	struct kvr_decision d = { .size = sizeof(d) };

	say(text);
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], 1, &d), KVR_OK);
	return d.lease;
}

static void
crowd_out(void)
{
	uint32_t i;

	for (i = 0; i < 3000; i++)
		observe_others(i, 1, 2 + i);
	region_sound();
}

/* A full cache passes over entries that a request has pinned: they stay. */
START_TEST(pinned_and_full)
{
	uint64_t lease;

	holds_with(100, 64 << 10, 1);
	stored("abc", 0);
	lease = open_for("abc");
	if (_i == 0)
		ck_assert_int_eq(kvr_lease_commit(k, lease, 1, 0), KVR_OK);
	crowd_out();
	ck_assert_uint_eq(has(0, "abc"), 3);
	if (_i == 1)
		ck_assert_int_eq(kvr_lease_commit(k, lease, 4000, 0), KVR_OK);
	if (_i == 2)
		ck_assert_int_eq(kvr_lease_abort(k, lease, 4000, 0), KVR_OK);
	else
		ck_assert_int_eq(kvr_lease_finish(k, lease, NULL, 4000, 0),
		    KVR_OK);
	region_sound();
	ck_assert_uint_eq(has(0, "abc"), 3);
	ck_assert_uint_eq(worker_stats(0).events_evicted, 0);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
}
END_TEST

/* They are as old as those that come in, so one of both must leave. */
START_TEST(pinned_and_full_at_once)
{
	uint64_t lease;

	holds_with(100, 64 << 10, 1);
	stored("abc", 0);
	lease = open_for("abc");
	observe_others(0, 3000, 1);
	region_sound();
	ck_assert_uint_ge(worker_stats(0).events_evicted, 1);
	ck_assert_int_eq(kvr_lease_abort(k, lease, 1, 0), KVR_OK);
	region_sound();
	ck_assert_uint_eq(has(0, "abc"), 0);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
}
END_TEST

/* A new stream has named nothing of what eviction passed over before it. */
START_TEST(passed_over_and_begun_anew)
{
	uint64_t lease;

	holds_with(100, 64 << 10, 1);
	stored("abc", 0);
	lease = open_for("abc");
	if (_i == 0)
		crowd_out();
	else
		observe_others(0, 3000, 1);
	ck_assert_int_eq(kvr_events_off(k, id[0]), KVR_OK);
	seq = 0;
	ck_assert_int_eq(apply_to(0, NULL, 0, NULL, 0, NULL, 0, 1), KVR_OK);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
	say("abc");
	ck_assert_int_eq(kvr_observe(k, p, id[0], 4000, 0, NULL), KVR_OK);
	ck_assert_int_eq(kvr_lease_abort(k, lease, 4000, 0), KVR_OK);
	region_sound();
	ck_assert_uint_eq(has(0, "abc"), 0);
}
END_TEST

/* All entries are this engine's, so only these can be evicted. */
START_TEST(no_room_but_its_own)
{
	char text[TEXT];
	uint32_t i, j;

	for (i = 0; i < 2; i++) {
		holds_with(4000, 230 << 10, 1);
		for (j = 0; j < 2000 && worker_stats(0).events_evicted == 0;
		     j++) {
			snprintf(text, sizeof(text), "%c%c%c%u", 'a' + j % 26,
			    'a' + j / 26 % 26, 'a' + j / 676 % 26, j);
			event(KVR_EVENT_STORED, KVR_TIER_GPU, text, 0,
			    strlen(text));
		}
		ck_assert_uint_gt(worker_stats(0).events_evicted, 0);
		if (i == 0)
			stored("zzz", 0);
		else
			removed(text, strlen(text) - 1);
		ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
		ck_assert_uint_eq(has(0, i == 0 ? "zzz" : text), i == 0 ? 3
		    : strlen(text) - 1);
		region_sound();
	}
}
END_TEST

/* The head of the list is a node, not an entry. */
START_TEST(a_bent_list_ends)
{
	struct slot *s = slot_at(k, 2);
	uint32_t head;

	observe(2, "abc", 1);
	head = s->by_stamp.head;
	s->by_stamp.head = child_of(0, 'a');
	ck_assert(!hold_nothing(k, 2));
	ck_assert(region_broken(k));
	s->by_stamp.head = head;
	k->region->counts.steps = 0;
	looks_set(k, 0);
	ck_assert(hold_nothing(k, 2));
	ck_assert_uint_eq(has(2, "abc"), 0);
}
END_TEST

/* Sizes that no block has, or that differ, and tiers that are not known. */
START_TEST(sizes_and_tiers_are_refused)
{
	static const uint64_t hashes[] = { 1, 2 };
	static const uint32_t tokens[] = { 'x', 'y' };
	struct kvr_event e[3];
	uint32_t i;

	for (i = 0; i < 3; i++) {
		(void)kvr_event_init(&e[i], sizeof(e[i]));
		e[i].kind = KVR_EVENT_STORED;
		e[i].hashes = 1;
	}
	/* no size is known yet */
	ck_assert_int_eq(apply_to(0, &e[0], 1, hashes, 2, tokens, 2, 1),
	    KVR_OK);
	ck_assert_uint_eq(got.state, KVR_EVENTS_COMPLETE);
	stored("w", 0);
	e[0].block_tokens = 1;
	e[0].tokens = 1;
	e[1].block_tokens = 2;
	e[2].block_tokens = UINT32_MAX;
	ck_assert_int_eq(apply_to(0, e, 3, hashes, 2, tokens, 2, 1), KVR_OK);
	ck_assert_uint_eq(got.refused, 2);
	ck_assert_uint_eq(has(0, "x"), 1);
	e[0].kind = KVR_EVENT_REMOVED;
	e[0].tier = 9;
	ck_assert_int_eq(apply_to(0, e, 1, hashes, 2, tokens, 2, 1), KVR_OK);
	ck_assert_uint_eq(has(0, "x"), 1);
	region_sound();
}
END_TEST

/* A replay for a router that joins late resets nothing, and empties. */
START_TEST(the_past_has_restarts_too)
{
	uint64_t same = id[0];

	stored("abc", 0);
	flags_of_batch = KVR_BATCH_PAST;
	cleared();
	ck_assert_uint_eq(id[0], same);
	ck_assert_uint_eq(has(0, "abc"), 0);
	stored("abx", 0);
	ck_assert_uint_eq(has(0, "abx"), 3);
	ck_assert_int_eq(named(KVR_EVENT_RESTARTED, 0, "a", 0, 0), KVR_OK);
	ck_assert_uint_eq(id[0], same);
	ck_assert_uint_eq(has(0, "abx"), 0);
	region_sound();
}
END_TEST

/* A clear voids the events before it in the batch. */
START_TEST(a_clear_within_a_batch)
{
	static const uint32_t tokens[] = { 'x', 'y', 'z' };
	struct kvr_event e[4];
	uint64_t hashes[3];
	uint32_t i;

	stored("abc", 0);
	for (i = 0; i < 4; i++) {
		(void)kvr_event_init(&e[i], sizeof(e[i]));
		e[i].kind = KVR_EVENT_STORED;
		e[i].block_tokens = 1;
		e[i].hashes = e[i].tokens = 3;
	}
	for (i = 0; i < 3; i++)
		hashes[i] = name_of("xyz", i + 1);
	e[1].kind = KVR_EVENT_CLEARED;
	e[1].hashes = e[1].tokens = 0;
	e[2].hashes = e[2].tokens = 2;
	e[3].kind = KVR_EVENT_REMOVED;
	e[3].hashes = 1;
	e[3].hashes_at = 1;
	e[3].tokens = 0;
	ck_assert_int_eq(apply_to(0, e, 4, hashes, 3, tokens, 3, 1), KVR_OK);
	region_sound();
	ck_assert_uint_eq(has(0, "abc"), 0);
	ck_assert_uint_eq(has(0, "xyz"), 1);
}
END_TEST

/* A count of copies that does not fit its word stays at the maximum. */
START_TEST(too_many_copies_stay)
{
	uint32_t a;

	stored("ab", 0);
	a = alias_find(k, stream_at(k, 1)->life, name_of("ab", 2));
	ck_assert_uint_gt(a, 0);
	write_once(alias_at(k, a)->copies, UINT16_MAX);
	stored("ab", 0);
	removed("ab", 1);
	removed("ab", 1);
	ck_assert_uint_eq(has(0, "ab"), 2);
	holds_with(4096, 512 << 10, 1);
	each = 2;
	stored("ab", 0);
	a = alias_find(k, stream_at(k, 1)->life, name_of("ab", 2));
	a = alias_at(k, a)->parent;
	write_once(alias_at(k, a)->copies, UINT16_MAX);
	removed("ab", 0);
	ck_assert_uint_eq(has(0, "ab"), 1);
}
END_TEST

/* The drop takes more than one call; pinned entries stay. */
START_TEST(a_stream_begins_in_parts)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t i, busy = 0;
	int error;

	holds_with(1000, 1 << 20, 1);
	say("abcdef");
	ck_assert_int_eq(kvr_lease_open_on(k, p, NULL, id[0], 1, &d), KVR_OK);
	ck_assert_int_eq(kvr_lease_commit(k, d.lease, 1, 0), KVR_OK);
	for (i = 0; i < 1500; i++) {
		const uint32_t tokens[] = { 1000 + i, 2 };

		ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, tokens, 2),
		    KVR_OK);
		ck_assert_int_eq(kvr_observe(k, p, id[0], 1, 0, NULL), KVR_OK);
	}
	for (i = 0; i <= 1500 / 256; i++) {
		error = named(KVR_EVENT_STORED, 1, "x", 0, 1);
		region_sound();
		if (error == KVR_OK)
			break;
		ck_assert_int_eq(error, KVR_EBUSY);
		busy++;
	}
	ck_assert_uint_gt(busy, 0);
	ck_assert_int_eq(error, KVR_OK);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_EVENTS);
	ck_assert_uint_eq(has(0, "abcdef"), 6);
	ck_assert_int_eq(kvr_lease_finish(k, d.lease, NULL, 1, 0), KVR_OK);
	region_sound();
	ck_assert_uint_eq(has(0, "abcdef"), 0);
}
END_TEST

/* A block that is removed twice leaves one hole. */
START_TEST(a_hole_that_is_removed_again)
{
	stored("abcd", 0);
	event(KVR_EVENT_REMOVED, KVR_TIER_GPU, "abcd", 1, 2);
	event(KVR_EVENT_REMOVED, KVR_TIER_GPU, "abcd", 1, 2);
	stored("abx", 2); /* behind the hole */
	ck_assert_uint_eq(got.orphans, 1);
	removed("abcd", 2);
	ck_assert_uint_eq(has(0, "abcd"), 1);
}
END_TEST

/* An alias points to a place where the index has no block; the call ends. */
START_TEST(damage_ends)
{
	struct alias *a;
	uint32_t i;

	for (i = 0; i < 4; i++) {
		holds_with(4096, 512 << 10, 1);
		stored("abcdef", 0);
		a = alias_at(k, alias_find(k, stream_at(k, 1)->life,
		    name_of("abcdef", i < 2 ? 6 : 3)));
		if (i % 2 == 0)
			a->sequence++;
		else
			stream_at(k, 1)->life++;
		event(i < 2 ? KVR_EVENT_REMOVED : KVR_EVENT_STORED,
		    KVR_TIER_GPU, i < 2 ? "abcdef" : "abcxyz", i < 2 ? 5 : 3,
		    6);
		ck_assert_uint_le(has(0, "abcdef"), 6);
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		event_recover(k);
	}
}
END_TEST

/* ------------------------------------------------------ sliding windows --- */

/* The end of a request is known; the end of an answer does not count. */
START_TEST(ends_of_requests)
{
	uint64_t lease;

	windows(0, KVR_WINDOW_BOUNDARY);
	stored("abcdefgh", 0);
	lease = reserve(0, "abcdefghijklmn", 1);
	commit(lease, 1);
	stored("abcdefghijklmn", 8);
	stored("abcdefghijklmnopqrst", 14);
	region_sound();
	ck_assert_uint_eq(reuses("abcdefghijklmnopqrstX"), 14);
	finish(lease, 2);
	stored("abcdefghijklmnopqrstu", 20);
	region_sound();
	ck_assert_uint_eq(has(0, "abcdefghijklmnopqrstu"), 21);
	ck_assert_uint_eq(reuses("abcdefghijklmnopqrstuX"), 14);
	ck_assert_uint_eq(reuses("abcdefghijklmX"), 8);
	ck_assert_uint_eq(reuses("abcdefgX"), 0);
}
END_TEST

/* A request that is not dispatched marks no end, and a removed end is lost. */
START_TEST(no_ends_of_requests)
{
	uint64_t lease;

	windows(0, KVR_WINDOW_BOUNDARY);
	stored("a", 0);
	give_up(reserve(0, "abcdefghij", 1), 1);
	ck_assert_uint_eq(reuses("abcdefghijX"), 0);
	lease = reserve(0, "abcdefghij", 2);
	commit(lease, 2);
	stored("abcdefghij", 1);
	finish(lease, 3);
	ck_assert_uint_eq(reuses("abcdefghijX"), 10);
	removed("abcdefghij", 9);
	stored("abcdefghij", 9);
	ck_assert_uint_eq(has(0, "abcdefghij"), 10);
	ck_assert_uint_eq(reuses("abcdefghijX"), 1);
}
END_TEST

/* Requests of other routers end where stored blocks end or part. */
START_TEST(ends_of_what_is_stored)
{
	windows(0, KVR_WINDOW_BOUNDARY);
	stored("abcdefgh", 0);
	stored("abcdefghi", 8);
	stored("abcdefghij", 9);
	ck_assert_uint_eq(reuses("abcdefghijX"), 8);
	ck_assert_uint_eq(reuses("abcdefX"), 0);
	stored("abcdefuvwxyz", 6);
	ck_assert_uint_eq(reuses("abcdefX"), 6);
	ck_assert_uint_eq(reuses("abcdefuvwxyzX"), 12);
	ck_assert_uint_eq(reuses("abcdefuvwX"), 6);
	removed("abcdefuvwxyz", 10);
	ck_assert_uint_eq(has(0, "abcdefuvwxyz"), 10);
	ck_assert_uint_eq(reuses("abcdefuvwxX"), 6);
}
END_TEST

/* A foreign prompt may branch off in the middle of a running one. */
START_TEST(parting_from_what_runs)
{
	uint64_t lease;

	windows(0, KVR_WINDOW_BOUNDARY);
	lease = reserve(0, "abcdefghij", 1);
	commit(lease, 1);
	stored("abcdefghij", 0);
	stored("abcdefuvwxyz", 6);
	ck_assert_uint_eq(reuses("abcdefX"), 6);
	ck_assert_uint_eq(reuses("abcdefuvwxyzX"), 12);
	stored("abcdefpqr", 6);
	ck_assert_uint_eq(reuses("abcdefpqrX"), 9);
	finish(lease, 2);
	region_sound();
	ck_assert_uint_eq(reuses("abcdefghijX"), 10);
}
END_TEST

/* A running prompt has one end, in however many parts it is computed. */
START_TEST(parts_of_what_runs)
{
	uint64_t lease;

	windows(0, KVR_WINDOW_BOUNDARY);
	lease = reserve(0, "abcdefghijkl", 1);
	commit(lease, 1);
	stored("abcdef", 0);
	stored("abcdefghijkl", 6);
	ck_assert_uint_eq(reuses("abcdefghX"), 0);
	finish(lease, 2);
	region_sound();
	ck_assert_uint_eq(reuses("abcdefghX"), 0);
	ck_assert_uint_eq(reuses("abcdefghijklX"), 12);
}
END_TEST

/* A cut in a long event is no end of a prompt either. */
START_TEST(pieces_are_no_ends)
{
	char text[TEXT], part[TEXT];
	uint32_t i;

	holds_with(4096, 512 << 10, 1);
	windows(0, KVR_WINDOW_BOUNDARY);
	for (i = 0; i < 400; i++)
		text[i] = (char)('a' + i % 3 + i % 20);
	text[400] = '\0';
	memcpy(text, "abcde", 5);
	stored("abcd", 0);
	stored("abcde", 4);
	stored(text, 5);
	ck_assert_uint_eq(has(0, text), 400);
	memcpy(part, text, 300);
	part[300] = 'X';
	part[301] = '\0';
	ck_assert_uint_eq(has(0, part), 300);
	ck_assert_uint_eq(reuses(part), 4);
	stored(part, 300);
	memcpy(part + 300, "YZ", 3);
	ck_assert_uint_eq(reuses(part), 4);
	text[400] = 'X';
	text[401] = '\0';
	ck_assert_uint_eq(reuses(text), 400);
}
END_TEST

/* Blocks [from, to) of a text by events of so many, in one batch. */
static void
stored_by(const char *text, uint32_t from, uint32_t to, uint32_t step)
{
	struct kvr_event e[TEXT];
	uint64_t hashes[TEXT];
	uint32_t tokens[TEXT], i;
	size_t n = 0;

	for (i = 0; i < to; i++) {
		hashes[i] = name_of(text, i + 1);
		tokens[i] = (unsigned char)text[i];
	}
	for (i = from; i < to; i += step, n++) {
		(void)kvr_event_init(&e[n], sizeof(e[n]));
		e[n].kind = KVR_EVENT_STORED;
		e[n].block_tokens = 1;
		e[n].hashes_at = e[n].tokens_at = i;
		e[n].hashes = e[n].tokens = to - i < step ? to - i : step;
		e[n].flags = i > 0 ? KVR_EVENT_PARENT : 0;
		e[n].parent = i > 0 ? hashes[i - 1] : 0;
	}
	ck_assert_int_eq(apply_to(0, e, n, hashes, to, tokens, to, 1), KVR_OK);
	region_sound();
}

/* A run may be of several events, and of as many pieces. */
START_TEST(runs_of_events)
{
	char text[TEXT], part[TEXT];
	uint32_t i;

	windows(0, KVR_WINDOW_BOUNDARY);
	for (i = 0; i < 400; i++)
		text[i] = (char)('a' + i % 3 + i % 20);
	text[400] = 'X';
	text[401] = '\0';
	stored_by(text, 0, 10, (uint32_t)_i);
	ck_assert_uint_eq(reuses("abcX"), 0);
	stored_by(text, 10, 400, (uint32_t)_i);
	ck_assert_uint_eq(has(0, text), 400);
	ck_assert_uint_eq(reuses(text), 400);
	memcpy(part, text, 50);
	memcpy(part + 50, "XYZXYZ", 7);
	stored_by(part, 50, 56, (uint32_t)_i);
	ck_assert_uint_eq(reuses(part), 55); /* and one is computed */
	part[51] = 'W';
	part[50] = 'W';
	ck_assert_uint_eq(reuses(part), 50);
	for (i = 11; i < 50; i += 7) {
		memcpy(part, text, i);
		memcpy(part + i, "Y", 2);
		ck_assert_uint_eq(reuses(part), 10);
	}
}
END_TEST

/* The rest of two texts, in one batch, behind so many blocks. */
static void
stored_two(const char *one, const char *two, uint32_t from)
{
	const char *text[] = { one, two };
	struct kvr_event e[2];
	uint64_t hashes[TEXT];
	uint32_t tokens[TEXT], i, j, n = 0;

	for (i = 0; i < 2; i++) {
		(void)kvr_event_init(&e[i], sizeof(e[i]));
		e[i].kind = KVR_EVENT_STORED;
		e[i].block_tokens = 1;
		e[i].hashes_at = e[i].tokens_at = n;
		e[i].hashes = e[i].tokens = strlen(text[i]) - from;
		e[i].flags = KVR_EVENT_PARENT;
		e[i].parent = name_of(text[i], from);
		for (j = from; text[i][j] != '\0'; j++) {
			hashes[n] = name_of(text[i], j + 1);
			tokens[n++] = (unsigned char)text[i][j];
		}
	}
	ck_assert_int_eq(apply_to(0, e, 2, hashes, n, tokens, n, 1), KVR_OK);
	region_sound();
}

/* Two runs of one batch do not join, and one may be an answer. */
START_TEST(runs_beside_each_other)
{
	uint64_t lease;

	windows(0, KVR_WINDOW_BOUNDARY);
	stored("xyzw", 0);
	lease = reserve(0, "abcd", 1);
	commit(lease, 1);
	stored("abcd", 0);
	stored_two("abcdefg", "xyzwuv", 4);
	ck_assert_uint_eq(reuses("abcdefgX"), 4);
	ck_assert_uint_eq(reuses("xyzwuvX"), 6);
	finish(lease, 2);
	stored_two("xyzwab", "abcdppp", 4);
	ck_assert_uint_eq(reuses("abcdpppX"), 7);
	ck_assert_uint_eq(reuses("xyzwabX"), 6);
}
END_TEST

/* Blocks behind a running prompt count as its answer until it ends. */
START_TEST(runs_of_answers)
{
	uint64_t lease;

	windows(0, KVR_WINDOW_BOUNDARY);
	lease = reserve(0, "abcd", 1);
	commit(lease, 1);
	stored("abcd", 0);
	stored_by("abcdefghij", 4, 10, 2);
	ck_assert_uint_eq(has(0, "abcdefghij"), 10);
	ck_assert_uint_eq(reuses("abcdefghijX"), 4);
	finish(lease, 2);
}
END_TEST

/* The tokens of a run fill a memory of tails once. */
START_TEST(runs_fill_once)
{
	char text[] = "?babababa";
	uint32_t i;

	windows(16, KVR_WINDOW_DUAL);
	stored("abcdefgh", 0);
	for (i = 0; i < 3; i++) {
		text[0] = (char)('p' + i);
		stored_by(text, 0, 8, 1);
	}
	ck_assert_uint_eq(reuses("abcdefghX"), 8);
	for (; i < 6; i++) {
		text[0] = (char)('p' + i);
		stored_by(text, 0, 8, 1);
	}
	ck_assert_uint_eq(reuses("abcdefghX"), 0);
}
END_TEST

/* An end that was removed is marked again when its block is stored again. */
START_TEST(an_end_that_was_removed)
{
	uint64_t lease;
	uint32_t i;

	windows(0, KVR_WINDOW_BOUNDARY);
	for (i = 0; i < 2; i++) {
		lease = reserve(0, "abcdefghij", 2 * i + 1);
		commit(lease, 2 * i + 1);
		stored("abcdefghij", i == 0 ? 0 : 6);
		finish(lease, 2 * i + 2);
		ck_assert_uint_eq(reuses("abcdefghijX"), 10);
		if (i == 0)
			removed("abcdefghij", 6);
	}
}
END_TEST

/* The last piece of a run may be a block. */
START_TEST(a_run_in_pieces)
{
	enum { LEAST = 255 };
	uint32_t i, n = LEAST + (uint32_t)_i / 2;
	char text[TEXT];

	windows(0, KVR_WINDOW_BOUNDARY);
	for (i = 0; i < n; i++)
		text[i] = (char)('a' + i % 3 + i % 20);
	text[n] = 'X';
	text[n + 1] = '\0';
	stored_by(text, 0, n, _i % 2 == 0 ? 1 : 64);
	ck_assert_uint_eq(has(0, text), n);
	ck_assert_uint_eq(reuses(text), n);
}
END_TEST

/* Where it does not matter, no end is kept apart. */
START_TEST(ends_that_do_not_matter)
{
	windows(0, (uint32_t)_i);
	stored("abcd", 0);
	stored("abcdefgh", 4);
	ck_assert_uint_eq(worker_stats(0).entries, _i == KVR_WINDOW_FULL ||
	    _i == KVR_WINDOW_DENSE ? 1 : 2);
}
END_TEST

/* A dense engine resumes anywhere, until the end is removed. */
START_TEST(dense_by_events)
{
	windows(0, KVR_WINDOW_DENSE);
	stored("abcdefghij", 0);
	give_up(reserve(0, "abcdefghijkl", 1), 1);
	commit(reserve(0, "abcdefghijkl", 1), 1);
	ck_assert_uint_eq(reuses("abcdefX"), 6);
	stored("abcdefghijkl", 10);
	ck_assert_uint_eq(reuses("abcdefX"), 6);
	removed("abcdefghijkl", 11);
	ck_assert_uint_eq(reuses("abcdefX"), 6); /* it runs */
}
END_TEST

START_TEST(dense_ends)
{
	windows(0, KVR_WINDOW_DENSE);
	stored("abcdefghij", 0);
	ck_assert_uint_eq(reuses("abcdefX"), 6);
	removed("abcdefghij", 9);
	ck_assert_uint_eq(has(0, "abcdefX"), 6);
	ck_assert_uint_eq(reuses("abcdefX"), 0);
	stored("abcdefghij", 9);
	ck_assert_uint_eq(reuses("abcdefX"), 6);
}
END_TEST

/* A memory of tails is filled by the prompts of all routers. */
START_TEST(tails_age)
{
	windows(16, KVR_WINDOW_DUAL);
	stored("abcdefgh", 0);
	ck_assert_uint_eq(reuses("abcdefghX"), 8);
	stored("babababa", 0);
	stored("cacacaca", 0);
	ck_assert_uint_eq(reuses("abcdefghX"), 8);
	stored("dadadada", 0);
	stored("eaeaeaea", 0);
	stored("fafafafa", 0);
	ck_assert_uint_eq(has(0, "abcdefghX"), 8);
	ck_assert_uint_eq(reuses("abcdefghX"), 0);
	ck_assert_uint_eq(reuses("fafafafaX"), 8);
}
END_TEST

/* ----------------------------------------------------------- by chance --- */

/*
 * The worker has the larger of the running prompt and the engine's blocks. A
 * part of a block counts, too: the index does not round to the engine's
 * blocks.
 */
static void
ck_equal(const char *text)
{
	uint32_t want = running_has(text), i, n;

	for (i = 1; i < n_prefixes; i++) {
		n = prefixes[i].length == 0 ? 0
		    : common(text, prefixes[i].text);
		want = n > want ? n : want;
	}
	must(has(0, text) == want);
}

static void
run_engine(uint64_t steps, uint32_t size, uint32_t mode)
{
	char text[TEXT];

	by_chance();
	holds_with(8192, 1 << 20, 1);
	windows(mode == KVR_WINDOW_DUAL ? 100 : 0, mode);
	each = size;
	engine_with(20, 5);
	cleared();
	while (steps-- > 0) {
		engine_steps(3);
		random_text(text);
		ck_equal(text);
		must(reuses(text) <= has(0, text));
		region_sound();
	}
}

START_TEST(equal_to_the_engine)
{
	run_engine(test_amount(6000), (uint32_t)_i, KVR_WINDOW_FULL);
}
END_TEST

START_TEST(equal_with_windows)
{
	run_engine(test_amount(3000), 1, (uint32_t)_i);
}
END_TEST

static void
add_doubts(TCase *t)
{
	tcase_add_loop_test(t, all_removals_are_there, 0, 2);
	tcase_add_test(t, removals_are_missing);
	tcase_add_test(t, early_removals_prove_nothing);
	tcase_add_test(t, a_capacity_that_is_told_too_small);
	tcase_add_test(t, reports_contradict_events);
	tcase_add_test(t, reports_before_a_stream);
	tcase_add_test(t, two_sizes_in_one_group);
	tcase_add_test(t, copies_that_are_none);
	tcase_add_test(t, a_caller_that_is_gone);
	tcase_add_test(t, times_of_callers);
	tcase_add_test(t, scopes_that_no_prompt_has);
	tcase_add_test(t, many_scopes);
}

Suite *suite_hold(void);

Suite *
suite_hold(void)
{
	Suite *s = suite_create("hold");
	TCase *t = tcase_create("hold");

	tcase_add_checked_fixture(t, setup, region_end);
	add_doubts(t);
	tcase_add_test(t, stored_is_held_until_it_is_removed);
	tcase_add_test(t, time_ends_nothing);
	tcase_add_test(t, copies_are_counted_over_tiers);
	tcase_add_test(t, full_reports_are_no_copies);
	tcase_add_test(t, holes_close);
	tcase_add_test(t, copies_behind_a_hole_count);
	tcase_add_test(t, unknown_parents_are_orphans);
	tcase_add_test(t, a_clear_ends_all);
	tcase_add_test(t, a_stream_begins_with_nothing);
	tcase_add_test(t, lost_batches_degrade);
	tcase_add_test(t, an_empty_region_degrades);
	tcase_add_test(t, another_retention_degrades);
	tcase_add_loop_test(t, a_window_degrades_nothing, KVR_WINDOW_FULL,
	    KVR_WINDOW_DUAL + 1);
	tcase_add_test(t, a_lease_counts_while_it_runs);
	tcase_add_test(t, a_full_table_takes_no_more);
	tcase_add_loop_test(t, a_table_full_of_dead_waits, 0, 2);
	tcase_add_test(t, no_alias_for_a_root);
	tcase_add_test(t, larger_blocks_of_the_engine);
	tcase_add_test(t, blocks_that_do_not_fit_degrade);
	tcase_add_loop_test(t, a_full_region_keeps_what_is_used, 0, 2);
	tcase_add_loop_test(t, what_has_left_comes_back, 0, 2);
	tcase_add_test(t, what_has_left_comes_back_to_a_full_table);
	tcase_add_test(t, what_has_left_is_removed);
	tcase_add_test(t, a_burst_costs_hints);
	tcase_add_test(t, no_room_to_part);
	tcase_add_test(t, local_hashes_will_do);
	tcase_add_test(t, another_handle_goes_on);
	tcase_add_test(t, names_alone_are_copies);
	tcase_add_test(t, a_root_has_no_copies);
	tcase_add_loop_test(t, copies_of_two_kinds_degrade, 0, 2);
	tcase_add_test(t, too_many_steps_degrade);
	tcase_add_test(t, no_steps_left);
	tcase_add_test(t, counting_hashes_nothing);
	tcase_add_test(t, without_hashes_it_degrades);
	tcase_add_test(t, too_long_a_path);
	tcase_add_test(t, two_names_of_one_block);
	tcase_add_loop_test(t, pinned_and_full, 0, 3);
	tcase_add_test(t, pinned_and_full_at_once);
	tcase_add_loop_test(t, passed_over_and_begun_anew, 0, 2);
	tcase_add_test(t, no_room_but_its_own);
	tcase_add_test(t, a_bent_list_ends);
	tcase_add_test(t, sizes_and_tiers_are_refused);
	tcase_add_test(t, the_past_has_restarts_too);
	tcase_add_test(t, a_clear_within_a_batch);
	tcase_add_test(t, too_many_copies_stay);
	tcase_add_test(t, a_stream_begins_in_parts);
	tcase_add_test(t, a_hole_that_is_removed_again);
	tcase_add_test(t, damage_ends);
	tcase_add_test(t, ends_of_requests);
	tcase_add_test(t, no_ends_of_requests);
	tcase_add_test(t, ends_of_what_is_stored);
	tcase_add_test(t, parting_from_what_runs);
	tcase_add_test(t, parts_of_what_runs);
	tcase_add_test(t, pieces_are_no_ends);
	tcase_add_loop_test(t, runs_of_events, 1, 4);
	tcase_add_loop_test(t, runs_of_events, 64, 65);
	tcase_add_test(t, runs_beside_each_other);
	tcase_add_test(t, runs_of_answers);
	tcase_add_test(t, runs_fill_once);
	tcase_add_test(t, an_end_that_was_removed);
	tcase_add_loop_test(t, a_run_in_pieces, 0, 10);
	tcase_add_loop_test(t, ends_that_do_not_matter, KVR_WINDOW_FULL,
	    KVR_WINDOW_DUAL + 1);
	tcase_add_test(t, dense_by_events);
	tcase_add_test(t, dense_ends);
	tcase_add_test(t, tails_age);
	tcase_add_loop_test(t, equal_to_the_engine, 1, 4);
	tcase_add_loop_test(t, equal_with_windows, KVR_WINDOW_BOUNDARY,
	    KVR_WINDOW_DUAL + 1);
	suite_add_tcase(s, t);
	return s;
}
