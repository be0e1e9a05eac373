/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_event.c - effects of the counts of blocks in events: capacity, and
 * evictions.
 */
#include "event.h"
#include "id.h"

#include "streams.h"

#define SECOND INT64_C(1000000000)

/* A request from its beginning to its end. */
static void
served(const char *text, int64_t now)
{
	uint64_t lease = reserve(0, text, now);

	commit(lease, now);
	finish(lease, now);
}

static uint64_t
capacity(void)
{
	return worker_stats(0).events_capacity;
}

/* ------------------------------------------------------------ capacity --- */

START_TEST(a_clear_keeps_the_capacity_and_a_restart_does_not)
{
	(void)batch(0, 1, "s100", 1);
	(void)batch(1, 2, "r20", 1);
	(void)batch(2, 3, "s7 c s3", 1);
	ck_assert_uint_eq(worker_stats(0).events_held, 3);
	ck_assert_uint_eq(capacity(), 100);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	(void)batch(0, 4, "s3", 1);
	ck_assert_uint_eq(capacity(), 0);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_TTL);
}
END_TEST

/* The capacity found before stays, and nothing is added. */
START_TEST(a_degraded_stream_does_not_count)
{
	(void)batch(0, 1, "s100", 1);
	(void)batch(1, 2, "r20", 1);
	ck_assert_int_eq(kvr_events_lost(k, id[0], 5), KVR_OK);
	(void)batch(5, 3, "s1000 r100", 1);
	ck_assert_uint_eq(capacity(), 100);
	ck_assert_uint_eq(worker_stats(0).events_held, 0);
	(void)batch(6, 4, "c s10", 1);
	ck_assert_uint_eq(worker_stats(0).events_held, 10);
}
END_TEST

START_TEST(blocks_announced_again_do_not_count)
{
	batch_flags = KVR_BATCH_FULL;
	(void)batch(0, 1, "s100", 1);
	(void)batch(1, 2, "r20", 1);
	batch_flags = 0;
	ck_assert_uint_eq(capacity(), 0);
	ck_assert_uint_eq(worker_stats(0).events_held, 0);
	ck_assert_uint_eq(worker_stats(0).events_removed, 20);
}
END_TEST

START_TEST(blocks_of_two_sizes_do_not_count)
{
	(void)batch(0, 1, "s100", 1);
	block = 16;
	(void)batch(1, 2, "s50", 1);
	block = 1;
	(void)batch(2, 3, "r20", 1);
	ck_assert_uint_eq(capacity(), 0);
	ck_assert_uint_eq(worker_stats(0).events_held, 0);
}
END_TEST

/* A wrong size leaves no trace. */
START_TEST(a_clear_heals_another_size)
{
	(void)batch(0, 1, "s100", 1);
	(void)batch(1, 2, "r20", 1);
	block = 16;
	(void)batch(2, 3, "s50", 1);
	ck_assert_uint_eq(worker_stats(0).events_held, 0);
	(void)batch(3, 4, "c", 1);
	ck_assert_uint_eq(capacity(), 100);
	(void)batch(4, 5, "s50", 1);
	ck_assert_uint_eq(worker_stats(0).events_held, 50);
	ck_assert_uint_eq(capacity(), 0);
	(void)batch(5, 6, "r20", 1);
	ck_assert_uint_eq(capacity(), 800);
	/* within one batch */
	block = 1;
	(void)batch(6, 7, "c s9", 1);
	ck_assert_uint_eq(worker_stats(0).events_held, 9);
}
END_TEST

/* ----------------------------------------------------------- retention --- */

/* There is room for four: the prompt released first leaves. */
START_TEST(what_exceeds_the_counted_capacity_leaves)
{
	served("abc", 1);
	served("xyz", 1);
	ck_assert_uint_eq(worker_stats(0).held_blocks, 6);
	(void)batch(0, 1, "s4 r4 s4 r4 s4 r4 s4 r4", 1);
	ck_assert_uint_eq(capacity(), 4);
	served("uvw", 2);
	ck_assert_uint_le(worker_stats(0).held_blocks, 4);
	say("uvw");
	ck_assert_uint_eq(overlap(0, 2), 3);
	say("abc");
	ck_assert_uint_eq(overlap(0, 2), 0);
}
END_TEST

/*
 * Answers take room whether it was told or counted: those there were, and those
 * that are expected while a request runs, two blocks each.
 */
