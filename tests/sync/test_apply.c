/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_apply.c - the actions of one router become known to another: frames are
 * carried by hand, whole, twice, late, in other orders, or not at all.
 */
#include <check.h>
#include <kvroute_events.h>
#include <kvroute_replica.h>
#include <limits.h>
#include <stdlib.h>

#include "busy.h"
#include "replica.h"
#include "rng.h"
#include "test.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)

/* Two clocks that have nothing to do with each other. */
static const struct replica_options one = { .origin = 11, .secret = 's',
    .now = 100 * SECOND },
    two = { .origin = 22, .secret = 's', .now = 100 * SECOND,
    .skew = 5000 * SECOND, .backwards = true };

enum { LONG = 20000, MANY = PUBLISH_LEASES_MAX + 5000 };

static struct replica *a, *b;
static int64_t now;

static void
begin(const struct replica_options *first, const struct replica_options *second)
{
	a = malloc(sizeof(*a));
	b = malloc(sizeof(*b));
	ck_assert_ptr_nonnull(a);
	ck_assert_ptr_nonnull(b);
	ck_assert(replica_init(a, first));
	ck_assert(replica_init(b, second));
	now = first->now;
}

static void
finish(void)
{
	ck_assert_int_eq(kvr_check(a->k), KVR_OK);
	ck_assert_int_eq(kvr_check(b->k), KVR_OK);
	replica_free(a);
	replica_free(b);
	free(a);
	free(b);
}

/* Time passes on both sides; frames come after `delay`. */
static void
pass(int64_t time, int64_t delay)
{
	const int64_t end = now + time;

	while (now < end) {
		now += 10 * MS < end - now ? 10 * MS : end - now;
		replica_run(a, now);
		replica_run(b, now);
		replica_carry_all(a, b, now + delay);
		replica_carry_all(b, a, now + delay);
	}
}

static void
both(void)
{
	begin(&one, &two);
	pass(50 * MS, 0);
}

static uint64_t
open_on(struct replica *r, uint32_t prompt, uint32_t blocks, char worker)
{
	struct kvr_decision d = { .size = sizeof(d) };

	ck_assert_int_eq(kvr_lease_open_on(r->k,
	    replica_prompt(r, prompt, blocks), NULL, replica_worker(r, worker),
	    r->now + r->skew, &d), KVR_OK);
	ck_assert_int_eq(kvr_lease_commit(r->k, d.lease, r->now + r->skew, 0),
	    KVR_OK);
	return d.lease;
}

static void
close_it(struct replica *r, uint64_t lease)
{
	ck_assert_int_eq(kvr_lease_finish(r->k, lease, NULL, r->now + r->skew,
	    0), KVR_OK);
}

START_TEST(a_lease_counts_there_too)
{
	uint64_t lease;

	both();
	lease = open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'a'), 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	close_it(a, lease);
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	ck_assert_uint_eq(replica_leases(b), 0);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	finish();
}
END_TEST

START_TEST(what_was_applied_is_not_sent_again)
{
	uint64_t records;

	both();
	pass(2300 * MS, 0);
	open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	records = publish_counts(b->publish).records;
	pass(100 * MS, 0);
	ck_assert_uint_eq(publish_counts(b->publish).records, records);
	ck_assert_uint_eq(replica_leases(a), 1);
	/* And one's own frames are not applied. */
	ck_assert_int_eq(kvr_observe(a->k, replica_prompt(a, 2, 3),
	    replica_worker(a, 'a'), a->now, 0, NULL), KVR_OK);
	replica_run(a, now += 10 * MS);
	ck_assert_uint_eq(a->n, 1);
	replica_carry(a, 0, 1, a, now);
	ck_assert_uint_eq(apply_counts(a->apply).own, 1);
	finish();
}
END_TEST

START_TEST(frames_count_once)
{
	uint64_t lease;
	size_t n;

	both();
	lease = open_on(a, 1, 5, 'b');
	replica_run(a, now += 10 * MS);
	n = a->n;
	ck_assert_uint_gt(n, 0);
	replica_carry(a, 0, n, b, now);
	replica_carry(a, 0, n, b, now);
	ck_assert_uint_eq(apply_counts(b->apply).repeated, n);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	close_it(a, lease);
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_leases(b), 0);
	finish();
}
END_TEST

START_TEST(an_end_may_overtake_its_beginning)
{
	uint64_t lease;
	size_t n;

	both();
	lease = open_on(a, 1, 5, 'b');
	replica_run(a, now += 10 * MS);
	n = a->n;
	close_it(a, lease);
	replica_run(a, now += 10 * MS);
	ck_assert_uint_gt(a->n, n);
	replica_carry(a, n, a->n, b, now);
	replica_carry(a, 0, n, b, now);
	ck_assert_uint_eq(apply_counts(b->apply).reordered, n);
	ck_assert_uint_eq(apply_counts(b->apply).lost, 0);
	ck_assert_uint_eq(replica_leases(b), 0);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	finish();
}
END_TEST

static void
lose(struct replica *r)
{
	while (r->n > 0)
		free(r->sent[--r->n].bytes);
}

START_TEST(a_lost_end_is_repaired)
{
	uint64_t lease, other;

	both();
	lease = open_on(a, 1, 5, 'b');
	other = open_on(a, 2, 5, 'b');
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 2);
	close_it(a, lease);
	replica_run(a, now += 10 * MS);
	lose(a);
	pass(2 * SECOND, 0);
	ck_assert_uint_eq(apply_counts(b->apply).lost, 1);
	ck_assert_uint_eq(apply_counts(b->apply).repaired, 1);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	close_it(a, other);
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	finish();
}
END_TEST

START_TEST(a_lost_beginning_is_no_harm)
{
	uint64_t lease;

	both();
	lease = open_on(a, 1, 5, 'b');
	replica_run(a, now += 10 * MS);
	lose(a);
	ck_assert_int_eq(kvr_lease_first_token(a->k, lease, a->now, 0), KVR_OK);
	close_it(a, lease);
	pass(2 * SECOND, 0);
	ck_assert_uint_eq(apply_counts(b->apply).unknown_lease, 2);
	ck_assert_uint_eq(replica_leases(b), 0);
	finish();
}
END_TEST

START_TEST(a_lost_commit_is_understood)
{
	struct kvr_decision d = { .size = sizeof(d) };

	both();
	ck_assert_int_eq(kvr_lease_open_on(a->k, replica_prompt(a, 1, 5), NULL,
	    replica_worker(a, 'b'), a->now, &d), KVR_OK);
	pass(20 * MS, 0);
	ck_assert_int_eq(kvr_lease_commit(a->k, d.lease, a->now, 0), KVR_OK);
	replica_run(a, now += 10 * MS);
	lose(a);
	ck_assert_int_eq(kvr_lease_first_token(a->k, d.lease, a->now, 0),
	    KVR_OK);
	pass(20 * MS, 0);
	ck_assert_uint_eq(apply_counts(b->apply).refused, 0);
	ck_assert_uint_eq(apply_counts(b->apply).unknown_lease, 0);
	finish();
}
END_TEST

START_TEST(strangers_have_no_effect)
{
	struct replica_options other = two, keyed = two;

	other.secret = 't';
	begin(&one, &other);
	open_on(a, 1, 5, 'b');
	pass(2 * SECOND, 0);
	ck_assert_uint_gt(apply_counts(b->apply).frames[FRAME_STRANGER], 2);
	ck_assert_uint_eq(apply_counts(b->apply).peers, 0);
	ck_assert_uint_eq(replica_leases(b), 0);
	finish();
	keyed.keyed = true;
	begin(&one, &keyed);
	pass(2 * SECOND, 0);
	ck_assert_uint_gt(apply_counts(a->apply).frames[FRAME_FORGED], 1);
	ck_assert_uint_gt(apply_counts(b->apply).frames[FRAME_FORGED], 1);
	finish();
}
END_TEST

START_TEST(unknown_workers_are_not_made)
{
	struct replica_options more = one;
	struct kvr_stats stats = { .size = sizeof(stats) };

	more.workers = REPLICA_WORKERS + 1;
	begin(&more, &two);
	pass(50 * MS, 0);
	open_on(a, 1, 5, 'e');
	pass(20 * MS, 0);
	ck_assert_uint_ge(apply_counts(b->apply).unknown_worker, 2);
	ck_assert_int_eq(kvr_stats_get(b->k, &stats), KVR_OK);
	ck_assert_uint_eq(stats.workers, REPLICA_WORKERS);
	ck_assert_uint_eq(stats.leases, 0);
	finish();
}
END_TEST

