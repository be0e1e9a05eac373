/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_report.c - the reports that are believed, and their effects.
 *
 * A block is one token. All ages below 1024 are one bin, so prompts here have
 * thousands of blocks: "say_long(n, common, kind)".
 */
#include "reports.h"

enum { AT_ONCE = 0 }; /* the bin of blocks released just now */

/* ---------------------------------------------------------------- ages --- */

/* Committing merges the path's nodes: their ages must not be lost. */
START_TEST(ages_outlive_a_merge)
{
	set_mode(0, KVR_RETAIN_FEEDBACK);
	say_long(20000, 0, 9);
	ask(0, 0, 1);
	say_long(1000, 1000, 0);
	ask(0, 0, 2);
	ck_assert(hits(0, 0, AGES) == 0);
	say_long(2000, 2000, 0);
	ask(0, 1000, 3);
	ck_assert(hits(0, AT_ONCE, AT_ONCE + 1) > 1.9);
	ck_assert(hits(0, AT_ONCE + 1, AGES) == 0);
	say_long(3000, 3000, 0);
	ask(0, 2000, 4);
	/* 2000 have been released since its end, and 4 bins end at 2048 */
	ck_assert(hits(0, 0, 5) > 5.7);
	ck_assert(hits(0, 5, AGES) == 0);
}
END_TEST

/* --------------------------------------------------------- predictions --- */

/* The caller's own number, limited to the length of the prompt. */
START_TEST(overlap_as_given)
{
	static const uint32_t given[] = { 0, 3, 8, 9, KVR_AUTO - 1 };
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	uint64_t predicted = 0;
	uint32_t i;

	set_mode(0, KVR_RETAIN_FEEDBACK);
	kvr_request_init(&r, sizeof(r));
	say("abcdefgh");
	for (i = 0; i < 5; i++) {
		r.overlap_blocks = given[i];
		ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], 1, &d),
		    KVR_OK);
		ck_assert_uint_eq(d.overlap_tokens, given[i] < 8 ? given[i]
		    : 8);
		predicted += d.overlap_tokens;
		ck_assert_uint_eq(worker_stats(0).predicted_tokens, predicted);
		ck_assert_uint_eq(worker_stats(0).prefill_tokens,
		    8 - d.overlap_tokens);
		give_up(d.lease, 1);
	}
	r.overlap_blocks = (uint32_t)KVR_AUTO + 1;
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], 1, &d), KVR_EINVAL);
}
END_TEST

/* ------------------------------------------------- reports believed --- */

/* Compares the worker's reports with evidence, and those without. */
static void
ck_reports(uint32_t worker, uint64_t reports, uint64_t silent)
{
	struct kvr_worker_stats s = worker_stats(worker);

	ck_assert_uint_eq(s.calibration.reports, reports);
	ck_assert_uint_eq(s.calibration.unreported, silent);
}

#define ck_told(worker, report, is_evidence) do { \
	struct kvr_worker_stats was_ = worker_stats(worker); \
	struct kvr_report r_ = (report); \
	tell(worker, &r_); \
	ck_reports(worker, was_.calibration.reports + ((is_evidence) ? 1 : 0), \
	    was_.calibration.unreported + ((is_evidence) ? 0 : 1)); \
} while (0)

/* A 0 counts only from workers that have reported more than 0. */
START_TEST(zeros_of_those_who_report)
{
	say("abcdefgh");
	ck_told(0, said(KVR_REPORT_NONE, 0), false);
	ck_told(0, said(KVR_REPORT_VALUE, 0), false);
	ck_told(0, said(KVR_REPORT_ABSENT, 0), false);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_TTL);
	ck_told(0, said(KVR_REPORT_VALUE, 1), true);
	/* the first number above 0 switches it to feedback */
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_FEEDBACK);
	ck_told(0, said(KVR_REPORT_VALUE, 0), true);
	ck_told(0, said(KVR_REPORT_ABSENT, 0), true);
	ck_told(0, said(KVR_REPORT_NONE, 0), false);
	ck_assert_uint_eq(worker_stats(1).retain, KVR_RETAIN_TTL);
	ck_told(1, said(KVR_REPORT_VALUE, 0), false);
}
END_TEST

