/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_event_api.c - the calls on events: numbers of batches, gaps, restarts,
 * bad arguments.
 */
#include "streams.h"

#include <stdio.h>
#include <unistd.h>

static void
ck_stream(uint32_t state, uint64_t next)
{
	ck_assert_uint_eq(got.state, state);
	ck_assert_uint_eq(got.next, next);
	ck_assert_uint_eq(got.worker, id[0]);
}

/* ------------------------------------------------------------- numbers --- */

START_TEST(batches_in_order_are_applied)
{
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_OFF);
	ck_assert_int_eq(worker_stats(0).events_at, -1);
	ck_assert_uint_eq(batch(0, 10, "s5", 7), KVR_EVENTS_APPLIED);
	ck_stream(KVR_EVENTS_COMPLETE, 1);
	ck_assert_uint_eq(batch(1, 11, "s3 r2", 8), KVR_EVENTS_APPLIED);
	ck_stream(KVR_EVENTS_COMPLETE, 2);
	ck_assert_uint_eq(got.stored, 3);
	ck_assert_uint_eq(got.removed, 2);
	ck_assert_uint_eq(worker_stats(0).events_batches, 2);
	ck_assert_uint_eq(worker_stats(0).events_stored, 8);
	ck_assert_uint_eq(worker_stats(0).events_removed, 2);
	ck_assert_uint_eq(worker_stats(0).events_held, 6);
	ck_assert_int_eq(worker_stats(0).events_at, 8);
	ck_assert_uint_eq(worker_stats(1).events_state, KVR_EVENTS_OFF);
}
END_TEST

START_TEST(a_gap_applies_nothing)
{
	(void)batch(0, 10, "s5", 1);
	ck_assert_uint_eq(batch(2, 12, "s5", 1), KVR_EVENTS_GAP);
	ck_stream(KVR_EVENTS_COMPLETE, 1);
	ck_assert_uint_eq(got.stored, 0);
	ck_assert_uint_eq(worker_stats(0).events_held, 5);
	/* as replayed */
	ck_assert_uint_eq(batch(1, 11, "s1", 1), KVR_EVENTS_APPLIED);
	ck_assert_uint_eq(batch(2, 12, "s5", 1), KVR_EVENTS_APPLIED);
	ck_assert_uint_eq(worker_stats(0).events_held, 11);
}
END_TEST

START_TEST(a_late_join_is_a_gap_and_then_degraded)
{
	ck_assert_uint_eq(batch(7, 10, "s5", 1), KVR_EVENTS_GAP);
	ck_stream(KVR_EVENTS_OFF, 0);
	ck_assert_int_eq(kvr_events_lost(k, id[0], 7), KVR_OK);
	ck_assert_uint_eq(batch(7, 10, "s5", 1), KVR_EVENTS_APPLIED);
	ck_stream(KVR_EVENTS_DEGRADED, 8);
	ck_assert_uint_eq(worker_stats(0).events_held, 0);
	ck_assert_uint_eq(worker_stats(0).events_stored, 5);
	ck_assert_uint_eq(worker_stats(0).events_lost, 1);
	/* since a clear all is known */
	ck_assert_uint_eq(batch(8, 11, "s4 c s3", 1), KVR_EVENTS_APPLIED);
	ck_stream(KVR_EVENTS_COMPLETE, 9);
	ck_assert_uint_eq(worker_stats(0).events_held, 3);
}
END_TEST

START_TEST(what_is_lost_is_skipped)
{
	(void)batch(0, 10, "s5", 1);
	ck_assert_int_eq(kvr_events_lost(k, id[0], 4), KVR_OK);
	region_sound();
	ck_assert_uint_eq(batch(3, 13, "s5", 1), KVR_EVENTS_DUPLICATE);
	ck_stream(KVR_EVENTS_DEGRADED, 4);
	ck_assert_uint_eq(batch(4, 14, "s5", 1), KVR_EVENTS_APPLIED);
	/* nothing is skipped, but something is lost */
	ck_assert_int_eq(kvr_events_lost(k, id[0], 2), KVR_OK);
	ck_assert_uint_eq(worker_stats(0).events_next, 5);
	ck_assert_uint_eq(worker_stats(0).events_lost, 2);
}
END_TEST