START_TEST(a_new_worker_is_told_before_its_requests)
{
	uint64_t id;

	both();
	ck_assert_int_eq(kvr_worker_add(b->k, "e", 1, NULL, &id), KVR_OK);
	pass(1300 * MS, 0);
	ck_assert_int_eq(kvr_worker_add(a->k, "e", 1, NULL, &id), KVR_OK);
	open_on(a, 1, 5, 'e');
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'e'), 1);
	finish();
}
END_TEST

START_TEST(a_silent_peer_ends)
{
	both();
	open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_leases(b), 1);
	replica_run(b, now + 2900 * MS);
	ck_assert_uint_eq(replica_leases(b), 1);
	replica_run(b, now + 3100 * MS);
	ck_assert_uint_eq(replica_leases(b), 0);
	ck_assert_uint_eq(apply_counts(b->apply).leases, 0);
	ck_assert_uint_eq(apply_counts(b->apply).silences, 1);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	replica_run(b, now + 70 * SECOND);
	ck_assert_uint_eq(apply_counts(b->apply).peers, 0);
	finish();
}
END_TEST

START_TEST(a_new_daemon_begins_clean)
{
	struct replica_options again = two;
	uint64_t lease;

	both();
	lease = open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_leases(b), 1);
	again.origin = 23;
	ck_assert(replica_restart(b, &again));
	ck_assert_uint_eq(replica_leases(b), 0);
	/* The peers learn of each other's workers. */
	pass(200 * MS, 0);
	close_it(a, lease);
	lease = open_on(a, 2, 5, 'b');
	pass(200 * MS, 0);
	ck_assert_uint_eq(replica_leases(b), 1);
	close_it(a, lease);
	pass(200 * MS, 0);
	ck_assert_uint_eq(replica_leases(b), 0);
	ck_assert_uint_eq(replica_leases(a), 0);
	finish();
}
END_TEST

static struct apply_peer
the_peer(const struct replica *r)
{
	struct apply_peer peer;

	ck_assert_uint_eq(apply_peers(r->apply, &peer, 1), 1);
	return peer;
}

/* The peer's running requests, its outcomes, and the records not applied. */
START_TEST(figures_of_a_peer)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	uint64_t lease, frames, late;
	uint32_t i;

	both();
	ck_assert_uint_eq(the_peer(b).requests, 0);
	ck_assert_uint_eq(the_peer(b).dropped, 0);
	lease = open_on(a, 1, 5, 'b');
	pass(1500 * MS, 0);
	ck_assert_uint_eq(the_peer(b).leases, 1);
	ck_assert_uint_eq(the_peer(b).requests, 1);
	ck_assert_int_eq(kvr_worker_stats_get(a->k, replica_worker(a, 'b'), &s),
	    KVR_OK);
	ck_assert_uint_gt(s.prefill_tokens, 0);
	ck_assert_uint_eq(the_peer(b).prefill_tokens, s.prefill_tokens);
	frames = the_peer(b).frames;
	ck_assert_uint_gt(frames, 0);
	ck_assert_uint_eq(the_peer(a).requests, 0);
	close_it(a, lease);
	pass(1500 * MS, 0);
	ck_assert_uint_eq(the_peer(b).leases, 0);
	ck_assert_uint_eq(the_peer(b).requests, 0);
	ck_assert_uint_gt(the_peer(b).frames, frames);
	/* The frames come late: the records are dropped, and counted. */
	for (i = 0; i < 5; i++) {
		lease = open_on(a, 2 + i, 5, 'b');
		close_it(a, lease);
		pass(100 * MS, 400 * MS);
	}
	late = apply_counts(b->apply).late;
	ck_assert_uint_gt(late, 0);
	ck_assert_uint_eq(the_peer(b).dropped, late +
	    apply_counts(b->apply).unknown_lease);
	ck_assert_uint_eq(the_peer(a).dropped, 0);
	finish();
}
END_TEST

START_TEST(late_frames_are_prefixes_and_then_nothing)
{
	struct apply_peer peer;

	both();
	open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	/* 300 ms: its leases end, but for its loads, and prefixes count. */
	open_on(a, 2, 5, 'b');
	pass(2500 * MS, 300 * MS);
	ck_assert_uint_eq(apply_peers(b->apply, &peer, 1), 1);
	ck_assert_int_eq(peer.state, APPLY_LATE);
	ck_assert_int_ge(peer.excess, 290 * MS);
	ck_assert_uint_eq(replica_leases(b), 0);
	ck_assert_uint_eq(replica_holds(b, 2, 8, 'b'), 5);
	ck_assert_uint_eq(replica_requests(b, 'b'), 2);
	/* 2 s: a load that old is worse than none. */
	pass(1500 * MS, 2 * SECOND);
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	/* 31 s: nothing. */
	ck_assert_int_eq(kvr_observe(a->k, replica_prompt(a, 3, 5),
	    replica_worker(a, 'c'), a->now, 0, NULL), KVR_OK);
	pass(20 * MS, 31 * SECOND);
	ck_assert_uint_eq(replica_holds(b, 3, 8, 'c'), 0);
	ck_assert_uint_eq(apply_counts(b->apply).stale, 1);
	/* It recovers. */
	open_on(a, 4, 5, 'd');
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'd'), 1);
	finish();
}
END_TEST

/* A delay that stays is one for as long as it does. */
START_TEST(late_for_minutes_is_late)
{
	int i;

	both();
	open_on(a, 1, 5, 'b');
	pass(SECOND, 0);
	pass(2 * SECOND, 2 * SECOND);
	for (i = 0; i < 90; i++) {
		pass(SECOND, 2 * SECOND);
		ck_assert_int_eq(the_peer(b).state, APPLY_LATE);
		ck_assert_int_ge(the_peer(b).excess, 1800 * MS);
	}
	ck_assert_uint_eq(replica_leases(b), 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	pass(1100 * MS, 0);
	ck_assert_int_eq(the_peer(b).state, APPLY_FRESH);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	finish();
}
END_TEST

/* The peer's clock is slow by half a thousandth: 225 ms in all. */
START_TEST(clocks_drift)
{
	int i;

	both();
	for (i = 0; i < 450; i++) {
		a->skew -= MS / 2;
		pass(SECOND, 0);
		ck_assert_int_eq(the_peer(b).state, APPLY_FRESH);
		ck_assert_int_lt(the_peer(b).excess, MS);
	}
	finish();
}
END_TEST

static struct apply_peer
peer_of(const struct replica *r)
{
	struct apply_peer peer;

	ck_assert_uint_eq(apply_peers(r->apply, &peer, 1), 1);
	return peer;
}

/* Runs a; b gets its frames after `delay`. */
static void
step_late(int64_t time, int64_t delay)
{
	now += time;
	replica_run(a, now);
	replica_run(b, now);
	replica_carry_all(a, b, now + delay);
}

START_TEST(one_late_frame_changes_nothing)
{
	int i;

	both();
	open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	/* 1.5 s: the bus has paused, and all that it kept comes at once. */
	open_on(a, 2, 5, 'b');
	step_late(10 * MS, 1500 * MS);
	now += 1490 * MS;
	replica_run(a, now);
	replica_carry_all(a, b, now);
	ck_assert_int_eq(peer_of(b).state, APPLY_FRESH);
	ck_assert_uint_eq(replica_leases(b), 2);
	open_on(a, 2, 5, 'b');
	step_late(10 * MS, 0);
	/* One in two in time, the others 300 ms late. */
	for (i = 0; i < 20; i++) {
		open_on(a, 3, 5, 'c');
		step_late(10 * MS, 300 * MS);
		step_late(290 * MS, 0);
		open_on(a, 3, 5, 'c');
		step_late(10 * MS, 0);
		ck_assert_int_eq(peer_of(b).state, APPLY_FRESH);
	}
	ck_assert_uint_eq(replica_leases(b), 43);
	finish();
}
END_TEST

START_TEST(late_for_long_is_late)
{
	int64_t begun;

	both();
	open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	begun = now;
	do {
		ck_assert_int_eq(peer_of(b).state, APPLY_FRESH);
		ck_assert_uint_ge(replica_leases(b), 1);
		open_on(a, 1, 5, 'b');
		step_late(20 * MS, 300 * MS);
	} while (now - begun <= 200 * MS);
	step_late(20 * MS, 300 * MS);
	open_on(a, 1, 5, 'b');
	step_late(20 * MS, 300 * MS);
	ck_assert_int_eq(peer_of(b).state, APPLY_LATE);
	ck_assert_uint_eq(replica_leases(b), 0);
	finish();
}
END_TEST

/* 40 requests a second for each engine: 0.08 of one are 2 ms. */
START_TEST(jitter_of_a_busy_fleet_is_not_late)
{
	uint64_t lease;
	int i;

	both();
	for (i = 0; i < 400; i++) {
		lease = open_on(a, 1, 5, (char)('a' + i % 4));
		step_late(7 * MS, 10 * MS);
		ck_assert_int_eq(peer_of(b).state, APPLY_FRESH);
		close_it(a, lease);
	}
	for (i = 0; i < 40; i++) {
		lease = open_on(a, 1, 5, (char)('a' + i % 4));
		step_late(7 * MS, 40 * MS);
		close_it(a, lease);
	}
	ck_assert_int_eq(peer_of(b).state, APPLY_LATE);
	finish();
}
END_TEST

static void
reset(struct replica *r, char worker)
{
	uint64_t id;

	ck_assert_int_eq(kvr_worker_reset(r->k, replica_worker(r, worker), &id),
	    KVR_OK);
}

START_TEST(a_reset_that_two_saw_counts_once)
{
	both();
	open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	reset(a, 'b');
	reset(b, 'b');
	open_on(a, 2, 5, 'b');
	open_on(b, 3, 5, 'b');
	pass(2 * SECOND, 0);
	ck_assert_uint_eq(replica_holds(a, 1, 8, 'b'), 0);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 0);
	ck_assert_uint_eq(replica_holds(a, 3, 8, 'b'), 5);
	ck_assert_uint_eq(replica_holds(b, 2, 8, 'b'), 5);
	ck_assert_uint_eq(replica_holds(a, 2, 8, 'b'), 5);
	ck_assert_uint_eq(replica_holds(b, 3, 8, 'b'), 5);
	finish();
}
END_TEST