/* ABSENT has no number, whatever the field holds; nor has NONE. */
START_TEST(absent_is_zero)
{
	say("abcdefgh");
	ck_told(0, said(KVR_REPORT_ABSENT, 5), false);
	ck_told(0, said(KVR_REPORT_NONE, 5), false);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_TTL);
	ck_told(0, said(KVR_REPORT_VALUE, 5), true);
	ck_told(0, said(KVR_REPORT_ABSENT, 5), true);
	ck_assert_uint_eq(worker_stats(0).calibration.reported_tokens, 5);
}
END_TEST

/* Each endpoint, streamed or not, must report a number first. */
START_TEST(endpoints_and_streams)
{
	struct kvr_report none = said(KVR_REPORT_VALUE, 0), r;
	uint32_t endpoint, shown = 0;

	say("abcdefgh");
	for (endpoint = 0; endpoint < 64; endpoint += 7) {
		r = none;
		r.endpoint = endpoint;
		r.flags = endpoint % 2 == 0 ? KVR_REPORT_STREAM : 0;
		ck_told(0, r, false);
		r.cached_tokens = 3;
		ck_told(0, r, true);
		r.cached_tokens = 0;
		ck_told(0, r, true);
		r.kind = KVR_REPORT_ABSENT;
		ck_told(0, r, true);
		r.flags ^= KVR_REPORT_STREAM;
		ck_told(0, r, false);
		shown++;
	}
	/* endpoints equal modulo 32 are one */
	r = none;
	r.endpoint = 32 * 100000;
	r.flags = KVR_REPORT_STREAM;
	ck_told(0, r, true);
	r.endpoint = 1;
	ck_told(0, r, false);
	r.endpoint = UINT32_MAX;
	ck_told(0, r, false);
	r.cached_tokens = 3;
	ck_told(0, r, true);
	r.endpoint = 31;
	r.cached_tokens = 0;
	ck_told(0, r, true);
	ck_assert_uint_gt(shown, 5);
}
END_TEST

START_TEST(no_evidence)
{
	struct kvr_report r = said(KVR_REPORT_VALUE, 5);

	say("abcdefgh");
	r.flags = KVR_REPORT_NO_EVIDENCE;
	ck_told(0, r, false);
	r.flags |= KVR_REPORT_STREAM;
	ck_told(0, r, false);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_TTL);
	ck_assert_uint_eq(worker_stats(0).calibration.reported_tokens, 0);
	/* it has not shown the endpoint either */
	ck_told(0, said(KVR_REPORT_VALUE, 0), false);
	tell(0, NULL);
	ck_reports(0, 0, 4);
	ck_assert_uint_eq(stats().calibration.unreported, 4);
}
END_TEST

/* A ratio of the engine's own numbers, of every report that has them. */
START_TEST(usage_of_all_reports)
{
	struct kvr_report r = said(KVR_REPORT_VALUE, 5);

	say("abcdefgh");
	r.prompt_tokens = 10;
	tell(0, &r);
	r.flags = KVR_REPORT_NO_EVIDENCE;
	tell(0, &r);
	r.prompt_tokens = 0; /* 8, by the index */
	tell(1, &r);
	r.prompt_tokens = 4;
	tell(1, &r);
	r = said(KVR_REPORT_ABSENT, 0);
	r.prompt_tokens = 10;
	tell(0, &r);
	tell(0, NULL);
	ck_assert_uint_eq(worker_stats(0).calibration.usage_prompt_tokens, 20);
	ck_assert_uint_eq(worker_stats(0).calibration.usage_cached_tokens, 10);
	ck_assert_uint_eq(worker_stats(1).calibration.usage_prompt_tokens, 8);
	ck_assert_uint_eq(worker_stats(1).calibration.usage_cached_tokens, 5);
	ck_assert_uint_eq(stats().calibration.usage_prompt_tokens, 28);
	ck_assert_uint_eq(stats().calibration.usage_cached_tokens, 15);
}
END_TEST