START_TEST(answers_take_room)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	struct kvr_report answer = { .size = sizeof(answer),
		.completion_tokens = 2 };
	uint64_t lease;

	if (_i == 0) {
		ck_assert_int_eq(kvr_worker_get(k, id[0], &facts), KVR_OK);
		facts.capacity_tokens = 8;
		ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	} else {
		(void)batch(0, 1, "s8 r8 s8 r8 s8 r8 s8 r8", 1);
		ck_assert_uint_eq(capacity(), 8);
	}
	lease = reserve(0, "abcd", 1);
	commit(lease, 1);
	ck_assert_int_eq(kvr_lease_finish(k, lease, &answer, 2, 0), KVR_OK);
	ck_assert_uint_eq(slot_at(k, 0)->anonymous, 2);
	served("wxyz", 3);
	ck_assert_uint_eq(slot_at(k, 0)->anonymous, 0);
	say("abcd");
	ck_assert_uint_eq(overlap(0, 4), 2);
	region_sound();
}
END_TEST

/* The configured capacity was too large. */
START_TEST(counting_replaces_what_was_told)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	ck_assert_int_eq(kvr_worker_get(k, id[0], &facts), KVR_OK);
	facts.capacity_tokens = 1000;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	(void)batch(0, 1, "s4 r4 s4 r4 s4 r4 s4 r4", 1);
	served("abcdefgh", 1);
	ck_assert_uint_le(worker_stats(0).held_blocks, 4);
	/* unless it is to go by its configured capacity */
	facts.retain = KVR_RETAIN_CAPACITY;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &facts), KVR_OK);
	served("ijklmnop", 1);
	ck_assert_uint_eq(overlap(0, 1), 8);
	region_sound();
}
END_TEST

/*
 * A cache has 50 blocks. Requests that bypass this router fill it: earlier
 * prompts are gone, though few were sent. Quarters of it are counted, 12 each.
 */
START_TEST(what_others_store_outlives)
{
	uint64_t i;

	(void)batch(0, 1, "s50", 1);
	(void)batch(1, 2, "r20 s20", 1);
	ck_assert_uint_eq(capacity(), 50);
	served("abc", 1);
	for (i = 2; i < 6; i++) {
		(void)batch(i, i + 1, "r12 s12", 2);
		say("abc");
		ck_assert_uint_eq(overlap(0, 2), 3);
	}
	/* 48 of others: it may be there */
	served("xyz", 2);
	(void)batch(6, 7, "r7 s7", 2);
	(void)batch(7, 8, "r5 s5", 2);
	say("abc");
	ck_assert_uint_eq(overlap(0, 3), 0);
	say("xyz");
	ck_assert_uint_eq(overlap(0, 3), 3);
	region_sound();
}
END_TEST

/* Neither do blocks stored before this router was there. */
START_TEST(the_past_outlives_nothing)
{
	const struct slot *s = slot_at(k, id_slot(id[0]));

	(void)batch(0, 1, "s50", 1);
	(void)batch(1, 2, "r20 s20", 1);
	served("abc", 1);
	batch_flags = KVR_BATCH_PAST;
	(void)batch(2, 3, "r7 s7", 1);
	batch_flags = 0;
	ck_assert_uint_eq(s->stored, 0);
	(void)batch(3, 4, "r7 s7", 1);
	ck_assert_uint_eq(s->stored, 7);
	ck_assert_uint_eq(s->filled[0], 0);
	(void)batch(4, 5, "r5 s5", 1);
	ck_assert_uint_eq(s->stored, 0);
	ck_assert_uint_eq(s->filled[0], 3); /* blocks released until then */
}
END_TEST

Suite *suite_event(void);

Suite *
suite_event(void)
{
	Suite *s = suite_create("event");
	TCase *t = small_case(s, "event");

	tcase_add_test(t, a_clear_keeps_the_capacity_and_a_restart_does_not);
	tcase_add_test(t, a_degraded_stream_does_not_count);
	tcase_add_test(t, blocks_announced_again_do_not_count);
	tcase_add_test(t, blocks_of_two_sizes_do_not_count);
	tcase_add_test(t, a_clear_heals_another_size);
	tcase_add_test(t, what_exceeds_the_counted_capacity_leaves);
	tcase_add_loop_test(t, answers_take_room, 0, 2);
	tcase_add_test(t, counting_replaces_what_was_told);
	tcase_add_test(t, what_others_store_outlives);
	tcase_add_test(t, the_past_outlives_nothing);
	return s;
}
