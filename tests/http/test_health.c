/* SPDX-License-Identifier: BSD-2-Clause */
/* test_health.c - gray workers are found, left, probed and healed. */
#include "test.h"

#include <string.h>

#include "health.h"

#define SECOND INT64_C(1000000000)

enum { MOST = 8 };

static struct health workers[MOST], *fleet[MOST];
static int64_t now;

static void
begin(void)
{
	size_t i;

	memset(workers, 0, sizeof(workers));
	for (i = 0; i < MOST; i++)
		fleet[i] = &workers[i];
	now = 100 * SECOND;
	for (i = 0; i < MOST; i++) /* all have had a request */
		workers[i].share_at = (uint64_t)now;
}

/* A request of so many units, each of so many milliseconds. */
static enum health_change
request(size_t n, size_t i, double units, double ms, bool failed)
{
	int64_t began = now;
	int64_t ns = (int64_t)(units * ms * 1e6);

	now += ns;
	if (!failed)
		health_worked(fleet[i], began, ns, units, now);
	return health_ended(fleet, n, fleet[i], 8, began, failed, now);
}

static void
all_work(size_t n, double ms)
{
	size_t i;

	for (i = 0; i < n; i++)
		ck_assert_int_eq(request(n, i, 100, ms, false), HEALTH_SAME);
}

START_TEST(a_slow_one_is_gray)
{
	begin();
	all_work(4, 5);
	/* earlier results fade; then it is suspected */
	ck_assert_int_eq(request(4, 1, 100, 60, false), HEALTH_SAME);
	ck_assert_int_eq(request(4, 1, 100, 60, false), HEALTH_SAME);
	ck_assert_int_eq(request(4, 1, 100, 60, false), HEALTH_BECAME_SLOW);
	ck_assert_int_eq(health_verdict(fleet[1]), HEALTH_SLOW);
	ck_assert_int_eq(health_verdict(fleet[0]), HEALTH_GOOD);
}
END_TEST

START_TEST(a_slow_one_is_found_while_it_works)
{
	begin();
	all_work(4, 5);
	health_worked(fleet[1], now, 20 * SECOND, 100, now + 20 * SECOND);
	now += 20 * SECOND;
	ck_assert_int_eq(health_goes_on(fleet, 4, fleet[1], 8, now),
	    HEALTH_SAME);
	health_worked(fleet[1], now, 9 * SECOND, 64, now + SECOND - 1);
	ck_assert_int_eq(health_goes_on(fleet, 4, fleet[1], 8, now + SECOND -
	    1), HEALTH_SAME);
	now += SECOND;
	health_worked(fleet[1], now, 10 * SECOND, 64, now);
	ck_assert_int_eq(health_goes_on(fleet, 4, fleet[0], 8, now),
	    HEALTH_SAME);
	ck_assert_int_eq(health_goes_on(fleet, 4, fleet[1], 8, now),
	    HEALTH_BECAME_SLOW);
	ck_assert_int_eq(health_goes_on(fleet, 4, fleet[1], 8, now),
	    HEALTH_SAME);
}
END_TEST

START_TEST(all_slow_ones_are_good)
{
	size_t i;

	begin();
	all_work(4, 5);
	for (i = 0; i < 400; i++)
		ck_assert_int_eq(request(4, i % 4, 5, 100, false),
		    HEALTH_SAME);
	begin();
	all_work(1, 5);
	for (i = 0; i < 10; i++)
		all_work(1, 500);
}
END_TEST

/* Seven times is not eight times. */
START_TEST(a_busy_one_is_good)
{
	int i;

	begin();
	for (i = 0; i < 20; i++) {
		all_work(3, 5);
		ck_assert_int_eq(request(4, 3, 100, 35, false), HEALTH_SAME);
	}
}
END_TEST