/* More cached than the prompt has: the number is not about this prompt. */
START_TEST(more_than_the_prompt)
{
	static const uint64_t absurd[] = { 9, 1000, UINT32_MAX, UINT64_MAX,
	    UINT64_MAX / 2 + 1 };
	struct kvr_report r;
	uint32_t i;

	say("abcdefgh");
	for (i = 0; i < 5; i++)
		ck_told(0, said(KVR_REPORT_VALUE, absurd[i]), false);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_TTL);
	/* the engine's own length counts, if reported */
	r = said(KVR_REPORT_VALUE, 6);
	r.prompt_tokens = 5;
	ck_told(0, r, false);
	r.prompt_tokens = 6;
	ck_told(0, r, true);
	r.cached_tokens = 11;
	r.prompt_tokens = 12;
	ck_told(0, r, true);
	/* behind this prompt nothing is known */
	ck_assert_uint_eq(worker_stats(0).calibration.reported_tokens, 6 + 8);
	ck_told(0, said(KVR_REPORT_VALUE, 8), true);
}
END_TEST

/* A new incarnation has shown nothing; a removed one is not believed. */
START_TEST(after_a_reset)
{
	uint64_t lease;

	say("abcdefgh");
	ck_told(0, said(KVR_REPORT_VALUE, 5), true);
	lease = reserved(0, 1);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_reports(0, 0, 0);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_TTL);
	/* a report for the old one is ignored */
	reported(lease, 5, 2);
	ck_reports(0, 0, 0);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_TTL);
	ck_told(0, said(KVR_REPORT_VALUE, 0), false);
	ck_told(0, said(KVR_REPORT_VALUE, 1), true);
	ck_assert_uint_eq(stats().calibration.reports, 2);
}
END_TEST

/* Reports do not change configured modes. */
START_TEST(told_modes_stay)
{
	struct kvr_worker f;
	uint32_t mode;

	for (mode = KVR_RETAIN_TTL; mode <= KVR_RETAIN_FEEDBACK; mode++) {
		ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
		f.retain = mode;
		f.capacity_tokens = 100;
		ck_assert_int_eq(kvr_worker_set(k, id[mode], &f), KVR_OK);
		say("abcdefgh");
		ck_told(mode, said(KVR_REPORT_VALUE, 5), true);
		ck_assert_uint_eq(worker_stats(mode).retain, mode);
	}
	/* a capacity is better than reports */
	f.retain = KVR_RETAIN_AUTO;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	ck_told(0, said(KVR_REPORT_VALUE, 5), true);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_CAPACITY);
	f.capacity_tokens = 0;
	ck_assert_int_eq(kvr_worker_set(k, id[0], &f), KVR_OK);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_FEEDBACK);
}
END_TEST

/* ---------------------------------------------------------- evidence --- */

/* Misses with nothing known yet: S is 5/6, and one in twenty is wrong. */
static double
doubted(double misses_said)
{
	return misses_said * (1 - 5 / 6.0) / (1 - 5 / 6.0 + 0.05);
}

/* Only idle and predicted blocks count; the rest was new, or not usable. */
START_TEST(what_was_idle)
{
	set_mode(0, KVR_RETAIN_FEEDBACK);
	say_long(100, 100, 0);
	ask(0, 0, 1);
	ask(0, 50, 2);
	survival_forget(k, 0);
	say_long(300, 100, 1);
	ask(0, 60, 3);
	ck_seen(0, 60, doubted(40));
	/* all of it: the last token is always computed */
	ask(0, 299, 4);
	ck_seen(0, 299, 0);
	ask(0, 300, 5);
	ck_seen(0, 299, 0);
	ask(0, 0, 6);
	ck_seen(0, 0, doubted(299));
	/* more than was recorded is no hit */
	say_long(400, 100, 2);
	ask(0, 250, 7);
	ck_seen(0, 100, 0);
}
END_TEST