START_TEST(duplicates_are_dropped)
{
	uint64_t same = id[0];

	(void)batch(0, 10, "s5", 1);
	(void)batch(1, 11, "s5", 1);
	(void)batch(2, 12, "s5", 1);
	ck_assert_uint_eq(batch(0, 10, "c", 9), KVR_EVENTS_DUPLICATE);
	ck_assert_uint_eq(batch(1, 77, "c", 9), KVR_EVENTS_DUPLICATE);
	ck_assert_uint_eq(batch(2, 12, "c", 9), KVR_EVENTS_DUPLICATE);
	ck_assert_uint_eq(batch(2, 0, "c", 9), KVR_EVENTS_DUPLICATE);
	ck_stream(KVR_EVENTS_COMPLETE, 3);
	ck_assert_uint_eq(worker_stats(0).events_held, 15);
	ck_assert_int_eq(worker_stats(0).events_at, 9); /* it is alive */
	ck_assert_uint_eq(id[0], same);
}
END_TEST

/* ------------------------------------------------------------ restarts --- */

START_TEST(another_batch_0_is_a_restart)
{
	uint64_t old = id[0];

	(void)batch(0, 10, "s5", 1);
	(void)batch(1, 11, "s5", 1);
	observe(0, "abc", 2);
	ck_assert_uint_eq(batch(0, 20, "s2", 3), KVR_EVENTS_RESTARTED);
	ck_stream(KVR_EVENTS_COMPLETE, 1);
	ck_assert_uint_ne(id[0], old);
	say("abc");
	ck_assert_uint_eq(overlap(0, 3), 0);
	ck_assert_uint_eq(worker_stats(0).events_held, 2);
	ck_assert_uint_eq(worker_stats(0).events_restarts, 1);
	ck_assert_int_eq(kvr_events_lost(k, old, 9), KVR_EWORKER);
}
END_TEST

START_TEST(without_digests_batch_0_is_a_restart)
{
	(void)batch(0, 0, "s5", 1);
	ck_assert_uint_eq(batch(0, 0, "s5", 1), KVR_EVENTS_RESTARTED);
	ck_stream(KVR_EVENTS_COMPLETE, 1);
}
END_TEST

/* A reconnect has led to the same number with another batch. */
START_TEST(another_last_batch_is_a_restart)
{
	uint64_t old = id[0];

	(void)batch(0, 10, "s5", 1);
	(void)batch(1, 11, "s5", 1);
	ck_assert_uint_eq(batch(1, 21, "s2", 3), KVR_EVENTS_RESTARTED);
	ck_stream(KVR_EVENTS_DEGRADED, 0); /* not applied */
	ck_assert_uint_ne(id[0], old);
	ck_assert_uint_eq(got.stored, 0);
	ck_assert_uint_eq(batch(0, 20, "s3", 3), KVR_EVENTS_APPLIED);
	ck_assert_uint_eq(batch(1, 21, "s2", 3), KVR_EVENTS_APPLIED);
	ck_stream(KVR_EVENTS_COMPLETE, 2);
	ck_assert_uint_eq(worker_stats(0).events_held, 5);
}
END_TEST

START_TEST(a_caller_may_know_of_a_restart)
{
	(void)batch(0, 10, "s5", 1);
	ck_assert_uint_eq(batch(6, 11, "s9 n s4", 1), KVR_EVENTS_RESTARTED);
	ck_stream(KVR_EVENTS_DEGRADED, 7);
	ck_assert_uint_eq(got.stored, 4);
	ck_assert_uint_eq(batch(0, 12, "n s4", 1), KVR_EVENTS_RESTARTED);
	ck_stream(KVR_EVENTS_COMPLETE, 1);
	ck_assert_uint_eq(worker_stats(0).events_held, 4);
}
END_TEST