START_TEST(little_or_old_work_tells_nothing)
{
	begin();
	all_work(3, 5);
	ck_assert_int_eq(request(4, 3, 31, 500, false), HEALTH_SAME);
	ck_assert_int_eq(request(4, 3, 1, 500, false), HEALTH_SAME);
	ck_assert_int_eq(request(4, 3, 31, 500, false), HEALTH_SAME);
	ck_assert_int_eq(request(4, 3, 1, 500, false), HEALTH_BECAME_SLOW);
	begin();
	all_work(3, 5);
	now += 200 * SECOND;
	ck_assert_int_eq(request(4, 3, 100, 500, false), HEALTH_SAME);
}
END_TEST

/* Everything stood still, and goes on. */
START_TEST(one_stall_is_forgiven)
{
	int i;

	begin();
	for (i = 0; i < 9; i++) {
		all_work(4, 5);
		ck_assert_int_eq(request(4, 1, 100, 600, false), HEALTH_SAME);
		ck_assert_uint_ne(fleet[1]->suspect, 0);
		ck_assert_int_eq(request(4, 1, 200, 5, false), HEALTH_SAME);
		ck_assert_uint_eq(fleet[1]->suspect, 0);
	}
}
END_TEST

START_TEST(a_failing_one_is_gray)
{
	size_t i;

	begin();
	for (i = 0; i < 4; i++)
		request(4, i, 10, 1, false);
	ck_assert_int_eq(request(4, 2, 0, 0, true), HEALTH_SAME);
	ck_assert_int_eq(request(4, 2, 0, 0, true), HEALTH_BECAME_FAILING);
	ck_assert_int_eq(health_verdict(fleet[2]), HEALTH_FAILING);
}
END_TEST

/* Now and then: one request in four. */
START_TEST(one_that_fails_at_times_is_gray)
{
	enum health_change change = HEALTH_SAME;
	int i;

	begin();
	for (i = 0; i < 40 && change == HEALTH_SAME; i++)
		change = request(4, 2, 10, 1, i % 4 == 3);
	ck_assert_int_eq(change, HEALTH_BECAME_FAILING);
	begin();
	for (i = 0; i < 400; i++)
		ck_assert_int_eq(request(4, 2, 10, 1, i % 10 == 9),
		    HEALTH_SAME);
}
END_TEST

START_TEST(failures_of_long_ago_are_forgotten)
{
	begin();
	ck_assert_int_eq(request(4, 2, 0, 0, true), HEALTH_SAME);
	now += 20 * SECOND;
	ck_assert_int_eq(request(4, 2, 0, 0, true), HEALTH_SAME);
	now += 20 * SECOND;
	ck_assert_int_eq(request(4, 2, 0, 0, true), HEALTH_SAME);
	now += 1000 * SECOND;
	ck_assert_int_eq(request(4, 2, 0, 0, true), HEALTH_SAME);
}
END_TEST

/* All of them fail, as for a request that no server can answer. */
START_TEST(all_failing_ones_are_good)
{
	size_t i;
	int round;

	begin();
	for (round = 0; round < 2; round++)
		for (i = 0; i < 4; i++)
			request(4, i, 0, 0, true);
	for (round = 0; round < 20; round++)
		for (i = 0; i < 4; i++)
			ck_assert_int_eq(request(4, i, 0, 0, true),
			    HEALTH_SAME);
}
END_TEST

START_TEST(at_most_half_are_gray)
{
	size_t i, gray = 0;
	int round;

	begin();
	for (i = 0; i < 5; i++)
		for (round = 0; round < 9; round++)
			request(5, i, 0, 0, true);
	for (i = 0; i < 5; i++)
		gray += health_verdict(fleet[i]) != HEALTH_GOOD;
	ck_assert_uint_eq(gray, 2);
	begin();
	for (round = 0; round < 20; round++)
		ck_assert_int_eq(request(1, 0, 0, 0, true), HEALTH_SAME);
}
END_TEST

/* Servers without requests, now and lately, are no better. */
START_TEST(idle_ones_are_no_better)
{
	int i;

	begin();
	workers[1].share_at = 0;
	now += 121 * SECOND;
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(request(4, 0, 0, 0, true), HEALTH_SAME);
	request(4, 1, 0, 0, false);
	ck_assert_int_eq(request(4, 0, 0, 0, true), HEALTH_BECAME_FAILING);
}
END_TEST