/* Where numbers are usual, a missing one counts, less than a zero. */
START_TEST(absent_where_numbers_are_usual)
{
	struct kvr_report absent = said(KVR_REPORT_ABSENT, 0),
	    zero = said(KVR_REPORT_VALUE, 0);
	struct kvr_worker f = { .size = sizeof(f) };
	uint32_t i;

	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(kvr_worker_get(k, id[i], &f), KVR_OK);
		f.retain = KVR_RETAIN_FEEDBACK;
		f.block_tokens = 1; /* so that little is much */
		ck_assert_int_eq(kvr_worker_set(k, id[i], &f), KVR_OK);
		say_long(2001, 2001, 0); /* half of it: of the first bin */
		ask(i, 0, 1);
		ask(i, 2000, 2);
		ask(i, 2000, 3);
		ask(i, 2000, 4);
		tell(i, i == 0 ? &absent : &zero);
	}
	ck_assert(misses(0, 0, AGES) > 0);
	ck_assert(misses(0, 0, AGES) < misses(1, 0, AGES) * 0.75);
}
END_TEST

/* Elsewhere a missing number is no evidence, though one number was seen. */
START_TEST(absent_where_numbers_are_not)
{
	uint32_t i;

	set_mode(0, KVR_RETAIN_FEEDBACK);
	say_long(4001, 4001, 0);
	ask(0, 0, 1);
	for (i = 0; i < 10; i++)
		ck_told(0, said(KVR_REPORT_ABSENT, 0), false);
	ck_told(0, said(KVR_REPORT_VALUE, 4000), true);
	for (i = 0; i < 10; i++)
		ck_told(0, said(KVR_REPORT_ABSENT, 0), false);
	ck_assert(misses(0, 0, AGES) == 0);
}
END_TEST

/* Blocks in use when the lease was opened are no evidence. */
START_TEST(in_use_is_no_evidence)
{
	uint64_t one, two, three;

	set_mode(0, KVR_RETAIN_FEEDBACK);
	say_long(200, 200, 0);
	ask(0, 0, 1);
	ask(0, 50, 1);
	survival_forget(k, 0);
	say_long(80, 200, 0);
	one = reserved(0, 2);
	say_long(200, 200, 0);
	two = reserved(0, 2);
	three = reserved(0, 2);
	reported(one, 0, 3);
	ck_seen(0, 0, doubted(79));
	reported(two, 150, 4);
	ck_seen(0, 70, doubted(49));
	/* all of it was in use when this one was opened, and is idle now */
	reported(three, 0, 5);
	ck_seen(0, 0, 0);
	reported(reserved(0, 6), 100, 7);
	ck_seen(0, 100, doubted(99));
}
END_TEST

/* The age when the lease was opened counts, whatever came since. */
START_TEST(age_of_the_asking)
{
	uint64_t lease;

	set_mode(0, KVR_RETAIN_FEEDBACK);
	say_long(1000, 0, 1);
	ask(0, 0, 1);
	ask(0, 500, 1);
	survival_forget(k, 0);
	say_long(3000, 0, 2);
	ask(0, 0, 2);
	say_long(1000, 0, 1);
	lease = reserved(0, 3);
	say_long(20000, 0, 3);
	ask(0, 0, 4);
	reported(lease, 999, 5);
	/*
	 * 3000 tokens and half of its own 1000: four times the logarithm of
	 * 3500 / 1024, and one
	 */
	ck_assert(hits(0, 8, 9) * 512 > 990);
	ck_seen(0, 999, 0);
}
END_TEST

/* An aborted request may have been cached or not: no report, no evidence. */
START_TEST(aborted_says_nothing)
{
	set_mode(0, KVR_RETAIN_FEEDBACK);
	say_long(200, 200, 0);
	ask(0, 0, 1);
	ask(0, 50, 1);
	survival_forget(k, 0);
	give_up(reserved(0, 2), 3);
	ck_seen(0, 0, 0);
	ck_reports(0, 1, 1);
}
END_TEST

/* ------------------------------------------------- the engine's blocks --- */

static uint32_t
learnt(uint32_t worker)
{
	return worker_stats(worker).learnt_block;
}