START_TEST(a_reset_that_one_saw_counts_there_too)
{
	both();
	open_on(a, 1, 5, 'b');
	open_on(a, 1, 5, 'c');
	pass(20 * MS, 0);
	reset(b, 'b');
	/* Sent before a heard of the reset. */
	open_on(a, 2, 5, 'b');
	pass(2 * SECOND, 0);
	ck_assert_uint_eq(replica_holds(a, 1, 8, 'b'), 0);
	ck_assert_uint_eq(replica_holds(a, 2, 8, 'b'), 0);
	ck_assert_uint_eq(replica_holds(b, 2, 8, 'b'), 0);
	ck_assert_uint_eq(replica_holds(a, 1, 8, 'c'), 5);
	ck_assert_uint_ge(apply_counts(b->apply).old_epoch, 1);
	finish();
}
END_TEST

/* The engine clears its cache; each router hears that for itself. */
static void
say_cleared(struct replica *r, char worker)
{
	struct kvr_event_batch batch = { .size = sizeof(batch) };
	struct kvr_worker_stats stats = { .size = sizeof(stats) };
	const uint64_t id = replica_worker(r, worker);
	struct kvr_event e;

	ck_assert_int_eq(kvr_event_init(&e, sizeof(e)), KVR_OK);
	e.kind = KVR_EVENT_CLEARED;
	ck_assert_int_eq(kvr_worker_stats_get(r->k, id, &stats), KVR_OK);
	batch.seq = stats.events_next;
	ck_assert_int_eq(kvr_events_apply(r->k, id, &batch, &e, sizeof(e), 1,
	    NULL, 0, NULL, 0, r->now + r->skew, 0, NULL), KVR_OK);
}

static struct kvr_worker_stats
stats_of(const struct replica *r, char worker)
{
	struct kvr_worker_stats stats = { .size = sizeof(stats) };

	ck_assert_int_eq(kvr_worker_stats_get(r->k, replica_worker(r, worker),
	    &stats), KVR_OK);
	return stats;
}

static const int64_t skews[] = { 0, 10 * MS, 30 * MS, 1100 * MS };

/* A reset of a peer would degrade a stream until the engine clears again. */
START_TEST(a_clear_that_events_tell_both)
{
	int time;

	both();
	say_cleared(a, 'b');
	say_cleared(b, 'b');
	pass(4 * SECOND, 0);
	for (time = 0; time < 3; time++) {
		say_cleared(time % 2 == 0 ? a : b, 'b');
		pass(skews[_i], 0);
		say_cleared(time % 2 == 0 ? b : a, 'b');
		pass(time == 1 ? 8 * SECOND : 2 * SECOND, 0);
		ck_assert_uint_eq(stats_of(a, 'b').events_state,
		    KVR_EVENTS_COMPLETE);
		ck_assert_uint_eq(stats_of(b, 'b').events_state,
		    KVR_EVENTS_COMPLETE);
	}
	/* They agree on the epoch. */
	open_on(a, 1, 5, 'b');
	open_on(b, 2, 5, 'b');
	pass(50 * MS, 0);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	ck_assert_uint_eq(replica_holds(a, 2, 8, 'b'), 5);
	finish();
}
END_TEST

/* The source of events here may be gone. */
START_TEST(a_clear_that_events_tell_one)
{
	both();
	say_cleared(a, 'b');
	say_cleared(b, 'b');
	pass(10 * SECOND, 0);
	ck_assert_uint_eq(stats_of(b, 'b').events_state, KVR_EVENTS_COMPLETE);
	say_cleared(a, 'b');
	pass(4 * SECOND, 0);
	ck_assert_uint_eq(stats_of(b, 'b').events_state, KVR_EVENTS_COMPLETE);
	pass(2 * SECOND, 0);
	ck_assert_uint_eq(stats_of(b, 'b').events_state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(stats_of(a, 'b').events_state, KVR_EVENTS_COMPLETE);
	pass(8 * SECOND, 0);
	ck_assert_uint_eq(stats_of(a, 'b').events_state, KVR_EVENTS_COMPLETE);
	/* They agree on the epoch. */
	open_on(a, 1, 5, 'b');
	pass(50 * MS, 0);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	finish();
}
END_TEST

/* One that has lost batches learns of a reset as without events. */
START_TEST(a_reset_where_events_are_missing)
{
	both();
	say_cleared(a, 'b');
	say_cleared(b, 'b');
	pass(4 * SECOND, 0);
	ck_assert_int_eq(kvr_events_lost(b->k, replica_worker(b, 'b'), 9),
	    KVR_OK);
	open_on(b, 1, 5, 'b');
	say_cleared(a, 'b');
	pass(50 * MS, 0);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 0);
	ck_assert_uint_eq(stats_of(a, 'b').events_state, KVR_EVENTS_COMPLETE);
	finish();
}
END_TEST

START_TEST(a_lost_reset_is_repaired)
{
	both();
	pass(3 * SECOND, 0);
	open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	reset(b, 'b');
	replica_run(b, now += 10 * MS);
	lose(b);
	pass(1100 * MS, 0);
	ck_assert_uint_eq(replica_holds(a, 1, 8, 'b'), 0);
	finish();
}
END_TEST

/* --------------------------------------------------------- recordings --- */

static const struct replica_options keyed_one = { .origin = 11, .secret = 's',
    .now = 100 * SECOND, .keyed = true },
    keyed_two = { .origin = 22, .secret = 's', .now = 100 * SECOND,
    .skew = 5000 * SECOND, .backwards = true, .keyed = true };

/* Frames of the first replica, as a listener on the bus has them. */
static struct replica_frame tape[REPLICA_FRAMES];
static size_t taped;

/* They are carried, too. */
static void
record_frames(int64_t time)
{
	const int64_t end = now + time;
	size_t i;

	for (; now < end; now += 10 * MS) {
		replica_run(a, now);
		replica_run(b, now);
		for (i = 0; i < a->n && taped < REPLICA_FRAMES; i++) {
			tape[taped] = a->sent[i];
			tape[taped].bytes = malloc(a->sent[i].n);
			ck_assert_ptr_nonnull(tape[taped].bytes);
			memcpy(tape[taped++].bytes, a->sent[i].bytes,
			    a->sent[i].n);
		}
		replica_carry_all(a, b, now);
		replica_carry_all(b, a, now);
	}
}

/* Plays them with the original pauses. */
static void
play_frames(void)
{
	const int64_t begun = now;
	size_t i;

	for (i = 0; i < taped; i++) {
		now = begun + tape[i].at - tape[0].at;
		replica_run(b, now);
		apply_frame(b->apply, now + b->skew, 0, tape[i].bytes,
		    tape[i].n);
	}
}

static void
free_tape(void)
{
	while (taped > 0)
		free(tape[--taped].bytes);
}

/* Both have proved themselves; then two leases of the first are recorded. */
static void
begin_tape(void)
{
	begin(&keyed_one, &keyed_two);
	pass(500 * MS, 0);
	record_frames(100 * MS);
	open_on(a, 1, 5, 'b');
	open_on(a, 2, 5, 'b');
	record_frames(1500 * MS);
	ck_assert_uint_eq(replica_requests(b, 'b'), 2);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	ck_assert_uint_gt(taped, 2);
}