/* A probe that is as fast as the others is good, whatever the factor. */
START_TEST(like_the_others_is_good)
{
	int i;

	begin();
	all_work(4, 5);
	for (i = 0; i < 9; i++)
		request(4, 1, 100, 60, false);
	ck_assert_int_eq(health_verdict(fleet[1]), HEALTH_SLOW);
	for (i = 0; i < 3; i++) {
		now += 10 * SECOND;
		health_worked(fleet[1], now, 20 * 5500000, 20, now);
		ck_assert_int_eq(health_ended(fleet, 4, fleet[1], 2, now,
		    false, now), i < 2 ? HEALTH_SAME : HEALTH_HEALED);
	}
}
END_TEST

/* One probe at a time, a second apart, and three good ones in a row. */
START_TEST(good_probes_heal)
{
	int i;

	begin();
	request(4, 2, 0, 0, true);
	request(4, 2, 0, 0, true);
	ck_assert(!health_is_due(fleet[2], 0, now));
	ck_assert(!health_probe(fleet[2], now));
	for (i = 0; i < 3; i++) {
		now += SECOND;
		ck_assert(health_is_due(fleet[2], 0, now));
		ck_assert(!health_is_due(fleet[2], 1, now));
		ck_assert(health_probe(fleet[2], now));
		ck_assert(!health_is_due(fleet[2], 0, now));
		ck_assert(!health_probe(fleet[2], now));
		ck_assert_int_eq(request(4, 2, 10, 1, false),
		    i == 2 ? HEALTH_HEALED : HEALTH_SAME);
	}
	ck_assert_int_eq(health_verdict(fleet[2]), HEALTH_GOOD);
	ck_assert(!health_is_due(fleet[2], 0, now + 100 * SECOND));
}
END_TEST

/* Requests that had to go there, many at a time. */
START_TEST(good_ones_at_once_count_once)
{
	int i;

	begin();
	request(4, 2, 0, 0, true);
	request(4, 2, 0, 0, true);
	for (i = 0; i < 50; i++)
		ck_assert_int_eq(request(4, 2, 10, 0.1, false), HEALTH_SAME);
}
END_TEST

/* The pause before the next one: 2, 4, 8, 8 seconds. */
START_TEST(bad_probes_put_off_the_next)
{
	static const int64_t pauses[] = { 1, 2, 4, 8, 8 };
	size_t i;

	begin();
	request(4, 2, 0, 0, true);
	request(4, 2, 0, 0, true);
	for (i = 0; i < 5; i++) {
		ck_assert(!health_probe(fleet[2], now + pauses[i] * SECOND -
		    1));
		now += pauses[i] * SECOND;
		ck_assert(health_probe(fleet[2], now));
		ck_assert_int_eq(request(4, 2, 0, 0, true), HEALTH_SAME);
	}
}
END_TEST

START_TEST(a_bad_probe_begins_anew)
{
	int i;

	begin();
	request(4, 2, 0, 0, true);
	request(4, 2, 0, 0, true);
	for (i = 0; i < 5; i++) {
		now += 2 * SECOND;
		ck_assert_int_eq(request(4, 2, 10, 1, i == 2), HEALTH_SAME);
	}
	now += 2 * SECOND;
	ck_assert_int_eq(request(4, 2, 10, 1, false), HEALTH_HEALED);
}
END_TEST

START_TEST(a_lost_probe_is_sent_again)
{
	begin();
	request(4, 2, 0, 0, true);
	request(4, 2, 0, 0, true);
	now += SECOND;
	ck_assert(health_probe(fleet[2], now));
	ck_assert(!health_probe(fleet[2], now + 29 * SECOND));
	ck_assert(health_probe(fleet[2], now + 30 * SECOND));
}
END_TEST