START_TEST(clearing_drops_what_is_on_record)
{
	uint64_t old = id[0];

	(void)batch(0, 10, "s5", 1);
	observe(0, "abc", 1);
	ck_assert_uint_eq(batch(1, 11, "c", 1), KVR_EVENTS_APPLIED);
	say("abc");
	ck_assert_uint_eq(overlap(0, 1), 0);
	ck_assert_uint_eq(id[0], old);
	ck_assert_uint_eq(worker_stats(0).events_cleared, 1);
	ck_assert_uint_eq(worker_stats(0).events_held, 0);
}
END_TEST

/* A stream that is joined late is replayed: its clears are old. */
START_TEST(the_past_drops_nothing)
{
	uint64_t old = id[0];

	observe(0, "abc", 1);
	batch_flags = KVR_BATCH_PAST;
	ck_assert_uint_eq(batch(0, 10, "c", 1), KVR_EVENTS_APPLIED);
	ck_assert_uint_eq(batch(1, 11, "s9 c s2", 1), KVR_EVENTS_APPLIED);
	batch_flags = 0;
	ck_assert_uint_eq(id[0], old);
	ck_assert_uint_eq(overlap(0, 1), 3);
	ck_assert_uint_eq(worker_stats(0).events_held, 2);
}
END_TEST

/* Others that read the journal drop it, too. */
START_TEST(a_reset_by_events_is_in_the_journal)
{
	struct kvr_options o = small_options();
	struct kvr_record r = { .size = sizeof(r) };
	uint64_t position = 0, old;

	o.journal_bytes = KVR_JOURNAL_MIN;
	region_of(&o);
	old = id[0];
	ck_assert_int_eq(kvr_journal_read(k, &position, 1, &r, NULL, 0),
	    KVR_EAGAIN);
	(void)batch(0, 10, "s5", 1);
	(void)batch(1, 10, "c", 1);
	ck_assert_int_eq(kvr_journal_read(k, &position, 1, &r, NULL, 0),
	    KVR_OK);
	ck_assert_uint_eq(r.kind, KVR_RECORD_RESET);
	ck_assert_uint_eq(r.worker, old);
	ck_assert_uint_eq(r.new_worker, id[0]);
	region_end();
}
END_TEST

/* ------------------------------------------------------------- lasting --- */

START_TEST(a_stream_outlives_its_handle)
{
	char path[] = "/tmp/kvroute-events-XXXXXX";
	struct kvr_options o = small_options();
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	ck_assert_int_eq(kvr_open(path, strlen(path), KVR_OPEN_CREATE |
	    KVR_OPEN_ATTACH, &o, &k), KVR_OK);
	people(1);
	(void)batch(0, 10, "s5", 1);
	kvr_free(k);
	ck_assert_int_eq(kvr_open(path, strlen(path), KVR_OPEN_ATTACH, &o,
	    &k), KVR_OK);
	ck_assert_uint_eq(batch(1, 11, "s2", 1), KVR_EVENTS_APPLIED);
	ck_stream(KVR_EVENTS_COMPLETE, 2);
	ck_assert_uint_eq(worker_stats(0).events_held, 7);
	region_end();
	(void)unlink(path);
}
END_TEST

START_TEST(a_reset_by_others_degrades)
{
	(void)batch(0, 10, "s5", 1);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	region_sound();
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(worker_stats(0).events_next, 1);
	ck_assert_uint_eq(worker_stats(0).events_held, 0);
	/* one without a stream still has none */
	ck_assert_int_eq(kvr_worker_reset(k, id[1], &id[1]), KVR_OK);
	ck_assert_uint_eq(worker_stats(1).events_state, KVR_EVENTS_OFF);
}
END_TEST

START_TEST(off_forgets_all)
{
	(void)batch(0, 10, "s50", 1);
	(void)batch(1, 10, "r20", 1);
	ck_assert_uint_eq(worker_stats(0).events_capacity, 50);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	ck_assert_int_eq(kvr_events_off(k, id[0]), KVR_OK);
	region_sound();
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_OFF);
	ck_assert_uint_eq(worker_stats(0).events_capacity, 0);
	ck_assert_uint_eq(worker_stats(0).events_batches, 0);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_TTL);
	ck_assert_uint_eq(batch(0, 10, "s5", 1), KVR_EVENTS_APPLIED);
}
END_TEST