START_TEST(a_recording_does_not_count_after_a_restart)
{
	struct replica_options again = keyed_two;
	uint64_t unproved;

	begin_tape();
	again.origin = 23;
	again.now = now;
	replica_free(b);
	ck_assert(replica_init(b, &again));
	play_frames();
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 0);
	ck_assert_uint_eq(replica_leases(b), 0);
	unproved = apply_counts(b->apply).unproved;
	ck_assert_uint_eq(unproved, taped);
	/* The one that was recorded is there still, and is heard. */
	pass(2500 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 2);
	open_on(a, 3, 5, 'b');
	pass(50 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 3);
	free_tape();
	finish();
}
END_TEST

START_TEST(a_recording_does_not_count_of_one_that_is_forgotten)
{
	uint64_t unproved;
	int i;

	begin_tape();
	unproved = apply_counts(b->apply).unproved;
	for (i = 0; i < 140; i++) {
		replica_run(b, now += 500 * MS);
		apply_work(b->apply, now + b->skew);
	}
	ck_assert_uint_eq(apply_counts(b->apply).peers, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	play_frames();
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	ck_assert_uint_eq(apply_counts(b->apply).unproved, unproved + taped);
	free_tape();
	finish();
}
END_TEST

/* Remembered numbers mark the frames of a recording as repeated. */
START_TEST(a_recording_does_not_count_twice)
{
	uint64_t repeated;

	begin_tape();
	repeated = apply_counts(b->apply).repeated;
	play_frames();
	ck_assert_uint_eq(apply_counts(b->apply).repeated, repeated + taped);
	free_tape();
	finish();
}
END_TEST

/* A recording of frames before the first heard one does not count either. */
START_TEST(a_recording_does_not_count_of_before_the_proof)
{
	uint64_t repeated;

	begin(&keyed_one, &keyed_two);
	pass(20 * MS, 0);
	ck_assert_int_eq(kvr_observe(a->k, replica_prompt(a, 1, 5),
	    replica_worker(a, 'b'), now, 0, NULL), KVR_OK);
	replica_run(a, now += 100 * MS);
	for (taped = 0; taped < a->n; taped++)
		tape[taped] = a->sent[taped];
	ck_assert_uint_gt(taped, 0);
	a->n = 0;
	pass(1500 * MS, 0);
	repeated = apply_counts(b->apply).repeated;
	play_frames();
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 0);
	ck_assert_uint_eq(apply_counts(b->apply).repeated, repeated + taped);
	free_tape();
	finish();
}
END_TEST

START_TEST(two_are_soon_proved)
{
	begin(&keyed_one, &keyed_two);
	pass(350 * MS, 0);
	open_on(a, 1, 5, 'b');
	open_on(b, 2, 5, 'c');
	pass(30 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	ck_assert_uint_eq(replica_requests(a, 'c'), 1);
	finish();
}
END_TEST

/* A third replica reports this epoch of a worker. */
static void
third_says(char worker, uint64_t epoch)
{
	static struct frame_writer w;
	static uint64_t number;
	const struct frame_record r = { .kind = FRAME_WORKER, .epoch = epoch,
	    .state = KVR_STATE_UP, .length = 1, .text = &worker };
	const unsigned char *bytes;
	size_t n;

	frame_writer_init(&w, &b->rules, 33);
	w.number = ++number;
	ck_assert_int_eq(frame_put(&w, &r), FRAME_OK);
	bytes = frame_finish(&w, now, &n);
	apply_frame(b->apply, now + b->skew, 0, bytes, n);
}

/* The first one that is heard has just begun, too, and counts from 0. */
START_TEST(two_that_begin_at_once_reset_nothing)
{
	both();
	open_on(b, 1, 5, 'b');
	pass(100 * MS, 0);
	third_says('b', 5);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	/* All have been heard: a larger epoch now is a reset that was lost. */
	pass(3 * SECOND, 0);
	ck_assert_uint_eq(replica_holds(a, 1, 8, 'b'), 5);
	third_says('b', 6);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 0);
	finish();
}
END_TEST

START_TEST(a_late_starter_takes_epochs_over)
{
	struct replica_options again = two;

	both();
	reset(a, 'b');
	pass(1100 * MS, 0);
	open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	again.origin = 23;
	ck_assert(replica_restart(b, &again));
	pass(1100 * MS, 0);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	open_on(b, 2, 5, 'b');
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_holds(a, 2, 8, 'b'), 5);
	finish();
}
END_TEST

START_TEST(sums_of_loads)
{
	struct replica_options first = one, second = two;
	uint64_t lease;

	first.loads = second.loads = true;
	second.secret = 't';
	begin(&first, &second);
	pass(200 * MS, 0);
	lease = open_on(a, 1, 5, 'b');
	open_on(b, 1, 5, 'b');
	pass(300 * MS, 0);
	ck_assert_uint_eq(replica_requests(a, 'b'), 2);
	ck_assert_uint_eq(replica_requests(b, 'b'), 2);
	ck_assert_uint_eq(replica_leases(b), 1);
	close_it(a, lease);
	pass(300 * MS, 0);
	ck_assert_uint_eq(replica_requests(a, 'b'), 1);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	/* b falls silent. */
	lose(b);
	replica_run(a, now + 4 * SECOND);
	ck_assert_uint_eq(replica_requests(a, 'b'), 0);
	finish();
}
END_TEST

/* Each router reads an engine's published load itself; frames carry none. */
START_TEST(loads_that_engines_publish)
{
	const struct kvr_load load = { sizeof(load), 1000, 50, 7, 0 };
	struct replica_options first = one, second = two;

	first.loads = second.loads = true;
	begin(&first, &second);
	pass(200 * MS, 0);
	ck_assert_int_eq(kvr_worker_set_load(a->k, replica_worker(a, 'b'), 0,
	    &load), KVR_OK);
	open_on(a, 1, 5, 'b');
	pass(300 * MS, 0);
	ck_assert_uint_eq(replica_requests(a, 'b'), 8);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	finish();
}
END_TEST

/* ------------------------------------------ leases not seen to open --- */