/* For a slow server only a fast probe is good, however short it is. */
START_TEST(slow_probes_are_bad)
{
	int i;

	begin();
	all_work(4, 5);
	request(4, 1, 200, 60, false);
	ck_assert_int_eq(request(4, 1, 100, 60, false), HEALTH_BECAME_SLOW);
	for (i = 0; i < 6; i++) {
		now += 2 * SECOND;
		ck_assert_int_eq(request(4, 1, 3, 60, false), HEALTH_SAME);
	}
	for (i = 0; i < 3; i++) {
		now += 2 * SECOND;
		ck_assert_int_eq(request(4, 1, 3, 6, false),
		    i == 2 ? HEALTH_HEALED : HEALTH_SAME);
	}
}
END_TEST

/* Without work there is no evidence; the next probe may show some. */
START_TEST(silent_probes_tell_nothing)
{
	int i;

	begin();
	all_work(4, 5);
	request(4, 1, 200, 60, false);
	request(4, 1, 200, 60, false);
	ck_assert_int_eq(health_verdict(fleet[1]), HEALTH_SLOW);
	for (i = 0; i < 9; i++) {
		now += 2 * SECOND;
		ck_assert_int_eq(health_ended(fleet, 4, fleet[1], 8, now,
		    false, now), HEALTH_SAME);
		ck_assert(!health_probe(fleet[1], now + SECOND - 1));
	}
	ck_assert_int_eq(health_verdict(fleet[1]), HEALTH_SLOW);
}
END_TEST

/* Requests begun before it was gray are no evidence about it now. */
START_TEST(older_requests_are_no_probes)
{
	int64_t began;
	int i;

	begin();
	began = now;
	now += SECOND;
	request(4, 2, 0, 0, true);
	request(4, 2, 0, 0, true);
	for (i = 0; i < 9; i++) {
		now += 2 * SECOND;
		health_worked(fleet[2], began, SECOND, 100, now);
		ck_assert_uint_eq(fleet[2]->units, 0);
		ck_assert_int_eq(health_ended(fleet, 4, fleet[2], 8, began,
		    false, now), HEALTH_SAME);
	}
}
END_TEST

static int
heal(size_t i)
{
	int n = 0;

	while (health_verdict(fleet[i]) != HEALTH_GOOD && n < 100) {
		now += 2 * SECOND;
		request(4, i, 10, 1, false);
		n++;
	}
	return n;
}

/* 3, 6, 12, 24, 24 probes; after five minutes 3 again. */
START_TEST(a_relapse_takes_more_probes)
{
	static const int needed[] = { 3, 6, 12, 24, 24 };
	size_t i;

	begin();
	for (i = 0; i < 5; i++) {
		request(4, 2, 0, 0, true);
		request(4, 2, 0, 0, true);
		ck_assert_int_eq(heal(2), needed[i]);
	}
	now += 300 * SECOND;
	for (i = 0; i < 4; i++)
		request(4, i, 0, 0, false);
	request(4, 2, 0, 0, true);
	request(4, 2, 0, 0, true);
	ck_assert_int_eq(heal(2), 3);
	request(4, 2, 0, 0, true);
	request(4, 2, 0, 0, true);
	health_forget(fleet[2]);
	ck_assert_int_eq(health_verdict(fleet[2]), HEALTH_GOOD);
	request(4, 2, 0, 0, true);
	request(4, 2, 0, 0, true);
	ck_assert_int_eq(heal(2), 3);
}
END_TEST