START_TEST(another_worker_of_the_name_has_no_stream)
{
	(void)batch(0, 10, "s5", 1);
	remove_worker(id[0]);
	id[0] = worker_of('0');
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_OFF);
	ck_assert_uint_eq(worker_stats(0).events_next, 0);
}
END_TEST

/* -------------------------------------------------------------- misuse --- */

#define REFUSES(what, field, value) do {                             \
	struct kvr_event_batch b = { .size = sizeof(b) };            \
	struct kvr_event e = event_of('s', 1);                       \
	what.field = (value);                                        \
	ck_assert_msg(kvr_events_apply(k, id[0], &b, &e, sizeof(e),  \
	    1, engine_hashes, 4, NULL, 0, 1, 0, NULL) == KVR_EINVAL, \
	    #what "." #field " = " #value);                          \
} while (0)

START_TEST(absurd_batches)
{
	REFUSES(b, size, 0);
	REFUSES(b, seq, UINT64_MAX);
	REFUSES(b, flags, 4);
	REFUSES(b, reserved, 1);
	REFUSES(e, size, 0);
	REFUSES(e, size, sizeof(e) + 1);
	REFUSES(e, hashes, 5);
	REFUSES(e, hashes, UINT64_MAX);
	REFUSES(e, hashes_at, 4);
	REFUSES(e, hashes_at, UINT64_MAX);
	REFUSES(e, tokens, 1);
	REFUSES(e, tokens_at, 1);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_OFF);
}
END_TEST

#define APPLY(k, id, b, e, element, hashes, tokens, now, flags, out) \
	kvr_events_apply(k, id, b, e, element, 1, hashes, 4, tokens, \
	    tokens == NULL ? 0 : 1, now, flags, out)