START_TEST(a_late_starter_counts_what_runs)
{
	struct replica_options again = two;
	uint64_t leases[5];
	int i;

	both();
	for (i = 0; i < 4; i++)
		leases[i] = open_on(a, 1, 5, 'b');
	leases[4] = open_on(a, 1, 5, 'c');
	pass(20 * MS, 0);
	again.origin = 23;
	ck_assert(replica_restart(b, &again));
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	/* Peers send before the next second begins. */
	pass(250 * MS, 0);
	ck_assert_uint_eq(replica_leases(b), 0);
	ck_assert_uint_eq(apply_counts(b->apply).unseen, 5);
	ck_assert_uint_eq(peer_of(b).unseen, 5);
	ck_assert_uint_eq(peer_of(b).leases, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 4);
	ck_assert_uint_eq(replica_requests(b, 'c'), 1);
	ck_assert_uint_eq(replica_requests(b, 'd'), 0);
	/* Requests that it sees count once. */
	open_on(a, 1, 5, 'b');
	pass(100 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 5);
	pass(1100 * MS, 0);
	ck_assert_uint_eq(replica_leases(b), 1);
	ck_assert_uint_eq(replica_requests(b, 'b'), 5);
	ck_assert_uint_eq(replica_requests(b, 'c'), 1);
	/* They end with the end, not with the next list. */
	for (i = 0; i < 5; i++)
		close_it(a, leases[i]);
	pass(100 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	ck_assert_uint_eq(replica_requests(b, 'c'), 0);
	ck_assert_uint_eq(apply_counts(b->apply).unseen, 0);
	/* b did not report them as its own. */
	ck_assert_uint_eq(replica_requests(a, 'b'), 1);
	finish();
}
END_TEST

START_TEST(a_lost_beginning_counts)
{
	uint64_t lease;

	both();
	lease = open_on(a, 1, 5, 'b');
	open_on(a, 1, 5, 'b');
	replica_run(a, now += 10 * MS);
	lose(a);
	open_on(a, 1, 5, 'b');
	pass(1100 * MS, 0);
	ck_assert_uint_eq(replica_leases(b), 1);
	ck_assert_uint_eq(replica_requests(b, 'b'), 3);
	/* The end is lost too: the next list shows it. */
	close_it(a, lease);
	replica_run(a, now += 10 * MS);
	lose(a);
	pass(1100 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 2);
	finish();
}
END_TEST

START_TEST(a_peer_that_was_late_counts_again)
{
	int i;

	both();
	open_on(a, 1, 5, 'b');
	open_on(a, 1, 5, 'c');
	for (i = 0; i < 25; i++)
		pass(100 * MS, 300 * MS);
	ck_assert_int_eq(peer_of(b).state, APPLY_LATE);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	/* It is in time again: its first frame, no list, counts once. */
	open_on(a, 1, 5, 'd');
	for (i = 0; i < 150; i++) {
		pass(10 * MS, 0);
		ck_assert_uint_eq(replica_requests(b, 'b'), 1);
		ck_assert_uint_eq(replica_requests(b, 'c'), 1);
	}
	ck_assert_int_eq(peer_of(b).state, APPLY_FRESH);
	finish();
}
END_TEST

/* Lists that newer ones have overtaken change nothing. */
START_TEST(an_old_list_brings_nothing_back)
{
	uint64_t lease;
	size_t n;

	both();
	lease = open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	replica_run(a, now += SECOND);
	n = a->n;
	close_it(a, lease);
	replica_run(a, now += 10 * MS);
	replica_carry(a, n, a->n, b, now);
	replica_carry(a, 0, n, b, now);
	lose(a);
	ck_assert_uint_eq(apply_counts(b->apply).unseen, 0);
	replica_run(b, now += 60 * MS);
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	finish();
}
END_TEST

/* The router goes on, and its running requests have another origin now. */
START_TEST(a_daemon_that_begins_anew_ends_the_earlier_one)
{
	struct replica_options again = one;
	uint64_t lease;

	again.site = 7;
	begin(&again, &two);
	pass(50 * MS, 0);
	lease = open_on(a, 1, 5, 'b');
	pass(1100 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	again.origin = 12;
	ck_assert(replica_restart(a, &again));
	pass(300 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	close_it(a, lease);
	pass(100 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	finish();
}
END_TEST

/* Frames of the earlier daemon come when the later one is known already. */
START_TEST(the_later_daemon_of_a_site_stays)
{
	struct replica_options again = one;
	uint64_t lease;
	size_t n;

	again.site = 7;
	begin(&again, &two);
	lease = open_on(a, 1, 5, 'b');
	replica_run(a, now += 50 * MS);
	n = a->n;
	again.origin = 12;
	ck_assert(replica_restart(a, &again));
	replica_run(a, now += 50 * MS);
	replica_carry(a, n, a->n, b, now);
	replica_carry(a, 0, n, b, now);
	lose(a);
	close_it(a, lease);
	pass(200 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	ck_assert_uint_eq(apply_counts(b->apply).peers, 2);
	lease = open_on(a, 2, 5, 'c');
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'c'), 1);
	finish();
}
END_TEST

START_TEST(what_a_journal_lost_is_listed)
{
	uint32_t i;

	both();
	pass(300 * MS, 0);
	for (i = 0; i < 2000; i++)
		close_it(a, open_on(a, 1 + i % 50, 12, 'c'));
	open_on(a, 1, 5, 'b');
	for (i = 0; i < 2000; i++)
		close_it(a, open_on(a, 1 + i % 50, 12, 'c'));
	pass(150 * MS, 0);
	ck_assert_uint_ge(publish_counts(a->publish).overruns, 1);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	ck_assert_uint_eq(replica_requests(b, 'c'), 0);
	finish();
}
END_TEST

/* The list holds the oldest leases: an end that was lost is repaired. */
START_TEST(more_leases_than_a_list_has)
{
	struct replica_options first = one, second = two;
	uint64_t lease = 0;
	uint32_t i;

	first.memory = second.memory = (size_t)64 << 20;
	first.journal = second.journal = 1 << 20;
	begin(&first, &second);
	pass(50 * MS, 0);
	for (i = 0; i < MANY; i++) {
		if (i == 10)
			lease = open_on(a, 1, 1, 'b');
		else
			(void)open_on(a, 1, 1, 'b');
		if (i % 1000 == 0)
			pass(10 * MS, 0);
	}
	pass(1100 * MS, 0);
	ck_assert_uint_eq(replica_leases(b), MANY);
	close_it(a, lease);
	replica_run(a, now += 10 * MS);
	lose(a);
	pass(2 * SECOND, 0);
	ck_assert_uint_gt(publish_counts(a->publish).unlisted, 0);
	ck_assert_uint_eq(apply_counts(b->apply).repaired, 1);
	ck_assert_uint_eq(replica_leases(b), MANY - 1);
	ck_assert_uint_eq(replica_requests(b, 'b'), MANY - 1);
	finish();
}
END_TEST

/* The router has reaped the peers' leases while the daemon was stopped. */
START_TEST(a_stopped_daemon_counts_again)
{
	uint64_t cursor = 0, reaped = 0, owner;
	size_t n;

	both();
	open_on(a, 1, 5, 'b');
	open_on(a, 1, 5, 'c');
	pass(20 * MS, 0);
	now += 2500 * MS;
	replica_run(a, now);
	ck_assert_int_eq(kvr_owner_list(b->k, &cursor, &owner, 1, &n), KVR_OK);
	ck_assert_uint_eq(n, 1);
	do
		ck_assert_int_eq(kvr_owner_reap(b->k, owner, now + b->skew,
		    &reaped, NULL), KVR_OK);
	while (reaped != 0);
	ck_assert_uint_eq(replica_leases(b), 0);
	b->now = now;
	pass(1200 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	ck_assert_uint_eq(replica_requests(b, 'c'), 1);
	finish();
}
END_TEST

/* ------------------------------------------------------ a busy region --- */

/* The region is busy as if a stopped process held its lock. */
START_TEST(leases_of_a_silent_peer_end_when_they_can)
{
	both();
	open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	busy_begin(UINT_MAX);
	replica_run(b, now += 4 * SECOND);
	ck_assert_uint_gt(busy_end(), 0);
	ck_assert_int_eq(peer_of(b).state, APPLY_SILENT);
	ck_assert_uint_eq(replica_leases(b), 1);
	ck_assert_uint_eq(peer_of(b).leases, 1);
	replica_run(b, now += 20 * MS);
	ck_assert_uint_eq(replica_leases(b), 0);
	ck_assert_uint_eq(peer_of(b).leases, 0);
	a->now = now;
	lose(a);
	pass(1100 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	finish();
}
END_TEST

START_TEST(a_peer_is_not_forgotten_before_its_leases_end)
{
	both();
	open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	busy_begin(UINT_MAX);
	replica_run(b, now += 70 * SECOND);
	busy_end();
	ck_assert_uint_eq(apply_counts(b->apply).peers, 1);
	replica_run(b, now += 20 * MS);
	ck_assert_uint_eq(replica_leases(b), 0);
	ck_assert_uint_eq(apply_counts(b->apply).peers, 0);
	finish();
}
END_TEST

START_TEST(an_end_in_a_busy_region_is_repaired)
{
	uint64_t lease, other;

	both();
	lease = open_on(a, 1, 5, 'b');
	other = open_on(a, 2, 5, 'b');
	pass(20 * MS, 0);
	close_it(a, lease);
	ck_assert_int_eq(kvr_lease_abort(a->k, other, a->now, 0), KVR_OK);
	replica_run(a, now += 10 * MS);
	busy_begin(UINT_MAX);
	replica_carry_all(a, b, now);
	ck_assert_uint_gt(busy_end(), 0);
	ck_assert_uint_eq(replica_leases(b), 2);
	pass(1600 * MS, 0);
	ck_assert_uint_eq(replica_leases(b), 0);
	ck_assert_uint_eq(apply_counts(b->apply).leases, 0);
	finish();
}
END_TEST

/* Leases of an earlier daemon have to end, so this one does not begin. */
START_TEST(no_daemon_begins_in_a_busy_region)
{
	struct replica_options again = two;

	both();
	open_on(a, 1, 5, 'b');
	pass(20 * MS, 0);
	again.origin = 23;
	busy_begin(UINT_MAX);
	ck_assert(!replica_restart(b, &again));
	busy_end();
	ck_assert_uint_eq(replica_leases(b), 1);
	ck_assert(replica_restart(b, &again));
	ck_assert_uint_eq(replica_leases(b), 0);
	finish();
}
END_TEST

static void
remove_worker(struct replica *r, char worker)
{
	ck_assert_int_eq(kvr_worker_remove(r->k, replica_worker(r, worker)),
	    KVR_OK);
}

/* A peer that has forgotten a worker sends nothing about it, for ever. */
START_TEST(loads_end_one_by_one)
{
	struct replica_options first = one, second = two;

	first.loads = second.loads = true;
	begin(&first, &second);
	pass(200 * MS, 0);
	open_on(a, 1, 5, 'b');
	open_on(a, 1, 5, 'c');
	pass(300 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	remove_worker(a, 'b');
	pass(4 * SECOND, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	ck_assert_uint_eq(replica_requests(b, 'c'), 1);
	finish();
}
END_TEST

/* Places go round: after all others, a new worker has that of an old one. */
START_TEST(a_load_is_of_one_worker)
{
	struct replica_options first = one, second = two;
	uint64_t id;
	int i;

	first.loads = second.loads = true;
	begin(&first, &second);
	pass(200 * MS, 0);
	open_on(a, 1, 5, 'b');
	pass(300 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	replica_run(a, now += SECOND);
	lose(a);
	for (i = 0; i < 5; i++) {
		remove_worker(b, i == 0 ? 'b' : 'e');
		(void)roster_read(&b->roster);
		ck_assert_int_eq(kvr_worker_add(b->k, "e", 1, NULL, &id),
		    KVR_OK);
		(void)roster_read(&b->roster);
	}
	replica_run(b, now);
	ck_assert_uint_eq(replica_requests(b, 'e'), 0);
	finish();
}
END_TEST

/* The nginx module ends loads when the daemon was stopped for a while. */
START_TEST(loads_that_the_router_ended_are_set_again)
{
	struct replica_options first = one, second = two;
	const struct kvr_load none = { .size = sizeof(none) };

	first.loads = second.loads = true;
	begin(&first, &second);
	pass(200 * MS, 0);
	open_on(a, 1, 5, 'b');
	pass(300 * MS, 0);
	ck_assert_int_eq(kvr_worker_set_load(b->k, replica_worker(b, 'b'),
	    ROSTER_SOURCE, &none), KVR_OK);
	ck_assert_uint_eq(replica_requests(b, 'b'), 0);
	pass(1100 * MS, 0);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	finish();
}
END_TEST

static uint32_t
state(const struct replica *r, char worker)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	ck_assert_int_eq(kvr_worker_get(r->k, replica_worker(r, worker),
	    &facts), KVR_OK);
	return facts.state;
}

static void
set_state(struct replica *r, char worker, uint32_t to)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	const uint64_t id = replica_worker(r, worker);

	ck_assert_int_eq(kvr_worker_get(r->k, id, &facts), KVR_OK);
	facts.state = to;
	ck_assert_int_eq(kvr_worker_set(r->k, id, &facts), KVR_OK);
}

START_TEST(orders_are_shared)
{
	struct replica_options first = one, second = two;

	first.orders = second.orders = true;
	begin(&first, &second);
	pass(1100 * MS, 0);
	set_state(a, 'b', KVR_STATE_DRAINING);
	set_state(a, 'c', KVR_STATE_DOWN);
	pass(2100 * MS, 0);
	ck_assert_uint_eq(state(b, 'b'), KVR_STATE_DRAINING);
	ck_assert_uint_eq(state(b, 'c'), KVR_STATE_UP);
	set_state(b, 'b', KVR_STATE_UP);
	pass(2100 * MS, 0);
	ck_assert_uint_eq(state(a, 'b'), KVR_STATE_UP);
	ck_assert_uint_eq(state(b, 'b'), KVR_STATE_UP);
	finish();
}
END_TEST

/* The other side still sends the first order when the second is given. */
START_TEST(an_order_that_is_reversed_at_once)
{
	struct replica_options first = one, second = two;

	first.orders = second.orders = true;
	begin(&first, &second);
	replica_run(a, now += 500 * MS);
	lose(a);
	pass(1700 * MS, 0);
	set_state(a, 'b', KVR_STATE_DRAINING);
	while (state(b, 'b') == KVR_STATE_UP)
		pass(10 * MS, 0);
	set_state(a, 'b', KVR_STATE_UP);
	pass(3 * SECOND, 0);
	ck_assert_uint_eq(state(a, 'b'), KVR_STATE_UP);
	ck_assert_uint_eq(state(b, 'b'), KVR_STATE_UP);
	finish();
}
END_TEST

START_TEST(orders_are_not_shared_unasked)
{
	both();
	set_state(a, 'b', KVR_STATE_DRAINING);
	pass(2100 * MS, 0);
	ck_assert_uint_eq(state(b, 'b'), KVR_STATE_UP);
	finish();
}
END_TEST

/* Hands b the frames of a from a log, 100 s after. */
static void
replay(void)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		apply_frame(b->apply, now + b->skew, 100 * SECOND,
		    a->sent[i].bytes, a->sent[i].n);
	lose(a);
}

START_TEST(the_past_is_prefixes)
{
	both();
	replica_run(a, now += SECOND);
	open_on(a, 1, 5, 'b');
	replica_run(a, now += 10 * MS);
	replay();
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	ck_assert_uint_eq(replica_leases(b), 0);
	ck_assert_uint_eq(apply_counts(b->apply).replayed, 1);
	finish();
}
END_TEST

/* A reset from the past does not touch records the router has sent since. */
START_TEST(a_reset_of_the_past_ends_nothing)
{
	struct replica_options again = two;

	both();
	close_it(b, open_on(b, 1, 5, 'b'));
	pass(20 * MS, 0);
	again.origin = 23;
	ck_assert(replica_restart(b, &again));
	replica_run(a, now += SECOND);
	reset(a, 'b');
	open_on(a, 2, 5, 'b');
	replica_run(a, now += 10 * MS);
	replay();
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	ck_assert_uint_eq(replica_holds(b, 2, 8, 'b'), 5);
	/* But now they agree on the epoch: it is not reset later either. */
	pass(1100 * MS, 0);
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 5);
	open_on(a, 3, 5, 'b');
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_holds(b, 3, 8, 'b'), 5);
	finish();
}
END_TEST

/* But it ends records replayed before it, into a region without any. */
START_TEST(a_reset_of_the_past_ends_what_was_replayed)
{
	both();
	replica_run(a, now += SECOND);
	open_on(a, 1, 5, 'b');
	open_on(a, 1, 5, 'c');
	replica_run(a, now += 10 * MS);
	reset(a, 'b');
	reset(a, 'c');
	open_on(a, 2, 5, 'b');
	replica_run(a, now += 10 * MS);
	open_on(b, 3, 5, 'c');
	replay();
	ck_assert_uint_eq(replica_holds(b, 1, 8, 'b'), 0);
	ck_assert_uint_eq(replica_holds(b, 2, 8, 'b'), 5);
	/* The router uses it already. */
	ck_assert_uint_eq(replica_holds(b, 3, 8, 'c'), 5);
	ck_assert_uint_eq(replica_requests(b, 'c'), 1);
	finish();
}
END_TEST

/* Each saw the same worker fail before it heard of the other. */
START_TEST(epochs_agree_without_a_reset)
{
	begin(&one, &two);
	replica_run(a, now += 10 * MS);
	replica_run(b, now);
	lose(a);
	lose(b);
	reset(a, 'b');
	reset(b, 'b');
	replica_run(a, now += 2 * SECOND);
	replica_run(b, now);
	open_on(a, 1, 5, 'b');
	open_on(b, 2, 5, 'b');
	/* One after the other. */
	replica_run(a, now += 10 * MS);
	lose(b);
	replica_carry_all(a, b, now);
	replica_run(b, now += 1100 * MS);
	replica_carry_all(b, a, now);
	pass(2 * SECOND, 0);
	ck_assert_uint_eq(replica_holds(a, 1, 8, 'b'), 5);
	ck_assert_uint_eq(replica_holds(b, 2, 8, 'b'), 5);
	ck_assert_uint_eq(apply_counts(a->apply).old_epoch, 0);
	ck_assert_uint_eq(apply_counts(b->apply).old_epoch, 0);
	finish();
}
END_TEST

/* -------------------------------------------------------------- at random */

enum { PROMPTS = 6, BLOCKS = 12, OPEN = 8 };

struct open {
	uint64_t lease;
	struct replica *r;
};

static void
step(struct rng *rng, struct open *open)
{
	struct open *o = &open[rng_between(rng, 0, OPEN - 1)];
	struct replica *r = rng_between(rng, 0, 1) ? a : b;
	const char worker = (char)('a' + rng_between(rng, 0, 3));
	const uint32_t prompt = (uint32_t)rng_between(rng, 1, PROMPTS);
	const uint32_t blocks = (uint32_t)rng_between(rng, 1, BLOCKS);

	if (o->lease != 0) {
		if (rng_between(rng, 0, 3) == 0)
			(void)kvr_lease_abort(o->r->k, o->lease,
			    o->r->now + o->r->skew, 0);
		else
			(void)kvr_lease_finish(o->r->k, o->lease, NULL,
			    o->r->now + o->r->skew, 0);
		o->lease = 0;
	} else if (rng_between(rng, 0, 2) == 0) {
		ck_assert_int_eq(kvr_observe(r->k, replica_prompt(r, prompt,
		    blocks), replica_worker(r, worker), r->now + r->skew, 0,
		    NULL), KVR_OK);
	} else {
		o->r = r;
		o->lease = open_on(r, prompt, blocks, worker);
	}
}

/*
 * Carries the frames of one: each once, some twice, neighbours swapped, and
 * `loss` of a hundred not at all.
 */
static void
carry_badly(struct rng *rng, struct replica *from, struct replica *to,
    unsigned loss)
{
	struct replica_frame swap;
	size_t i, j;

	for (i = 0; i + 1 < from->n; i++) {
		j = i + rng_between(rng, 0, 1);
		swap = from->sent[i];
		from->sent[i] = from->sent[j];
		from->sent[j] = swap;
	}
	for (i = 0; i < from->n; i++)
		for (j = rng_between(rng, 1, 2); j > 0; j--)
			if (rng_between(rng, 1, 100) > loss)
				replica_carry(from, i, i + 1, to, now);
	lose(from);
}

static void
ck_same(void)
{
	uint32_t prompt;
	char worker;

	for (prompt = 1; prompt <= PROMPTS; prompt++)
		for (worker = 'a'; worker <= 'd'; worker++)
			ck_assert_uint_eq(replica_holds(a, prompt, BLOCKS,
			    worker), replica_holds(b, prompt, BLOCKS, worker));
}

/* Lost records are made good by the loads that followed. */
static void
ck_same_requests(void)
{
	char worker;

	for (worker = 'a'; worker <= 'd'; worker++)
		ck_assert_uint_eq(replica_requests(a, worker),
		    replica_requests(b, worker));
}

static void
at_random(uint64_t seed, unsigned loss)
{
	struct open open[OPEN] = { { 0, NULL } };
	struct rng rng = { seed };
	int i, j;

	both();
	for (i = 0; i < 300; i++) {
		for (j = 0; j < 4; j++)
			step(&rng, open);
		now += 10 * MS;
		replica_run(a, now);
		replica_run(b, now);
		carry_badly(&rng, a, b, loss);
		carry_badly(&rng, b, a, loss);
		ck_assert_int_eq(kvr_check(a->k), KVR_OK);
		ck_assert_int_eq(kvr_check(b->k), KVR_OK);
	}
	pass(2 * SECOND, 0);
	ck_same_requests();
	for (i = 0; i < OPEN; i++)
		if (open[i].lease != 0)
			close_it(open[i].r, open[i].lease);
	pass(2 * SECOND, 0);
	ck_assert_uint_eq(replica_leases(a), 0);
	ck_assert_uint_eq(replica_leases(b), 0);
	for (i = 0; i < REPLICA_WORKERS; i++) {
		ck_assert_uint_eq(replica_requests(a, (char)('a' + i)), 0);
		ck_assert_uint_eq(replica_requests(b, (char)('a' + i)), 0);
	}
	if (loss == 0)
		ck_same();
	finish();
}

START_TEST(the_same_prefixes_on_both_sides)
{
	uint64_t i, seed = test_seed();

	for (i = 0; i < test_amount(4); i++)
		at_random(seed + i, 0);
}
END_TEST

START_TEST(loss_leaves_no_lease)
{
	uint64_t i, seed = test_seed();

	for (i = 0; i < test_amount(4); i++)
		at_random(seed + i, i % 2 == 0 ? 20 : 50);
}
END_TEST

Suite *suite_apply(void);

/* Returns the first blocks of a prompt that is longer than two frames. */
static struct kvr_prompt *
long_prompt(struct replica *r, size_t blocks)
{
	static uint64_t hashes[LONG];
	size_t i;

	for (i = 0; i < LONG; i++)
		hashes[i] = 1000000 + i;
	ck_assert_int_eq(kvr_prompt_set_sequences(r->prompt, 7, 0, hashes,
	    blocks, blocks * REPLICA_BLOCK), KVR_OK);
	return r->prompt;
}

static uint32_t
holds_long(struct replica *r, char worker)
{
	const uint64_t id = replica_worker(r, worker);
	struct kvr_overlap found[8];
	size_t n = 0, i;

	ck_assert_int_eq(kvr_match(r->k, long_prompt(r, LONG), r->now +
	    r->skew, found, sizeof(found[0]), 8, &n), KVR_OK);
	for (i = 0; i < n; i++)
		if (found[i].worker == id)
			return found[i].blocks;
	return 0;
}

static void
both_with_long(void)
{
	struct replica_options first = one, second = two;

	first.journal = second.journal = 1 << 20;
	begin(&first, &second);
	pass(50 * MS, 0);
}

START_TEST(a_chain_longer_than_a_frame)
{
	struct kvr_decision d = { .size = sizeof(d) };

	both_with_long();
	ck_assert_int_eq(kvr_observe(a->k, long_prompt(a, LONG),
	    replica_worker(a, 'c'), a->now + a->skew, 0, NULL), KVR_OK);
	pass(20 * MS, 0);
	ck_assert_uint_eq(holds_long(b, 'c'), LONG);
	ck_assert_int_eq(kvr_lease_open_on(a->k, long_prompt(a, LONG / 2),
	    NULL, replica_worker(a, 'b'), a->now + a->skew, &d), KVR_OK);
	ck_assert_int_eq(kvr_lease_commit(a->k, d.lease, a->now + a->skew, 0),
	    KVR_OK);
	pass(20 * MS, 0);
	ck_assert_uint_eq(holds_long(b, 'b'), LONG / 2);
	ck_assert_uint_eq(replica_requests(b, 'b'), 1);
	ck_assert_int_eq(kvr_lease_extend(a->k, d.lease, long_prompt(a, LONG),
	    a->now + a->skew, 0), KVR_OK);
	pass(20 * MS, 0);
	ck_assert_uint_eq(holds_long(b, 'b'), LONG);
	ck_assert_uint_eq(publish_counts(a->publish).too_long, 0);
	ck_assert_uint_eq(apply_counts(b->apply).unjoined, 0);
	close_it(a, d.lease);
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_leases(b), 0);
	finish();
}
END_TEST

/* The journal has no record that is longer than a quarter of it. */
START_TEST(a_chain_longer_than_the_journal_allows)
{
	both();
	ck_assert_int_eq(kvr_observe(a->k, long_prompt(a, LONG),
	    replica_worker(a, 'c'), a->now + a->skew, 0, NULL), KVR_OK);
	pass(20 * MS, 0);
	ck_assert_uint_eq(publish_counts(a->publish).too_long, 1);
	ck_assert_uint_gt(holds_long(b, 'c'), LONG / 4);
	ck_assert_uint_lt(holds_long(b, 'c'), LONG);
	ck_assert_uint_eq(apply_counts(b->apply).refused, 0);
	finish();
}
END_TEST

/* The end of a chain without its beginning belongs to no chain. */
START_TEST(the_beginning_of_a_long_chain_is_lost)
{
	size_t i;

	both_with_long();
	ck_assert_int_eq(kvr_observe(a->k, long_prompt(a, LONG),
	    replica_worker(a, 'c'), a->now + a->skew, 0, NULL), KVR_OK);
	now += 20 * MS;
	replica_run(a, now);
	replica_run(b, now);
	ck_assert_uint_gt(a->n, 2);
	for (i = 1; i < a->n; i++)
		replica_carry(a, i, i + 1, b, now);
	ck_assert_uint_eq(holds_long(b, 'c'), 0);
	ck_assert_uint_eq(apply_counts(b->apply).unjoined, 1);
	ck_assert_uint_eq(peer_of(b).dropped, 1);
	finish();
}
END_TEST

/* -------------------------------------------------------------- tenants --- */

enum { SHARED = 4, TENANTS_MEMORY = 512 << 10 };

static void
both_shared(void)
{
	struct replica_options first = one, second = two;

	first.tenants = second.tenants = SHARED;
	first.memory = second.memory = TENANTS_MEMORY;
	begin(&first, &second);
	pass(50 * MS, 0);
}

static void
ask_as(struct replica *r, char tenant, uint32_t prompt, uint32_t share)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request request;

	ck_assert_int_eq(kvr_request_init(&request, sizeof(request)), KVR_OK);
	request.share = share;
	ck_assert_int_eq(kvr_lease_open_on(r->k, replica_prompt_of(r, tenant,
	    prompt, 60), &request, replica_worker(r, 'b'), r->now + r->skew,
	    &d), KVR_OK);
	close_it(r, d.lease);
}

START_TEST(whose_prompts_are)
{
	both_shared();
	ask_as(a, 'x', 1, 0);
	ask_as(a, 0, 2, 0);
	pass(20 * MS, 0);
	ck_assert_uint_gt(replica_tenant(b, 'x').bytes, 0);
	ck_assert_uint_gt(replica_tenant(b, 0).bytes, 0);
	ck_assert_uint_eq(replica_tenant(b, 'x').bytes,
	    replica_tenant(b, 0).bytes);
	ck_assert_uint_eq(replica_tenant(b, 'x').share, KVR_SHARE_DEFAULT);
	ck_assert_int_eq(kvr_observe(a->k, replica_prompt_of(a, 'y', 1, 60),
	    replica_worker(a, 'a'), a->now + a->skew, 0, NULL), KVR_OK);
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_tenant(b, 'y').bytes,
	    replica_tenant(b, 'x').bytes);
	finish();
}
END_TEST