START_TEST(block_of_the_engine)
{
	uint32_t i;

	say_long(4000, 0, 1);
	for (i = 0; i < 15; i++)
		ask(0, 48 * (1 + i % 7), 1);
	ck_assert_uint_eq(learnt(0), 0);
	ask(0, 480, 1);
	ck_assert_uint_eq(learnt(0), 48);
	/* zeros, and repeated numbers, change nothing */
	for (i = 0; i < 100; i++) {
		ask(0, 0, 2);
		ask(0, 960, 2);
	}
	ck_assert_uint_eq(learnt(0), 48);
	/* an indivisible number shows that it was a multiple by chance */
	ask(0, 16, 3);
	ck_assert_uint_eq(learnt(0), 0);
	for (i = 0; i < 32; i++)
		ask(0, 16 * (1 + i % 9), 3);
	ck_assert_uint_eq(learnt(0), 16);
	ck_assert_uint_eq(learnt(1), 0);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_assert_uint_eq(learnt(0), 0);
}
END_TEST

/* A prefix that all requests share, again and again, is no block size. */
START_TEST(one_number_is_no_block)
{
	uint32_t i;

	say_long(4000, 0, 1);
	for (i = 0; i < 200; i++)
		ask(0, 3000, 1);
	ck_assert_uint_eq(learnt(0), 0);
}
END_TEST

/* The worker is as new, but its entries and counters stay. */
START_TEST(forget_what_reports_taught)
{
	struct kvr_worker_stats was, is;
	uint32_t i;

	say_long(4000, 0, 1);
	for (i = 0; i < 40; i++)
		ask(0, 48 * (1 + i % 7), 1);
	slot_at(k, 0)->completion = 5;
	was = worker_stats(0);
	ck_assert_uint_eq(was.learnt_block, 48);
	ck_assert_uint_eq(was.retain, KVR_RETAIN_FEEDBACK);
	ck_assert(hits(0, 0, AGES) > 0);
	ck_assert_int_eq(kvr_worker_forget(k, id[0]), KVR_OK);
	is = worker_stats(0);
	ck_assert_uint_eq(is.learnt_block, 0);
	ck_assert_uint_eq(is.learnt_capacity, 0);
	ck_assert_uint_eq(is.retain, KVR_RETAIN_TTL);
	ck_assert(hits(0, 0, AGES) == 0);
	ck_assert(slot_at(k, 0)->completion == 0);
	ck_assert_uint_eq(is.entries, was.entries);
	ck_assert_uint_eq(is.held_blocks, was.held_blocks);
	ck_assert_uint_eq(is.calibration.reports, was.calibration.reports);
	ck_assert_uint_eq(overlap(0, 1), 4000);
	/* the next report begins anew */
	ask(0, 480, 1);
	ck_assert_uint_eq(worker_stats(0).retain, KVR_RETAIN_FEEDBACK);
	ck_assert_uint_eq(learnt(0), 0);
}
END_TEST

Suite *suite_report(void);

Suite *
suite_report(void)
{
	Suite *s = suite_create("report");
	TCase *t = tcase_create("ages");

	tcase_add_checked_fixture(t, big_setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, ages_outlive_a_merge);
	t = small_case(s, "predicted");
	tcase_add_test(t, overlap_as_given);
	t = small_case(s, "believed");
	tcase_add_test(t, zeros_of_those_who_report);
	tcase_add_test(t, absent_is_zero);
	tcase_add_test(t, endpoints_and_streams);
	tcase_add_test(t, no_evidence);
	tcase_add_test(t, usage_of_all_reports);
	tcase_add_test(t, more_than_the_prompt);
	tcase_add_test(t, after_a_reset);
	tcase_add_test(t, told_modes_stay);
	t = tcase_create("evidence");
	tcase_add_checked_fixture(t, big_setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, what_was_idle);
	tcase_add_test(t, absent_where_numbers_are_usual);
	tcase_add_test(t, absent_where_numbers_are_not);
	tcase_add_test(t, in_use_is_no_evidence);
	tcase_add_test(t, age_of_the_asking);
	tcase_add_test(t, aborted_says_nothing);
	tcase_add_test(t, block_of_the_engine);
	tcase_add_test(t, one_number_is_no_block);
	tcase_add_test(t, forget_what_reports_taught);
	return s;
}
