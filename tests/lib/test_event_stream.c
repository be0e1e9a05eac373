/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_event_stream.c - the capacity that is counted, and damaged streams.
 */
#include "event_stream.h"

#include "streams.h"

static uint64_t
capacity(void)
{
	return worker_stats(0).events_capacity;
}

START_TEST(a_cache_is_full_when_removals_set_in)
{
	(void)batch(0, 1, "s100", 1);
	ck_assert_uint_eq(capacity(), 0);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_TTL);
	(void)batch(1, 2, "r15", 1);
	ck_assert_uint_eq(capacity(), 0);
	(void)batch(2, 3, "s15 r1 s1", 1);
	ck_assert_uint_eq(capacity(), 100);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	/* it could hold more */
	(void)batch(3, 4, "s30 r25", 1);
	ck_assert_uint_eq(capacity(), 130);
	(void)batch(4, 5, "r50", 1);
	ck_assert_uint_eq(capacity(), 130);
	ck_assert_uint_eq(worker_stats(0).events_held, 55);
}
END_TEST

/* Removals below a 64th of its blocks have other causes. */
START_TEST(few_removals_are_no_evidence)
{
	(void)batch(0, 1, "s2560", 1);
	(void)batch(1, 2, "r39", 1);
	ck_assert_uint_eq(capacity(), 0);
	(void)batch(2, 3, "r1", 1);
	ck_assert_uint_eq(capacity(), 2560);
}
END_TEST

START_TEST(a_capacity_is_in_tokens)
{
	block = 16;
	(void)batch(0, 1, "s100", 1);
	(void)batch(1, 2, "r20", 1);
	ck_assert_uint_eq(capacity(), 1600);
	block = 1;
}
END_TEST

START_TEST(of_two_tiers_the_larger_counts)
{
	(void)batch(0, 1, "s100 S150", 1);
	(void)batch(1, 2, "R60", 1);
	ck_assert_uint_eq(capacity(), 0);
	(void)batch(2, 3, "r20", 1);
	ck_assert_uint_eq(capacity(), 150);
}
END_TEST

/* -------------------------------------------------------------- damage --- */

START_TEST(without_events_nothing_is_known)
{
	ck_assert_uint_eq(event_capacity(k, 0), 0);
	ck_assert_uint_eq(event_held(k, 0), 0);
	ck_assert(event_sound(k));
	event_recover(k);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_OFF);
}
END_TEST

#define UNSOUND(field, value) do {                                   \
	struct stream kept_ = k->streams[0];                         \
	k->streams[0].field = (value);                               \
	ck_assert_msg(kvr_check(k) == KVR_EINEXACT,                  \
	    #field " = " #value);                                    \
	event_recover(k);                                            \
	ck_assert(event_sound(k));                                   \
	k->streams[0] = kept_;                                       \
	region_sound();                                              \
} while (0)

START_TEST(impossible_streams_are_found)
{
	UNSOUND(next, 1);
	UNSOUND(state, KVR_EVENTS_COMPLETE);
	(void)batch(0, 1, "s20", 1);
	UNSOUND(state, 3);
	UNSOUND(state, KVR_EVENTS_OFF);
	UNSOUND(next, 0);
	UNSOUND(uncounted, 2);
	UNSOUND(lacks, 2);
	UNSOUND(heard, -2);
	UNSOUND(heard, INT64_MAX);
	UNSOUND(block_tokens, UINT32_MAX);
	UNSOUND(held[0], 21);
	UNSOUND(most[0], UINT64_MAX);
	UNSOUND(evicted[1], UINT64_MAX);
}
END_TEST

/* A writer may have died with a batch half applied. */
START_TEST(after_a_death_streams_are_degraded)
{
	(void)batch(0, 1, "s20", 1);
	atomic_fetch_add(&k->region->seq, 1);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_DEGRADED);
	ck_assert_uint_eq(worker_stats(0).events_next, 1);
	(void)batch(1, 2, "c s3", 1);
	ck_assert_uint_eq(worker_stats(0).events_state, KVR_EVENTS_COMPLETE);
}
END_TEST

Suite *suite_event_stream(void);

Suite *
suite_event_stream(void)
{
	Suite *s = suite_create("event_stream");
	TCase *t = small_case(s, "event_stream");

	tcase_add_test(t, a_cache_is_full_when_removals_set_in);
	tcase_add_test(t, few_removals_are_no_evidence);
	tcase_add_test(t, a_capacity_is_in_tokens);
	tcase_add_test(t, of_two_tiers_the_larger_counts);
	tcase_add_test(t, without_events_nothing_is_known);
	tcase_add_test(t, impossible_streams_are_found);
	tcase_add_test(t, after_a_death_streams_are_degraded);
	return s;
}