/* The requests of this router count first, then those of others. */
START_TEST(whose_shares_count)
{
	both_shared();
	ask_as(a, 'x', 1, 300);
	ask_as(b, 'y', 1, 50);
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_tenant(b, 'x').share, 300);
	ck_assert_uint_eq(replica_tenant(a, 'y').share, 50);
	ask_as(b, 'x', 2, 20);
	pass(20 * MS, 0);
	ask_as(a, 'x', 3, 300);
	pass(20 * MS, 0);
	ck_assert_uint_eq(replica_tenant(b, 'x').share, 20);
	ck_assert_uint_eq(replica_tenant(a, 'x').share, 300);
	finish();
}
END_TEST

/* One floods another router; here another tenant loses nothing. */
START_TEST(a_flood_elsewhere_takes_its_share)
{
	uint32_t i;

	both_shared();
	ask_as(b, 'x', 1, 0);
	for (i = 0; i < 2000; i++) {
		ask_as(a, 'y', 100 + i, 0);
		if (i % 16 == 0)
			pass(MS, 0);
	}
	pass(20 * MS, 0);
	ck_assert_uint_gt(replica_tenant(b, 'y').evicted, 0);
	ck_assert_uint_eq(replica_tenant(b, 'x').evicted, 0);
	ck_assert_uint_gt(replica_tenant(b, 'x').bytes, 0);
	ck_assert_uint_eq(replica_tenant(b, 0).bytes, 0);
	finish();
}
END_TEST