START_TEST(bad_arguments)
{
	struct kvr_event_batch b = { .size = sizeof(b) };
	struct kvr_event e = event_of('s', 1);
	struct kvr_event_result none = { .size = 0 };

	ck_assert_int_eq(APPLY(NULL, id[0], &b, &e, sizeof(e), engine_hashes,
	    NULL, 1, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(APPLY(k, id[0], NULL, &e, sizeof(e), engine_hashes,
	    NULL, 1, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(APPLY(k, id[0], &b, NULL, sizeof(e), engine_hashes,
	    NULL, 1, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(APPLY(k, id[0], &b, &e, 1, engine_hashes, NULL, 1, 0,
	    NULL), KVR_EINVAL);
	ck_assert_int_eq(APPLY(k, id[0], &b, &e, sizeof(e), NULL, NULL, 1, 0,
	    NULL), KVR_EINVAL);
	ck_assert_int_eq(APPLY(k, id[0], &b, &e, sizeof(e), engine_hashes,
	    NULL, 1, 0, &none), KVR_EINVAL);
	ck_assert_int_eq(APPLY(k, id[0], &b, &e, sizeof(e), engine_hashes,
	    NULL, -2, 0, NULL), KVR_ECLOCK);
	ck_assert_int_eq(APPLY(k, id[0], &b, &e, sizeof(e), engine_hashes,
	    NULL, 1, 2, NULL), KVR_EINVAL);
	ck_assert_int_eq(APPLY(k, id[0] + 77, &b, &e, sizeof(e),
	    engine_hashes, NULL, 1, 0, NULL), KVR_EWORKER);
	ck_assert_int_eq(kvr_events_apply(k, id[0], &b, NULL, 0, 0, NULL, 0,
	    NULL, 1, 1, 0, NULL), KVR_EINVAL);
	/* more than fits a word; and events that are not there */
	ck_assert_int_eq(kvr_events_apply(k, id[0], &b, &e, sizeof(e),
	    (size_t)UINT32_MAX + 1, engine_hashes, 4, NULL, 0, 1, 0, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_events_apply(k, id[0], &b, &e, sizeof(e), 1,
	    engine_hashes, (size_t)UINT32_MAX + 1, NULL, 0, 1, 0, NULL),
	    KVR_EINVAL);
	ck_assert_int_eq(kvr_events_apply(k, id[0], &b, &e, sizeof(e), 1,
	    engine_hashes, 4, (const uint32_t *)engine_hashes,
	    (size_t)UINT32_MAX + 1, 1, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_events_apply(k, id[0], &b, NULL, sizeof(e), 1,
	    engine_hashes, 4, NULL, 0, 1, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_events_apply(k, id[0], &b, &e, 1, 1,
	    engine_hashes, 4, NULL, 0, 1, 0, NULL), KVR_EINVAL);
	ck_assert_int_eq(kvr_event_init(NULL, sizeof(e)), KVR_EINVAL);
	ck_assert_int_eq(kvr_event_init(&e, 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_events_lost(NULL, id[0], 1), KVR_EINVAL);
	ck_assert_int_eq(kvr_events_lost(k, id[0], UINT64_MAX), KVR_EINVAL);
	ck_assert_int_eq(kvr_events_lost(k, 0, 1), KVR_EWORKER);
	ck_assert_int_eq(kvr_events_off(NULL, id[0]), KVR_EINVAL);
	ck_assert_int_eq(kvr_events_off(k, 0), KVR_EWORKER);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_OFF);
	/* none of this was wrong with the rest */
	ck_assert_int_eq(APPLY(k, id[0], &b, &e, sizeof(e), engine_hashes,
	    NULL, 1, KVR_NOWAIT, NULL), KVR_OK);
	ck_assert_uint_eq(worker_stats(0).events_held, 1);
}
END_TEST

/*
 * The first reset leaves more than one call reclaims, and behind it each of the
 * next ones a little, so that slots become short: the batch can be applied
 * later.
 */
START_TEST(a_reset_that_must_wait_changes_nothing)
{
	struct kvr_options o = small_options();
	int error = KVR_OK, i;
	uint64_t seq = 1;
	char text[8];

	o.max_workers = 1;
	o.region_bytes = 4 << 20;
	region_of(&o);
	(void)batch(0, 1, "s5", 1);
	for (i = 0; i < 4000; i++) {
		snprintf(text, sizeof(text), "%04d", i);
		finish(reserve(0, text, 1), 1);
	}
	while (seq < 100 && (error = batch_error(seq, seq, "s1 c", 1)) ==
	    KVR_OK) {
		id[0] = got.worker;
		(void)reserve(0, "abc", 1);
		seq++;
	}
	ck_assert_int_eq(error, KVR_EBUSY);
	ck_assert_uint_eq(worker_stats(0).events_next, seq);
	ck_assert_uint_eq(worker_stats(0).events_cleared, seq - 1);
	for (i = 0; i < 100 && error == KVR_EBUSY; i++)
		error = batch_error(seq, seq, "s1 c", 1);
	ck_assert_int_eq(error, KVR_OK);
	ck_assert_uint_eq(got.next, seq + 1);
	region_end();
}
END_TEST

Suite *suite_event_api(void);

Suite *
suite_event_api(void)
{
	Suite *s = suite_create("event_api");
	TCase *t = small_case(s, "streams"), *own = tcase_create("regions");

	tcase_add_test(t, batches_in_order_are_applied);
	tcase_add_test(t, a_gap_applies_nothing);
	tcase_add_test(t, a_late_join_is_a_gap_and_then_degraded);
	tcase_add_test(t, what_is_lost_is_skipped);
	tcase_add_test(t, duplicates_are_dropped);
	tcase_add_test(t, another_batch_0_is_a_restart);
	tcase_add_test(t, without_digests_batch_0_is_a_restart);
	tcase_add_test(t, another_last_batch_is_a_restart);
	tcase_add_test(t, a_caller_may_know_of_a_restart);
	tcase_add_test(t, clearing_drops_what_is_on_record);
	tcase_add_test(t, the_past_drops_nothing);
	tcase_add_test(t, a_reset_by_others_degrades);
	tcase_add_test(t, off_forgets_all);
	tcase_add_test(t, another_worker_of_the_name_has_no_stream);
	tcase_add_test(t, absurd_batches);
	tcase_add_test(t, bad_arguments);
	tcase_add_test(own, a_reset_by_events_is_in_the_journal);
	tcase_add_test(own, a_stream_outlives_its_handle);
	tcase_add_test(own, a_reset_that_must_wait_changes_nothing);
	suite_add_tcase(s, own);
	return s;
}
