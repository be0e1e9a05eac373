/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_purge.c - what two reports together may purge, and what they may not.
 *
 * A block is one token. Four prompts are released in this order:
 *
 *	first "01234567", second "abcdefgh", third "ijklmnop", fourth "qrstuvwx"
 *
 * A request reported with 0 for the second, and another with 0 for the third,
 * contradict the record: what was released no later than the second is purged,
 * except what these requests have used themselves.
 */
#include "reports.h"

static const char *const prompt[] = { "01234567", "abcdefgh", "ijklmnop",
    "qrstuvwx" };
enum { FIRST, SECOND, THIRD, FOURTH };

/* All four, on two workers that have shown that they report. */
static void
setup(void)
{
	uint32_t worker, i;

	small_setup();
	set_purge();
	for (worker = 0; worker < 2; worker++) {
		set_mode(worker, KVR_RETAIN_FEEDBACK);
		for (i = 0; i < 4; i++) {
			say(prompt[i]);
			ask(worker, i == 3 ? 1 : 0, 1);
		}
	}
}

static void
told(uint32_t which, uint64_t cached)
{
	say(prompt[which]);
	ask(0, cached, 2);
}

static void
ck_left(uint32_t worker, uint32_t first, uint32_t second, uint32_t third,
    uint32_t fourth)
{
	const uint32_t want[] = { first, second, third, fourth };
	uint32_t i;

	for (i = 0; i < 4; i++) {
		say(prompt[i]);
		ck_assert_uint_eq(overlap(worker, k->region->clock), want[i]);
	}
}

static void
ck_purges(uint32_t purges)
{
	ck_assert_uint_eq(worker_stats(0).calibration.purges, purges);
	ck_assert_uint_eq(stats().calibration.purges, purges);
	ck_assert_uint_eq(worker_stats(1).calibration.purges, 0);
	ck_left(1, 8, 8, 8, 8);
}

START_TEST(two_contradict)
{
	told(SECOND, 0);
	ck_purges(0);
	ck_left(0, 8, 8, 8, 8);
	told(THIRD, 0);
	ck_purges(1);
	ck_left(0, 0, 8, 8, 8);
}
END_TEST

/* The purge ends at the older of the two, whichever came first. */
START_TEST(the_older_one_counts)
{
	told(THIRD, 0);
	told(SECOND, 0);
	ck_purges(1);
	ck_left(0, 0, 8, 8, 8);
	told(FOURTH, 0);
	ck_purges(1);
	ck_left(0, 0, 8, 8, 8);
}
END_TEST

/* What was released after the older one and before the younger stays. */
START_TEST(between_the_two_stays)
{
	told(_i == 0 ? FIRST : FOURTH, 0);
	told(_i == 0 ? FOURTH : FIRST, 0);
	ck_purges(1);
	ck_left(0, 8, 8, 8, 8);
}
END_TEST

START_TEST(not_unless_wanted)
{
	struct kvr_policy y;

	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
	told(SECOND, 0);
	told(THIRD, 0);
	told(FOURTH, 0);
	ck_purges(0);
	ck_left(0, 8, 8, 8, 8);
}
END_TEST

/* A hit between them on what is older still: the first was an accident. */
START_TEST(a_hit_on_older_forgets)
{
	told(SECOND, 0);
	told(FIRST, 8);
	told(THIRD, 0);
	ck_purges(0);
	ck_left(0, 8, 8, 8, 8);
	/* that was a first one again; the next one counts */
	told(FOURTH, 0);
	ck_purges(1);
}
END_TEST

START_TEST(a_hit_on_younger_does_not)
{
	told(SECOND, 0);
	told(FOURTH, 8);
	told(THIRD, 0);
	ck_purges(1);
	ck_left(0, 0, 8, 8, 8);
}
END_TEST

/* In the second report itself: its first blocks were there, and are older. */
START_TEST(a_hit_in_the_second)
{
	told(THIRD, 0);
	told(FIRST, 1);
	ck_purges(0);
	ck_left(0, 8, 8, 8, 8);
	ck_assert_uint_ne(slot_at(k, 0)->suspect, 0);
}
END_TEST

/* Two blocks and a quarter are noise; so is a missing number. */
START_TEST(too_little)
{
	struct kvr_report absent = said(KVR_REPORT_ABSENT, 0);
	uint32_t i;

	/* 7 of 8 are usable, and 5.8 predicted */
	for (i = 0; i < 4; i++)
		told(i, 4);
	ck_assert_uint_eq(slot_at(k, 0)->suspect, 0);
	for (i = 0; i < 8; i++) {
		say(prompt[i % 4]);
		tell(0, &absent);
	}
	ck_assert_uint_eq(slot_at(k, 0)->suspect, 0);
	ck_purges(0);
	ck_left(0, 8, 8, 8, 8);
}
END_TEST