/* Once in a frame for several requests. */
START_TEST(what_it_costs_to_tell_tenants)
{
	uint64_t bytes;
	uint32_t i;

	both_shared();
	pass(2300 * MS, 0);
	bytes = publish_counts(a->publish).bytes;
	for (i = 0; i < 3; i++)
		(void)open_on(a, i, 4, 'a');
	pass(20 * MS, 0);
	bytes = publish_counts(a->publish).bytes - bytes;
	for (i = 0; i < 3; i++) {
		struct kvr_decision d = { .size = sizeof(d) };

		ck_assert_int_eq(kvr_lease_open_on(a->k, replica_prompt_of(a,
		    'x', i, 4), NULL, replica_worker(a, 'a'), a->now +
		    a->skew, &d), KVR_OK);
		ck_assert_int_eq(kvr_lease_commit(a->k, d.lease, a->now +
		    a->skew, 0), KVR_OK);
	}
	bytes += publish_counts(a->publish).bytes;
	pass(20 * MS, 0);
	ck_assert_uint_eq(publish_counts(a->publish).bytes, bytes + 32);
	finish();
}
END_TEST

START_TEST(tenants_of_long_chains)
{
	struct replica_options first = one, second = two;
	struct kvr_tenant row[4];
	uint64_t cursor = 0;
	size_t n;

	first.journal = second.journal = 1 << 20;
	first.tenants = second.tenants = SHARED;
	begin(&first, &second);
	pass(50 * MS, 0);
	(void)long_prompt(a, LONG);
	ck_assert_int_eq(kvr_prompt_set_tenant(a->prompt, 77, 9), KVR_OK);
	ck_assert_int_eq(kvr_observe(a->k, a->prompt, replica_worker(a, 'c'),
	    a->now + a->skew, 0, NULL), KVR_OK);
	pass(20 * MS, 0);
	ck_assert_uint_eq(holds_long(b, 'c'), LONG);
	ck_assert_int_eq(kvr_tenant_list(b->k, &cursor, row, sizeof(row[0]), 4,
	    &n), KVR_OK);
	ck_assert_uint_eq(n, 1);
	ck_assert_uint_eq(row[0].digest, 77);
	finish();
}
END_TEST