START_TEST(places_are_found_again)
{
	static const uint64_t keys[] = { 3, 11, 19 };
	struct health *a, *b, *c;
	bool fresh;

	begin();
	a = health_place(workers, 3, 3, &fresh);
	ck_assert(fresh);
	b = health_place(workers, 3, 11, &fresh);
	ck_assert(fresh);
	c = health_place(workers, 3, 19, &fresh);
	ck_assert(fresh);
	ck_assert(a != b && b != c && a != c);
	ck_assert_ptr_null(health_place(workers, 3, 27, &fresh));
	ck_assert(health_place(workers, 3, 19, &fresh) == c && !fresh);
	a->verdict = HEALTH_SLOW;
	a->cold = 1;
	health_keep(workers, 3, &keys[1], 2);
	ck_assert(health_place(workers, 3, 11, &fresh) == b && !fresh);
	ck_assert(health_place(workers, 3, 27, &fresh) == a && fresh);
	ck_assert_int_eq(health_verdict(a), HEALTH_GOOD);
	ck_assert(!health_answered(a, now));
	health_drop(workers, 3, 3);
	ck_assert_ptr_null(health_place(workers, 3, 3, &fresh));
	health_drop(workers, 3, 11);
	ck_assert(health_place(workers, 3, 19, &fresh) == c && !fresh);
	ck_assert(health_place(workers, 3, 27, &fresh) == a && !fresh);
	ck_assert(health_place(workers, 3, 3, &fresh) == b && fresh);
}
END_TEST

START_TEST(a_cold_one_warms_up)
{
	const int64_t whole = 10 * SECOND;
	struct health *h = &workers[0];

	begin();
	ck_assert_double_eq(health_warmth(h, whole, now), 1);
	ck_assert(!health_answered(h, now));
	health_cool(h);
	ck_assert_double_eq(health_warmth(h, whole, now + 100 * SECOND), 0);
	ck_assert(health_answered(h, now));
	ck_assert(!health_answered(h, now + SECOND));
	ck_assert_double_eq(health_warmth(h, whole, now), 0);
	ck_assert_double_eq_tol(health_warmth(h, whole, now + 3 * SECOND), 0.3,
	    1e-9);
	ck_assert_double_eq(health_warmth(h, whole, now + whole), 1);
	ck_assert_double_eq(health_warmth(h, whole, now + 2 * whole), 1);
}
END_TEST

/* Times and units that no request can have. */
START_TEST(nonsense_is_no_evidence)
{
	begin();
	health_worked(fleet[0], now, -1, 100, now);
	health_worked(fleet[0], now, 1, 0, now);
	health_worked(fleet[0], now, 1, -1, now);
	health_worked(fleet[0], now, 1, 1e300, now);
	health_worked(fleet[0], now, INT64_MAX, 100, now);
	ck_assert_uint_eq(fleet[0]->units, 0);
	ck_assert_uint_eq(fleet[0]->ns, 0);
}
END_TEST

Suite *suite_health(void);

Suite *
suite_health(void)
{
	Suite *s = suite_create("health");
	TCase *c = tcase_create("health");

	tcase_add_test(c, idle_ones_are_no_better);
	tcase_add_test(c, like_the_others_is_good);
	tcase_add_test(c, a_slow_one_is_gray);
	tcase_add_test(c, a_slow_one_is_found_while_it_works);
	tcase_add_test(c, all_slow_ones_are_good);
	tcase_add_test(c, a_busy_one_is_good);
	tcase_add_test(c, little_or_old_work_tells_nothing);
	tcase_add_test(c, one_stall_is_forgiven);
	tcase_add_test(c, a_failing_one_is_gray);
	tcase_add_test(c, one_that_fails_at_times_is_gray);
	tcase_add_test(c, failures_of_long_ago_are_forgotten);
	tcase_add_test(c, all_failing_ones_are_good);
	tcase_add_test(c, at_most_half_are_gray);
	tcase_add_test(c, good_probes_heal);
	tcase_add_test(c, good_ones_at_once_count_once);
	tcase_add_test(c, bad_probes_put_off_the_next);
	tcase_add_test(c, a_bad_probe_begins_anew);
	tcase_add_test(c, a_lost_probe_is_sent_again);
	tcase_add_test(c, slow_probes_are_bad);
	tcase_add_test(c, silent_probes_tell_nothing);
	tcase_add_test(c, older_requests_are_no_probes);
	tcase_add_test(c, a_relapse_takes_more_probes);
	tcase_add_test(c, places_are_found_again);
	tcase_add_test(c, a_cold_one_warms_up);
	tcase_add_test(c, nonsense_is_no_evidence);
	suite_add_tcase(s, c);
	return s;
}