/* A quarter of much is more than two blocks. */
START_TEST(a_quarter)
{
	struct kvr_policy y;
	uint32_t i;

	region_end();
	big_setup();
	kvr_policy_init(&y, sizeof(y));
	set_purge();
	set_mode(0, KVR_RETAIN_TTL);
	for (i = 0; i < 2; i++) {
		say_long(1000, 0, i);
		ask(0, i, 1);
	}
	for (i = 0; i < 4; i++) {
		say_long(1000, 0, i % 2);
		ask(0, 750, 2);
	}
	ck_assert_uint_eq(slot_at(k, 0)->suspect, 0);
	say_long(1000, 0, 0);
	ask(0, 749, 2);
	ck_assert_uint_ne(slot_at(k, 0)->suspect, 0);
}
END_TEST

/* What running requests use is kept, even if it is older. */
START_TEST(pinned_stays)
{
	uint64_t lease;

	say("0123xyz");
	lease = reserved(0, 2);
	told(SECOND, 0);
	told(THIRD, 0);
	ck_purges(1);
	ck_left(0, 4, 8, 8, 8);
	finish(lease, 3);
	ck_left(0, 4, 8, 8, 8);
}
END_TEST

/* No other incarnation is suspected. */
START_TEST(after_a_reset)
{
	uint32_t i;

	told(SECOND, 0);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	for (i = 0; i < 4; i++)
		told(i, i == 3);
	told(THIRD, 0);
	ck_purges(0);
	ck_left(0, 8, 8, 8, 8);
	told(FOURTH, 0);
	ck_purges(1);
}
END_TEST

/* By capacity and by TTL too: a purge belongs to no mode. */
START_TEST(in_any_mode)
{
	struct kvr_worker f;
	uint32_t mode, leaf;

	for (mode = KVR_RETAIN_TTL; mode <= KVR_RETAIN_FEEDBACK; mode++)
		for (leaf = 0; leaf < 2; leaf++) {
			region_end();
			setup();
			ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)),
			    KVR_OK);
			f.retain = mode;
			f.eviction = leaf;
			f.capacity_tokens = 1000;
			ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
			told(SECOND, 0);
			told(THIRD, 0);
			ck_purges(1);
			ck_left(0, 0, 8, 8, 8);
		}
}
END_TEST

/* Thousands are purged, some at each call; nothing used meanwhile is. */
START_TEST(many)
{
	struct kvr_policy y;
	uint32_t i, n = 2500;
	uint64_t gone;

	region_end();
	big_setup();
	kvr_policy_init(&y, sizeof(y));
	set_purge();
	set_mode(0, KVR_RETAIN_FEEDBACK);
	for (i = 0; i < n; i++) {
		say_long(10, 0, i);
		finish(reserved(0, 1), 1);
	}
	say("z");
	ask(0, 1, 1);
	say_long(10, 0, n - 1);
	ask(0, 0, 2);
	say_long(10, 0, n - 2);
	ask(0, 0, 2);
	ck_assert_uint_eq(worker_stats(0).calibration.purges, 1);
	gone = stats().evicted_capacity;
	ck_assert_uint_eq(gone, 1024);
	for (i = 0; i < 3; i++) {
		say("zz");
		finish(reserved(0, 3), 3);
	}
	ck_assert_uint_eq(stats().evicted_capacity, n - 2);
	say_long(10, 0, n - 1);
	ck_assert_uint_eq(overlap(0, 3), 10);
	say_long(10, 0, n - 3);
	ck_assert_uint_eq(overlap(0, 3), 0);
}
END_TEST

Suite *suite_purge(void);

Suite *
suite_purge(void)
{
	Suite *s = suite_create("purge");
	TCase *t = tcase_create("purge");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, two_contradict);
	tcase_add_test(t, the_older_one_counts);
	tcase_add_loop_test(t, between_the_two_stays, 0, 2);
	tcase_add_test(t, not_unless_wanted);
	tcase_add_test(t, a_hit_on_older_forgets);
	tcase_add_test(t, a_hit_on_younger_does_not);
	tcase_add_test(t, a_hit_in_the_second);
	tcase_add_test(t, too_little);
	tcase_add_test(t, a_quarter);
	tcase_add_test(t, pinned_stays);
	tcase_add_test(t, after_a_reset);
	tcase_add_test(t, in_any_mode);
	tcase_add_test(t, many);
	return s;
}