Suite *
suite_apply(void)
{
	Suite *s = suite_create("apply");
	TCase *t = tcase_create("apply");

	tcase_add_test(t, whose_prompts_are);
	tcase_add_test(t, whose_shares_count);
	tcase_add_test(t, a_flood_elsewhere_takes_its_share);
	tcase_add_test(t, what_it_costs_to_tell_tenants);
	tcase_add_test(t, tenants_of_long_chains);
	tcase_add_test(t, a_lease_counts_there_too);
	tcase_add_test(t, what_was_applied_is_not_sent_again);
	tcase_add_test(t, frames_count_once);
	tcase_add_test(t, an_end_may_overtake_its_beginning);
	tcase_add_test(t, a_lost_end_is_repaired);
	tcase_add_test(t, a_lost_beginning_is_no_harm);
	tcase_add_test(t, a_lost_commit_is_understood);
	tcase_add_test(t, strangers_have_no_effect);
	tcase_add_test(t, unknown_workers_are_not_made);
	tcase_add_test(t, a_new_worker_is_told_before_its_requests);
	tcase_add_test(t, a_silent_peer_ends);
	tcase_add_test(t, a_new_daemon_begins_clean);
	tcase_add_test(t, figures_of_a_peer);
	tcase_add_test(t, late_frames_are_prefixes_and_then_nothing);
	tcase_add_test(t, late_for_minutes_is_late);
	tcase_add_test(t, clocks_drift);
	tcase_add_test(t, one_late_frame_changes_nothing);
	tcase_add_test(t, late_for_long_is_late);
	tcase_add_test(t, jitter_of_a_busy_fleet_is_not_late);
	tcase_add_test(t, a_reset_that_two_saw_counts_once);
	tcase_add_test(t, a_reset_that_one_saw_counts_there_too);
	tcase_add_loop_test(t, a_clear_that_events_tell_both, 0,
	    sizeof(skews) / sizeof(skews[0]));
	tcase_add_test(t, a_clear_that_events_tell_one);
	tcase_add_test(t, a_reset_where_events_are_missing);
	tcase_add_test(t, a_recording_does_not_count_after_a_restart);
	tcase_add_test(t, a_recording_does_not_count_of_one_that_is_forgotten);
	tcase_add_test(t, a_recording_does_not_count_twice);
	tcase_add_test(t, a_recording_does_not_count_of_before_the_proof);
	tcase_add_test(t, two_are_soon_proved);
	tcase_add_test(t, a_lost_reset_is_repaired);
	tcase_add_test(t, two_that_begin_at_once_reset_nothing);
	tcase_add_test(t, a_late_starter_takes_epochs_over);
	tcase_add_test(t, sums_of_loads);
	tcase_add_test(t, loads_that_engines_publish);
	tcase_add_test(t, a_late_starter_counts_what_runs);
	tcase_add_test(t, a_lost_beginning_counts);
	tcase_add_test(t, a_peer_that_was_late_counts_again);
	tcase_add_test(t, an_old_list_brings_nothing_back);
	tcase_add_test(t, a_daemon_that_begins_anew_ends_the_earlier_one);
	tcase_add_test(t, the_later_daemon_of_a_site_stays);
	tcase_add_test(t, what_a_journal_lost_is_listed);
	tcase_add_test(t, more_leases_than_a_list_has);
	tcase_add_test(t, a_stopped_daemon_counts_again);
	tcase_add_test(t, leases_of_a_silent_peer_end_when_they_can);
	tcase_add_test(t, a_peer_is_not_forgotten_before_its_leases_end);
	tcase_add_test(t, an_end_in_a_busy_region_is_repaired);
	tcase_add_test(t, no_daemon_begins_in_a_busy_region);
	tcase_add_test(t, loads_end_one_by_one);
	tcase_add_test(t, a_load_is_of_one_worker);
	tcase_add_test(t, loads_that_the_router_ended_are_set_again);
	tcase_add_test(t, orders_are_shared);
	tcase_add_test(t, an_order_that_is_reversed_at_once);
	tcase_add_test(t, orders_are_not_shared_unasked);
	tcase_add_test(t, the_past_is_prefixes);
	tcase_add_test(t, a_reset_of_the_past_ends_nothing);
	tcase_add_test(t, a_reset_of_the_past_ends_what_was_replayed);
	tcase_add_test(t, epochs_agree_without_a_reset);
	tcase_add_test(t, the_same_prefixes_on_both_sides);
	tcase_add_test(t, loss_leaves_no_lease);
	tcase_add_test(t, a_chain_longer_than_a_frame);
	tcase_add_test(t, a_chain_longer_than_the_journal_allows);
	tcase_add_test(t, the_beginning_of_a_long_chain_is_lost);
	suite_add_tcase(s, t);
	return s;
}
