/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_pressure.c - recent insertions into each worker's cache: against sums
 * over the whole history, and with the requests that count.
 */
#include "pressure.h"

#include "fade.h"
#include "id.h"

#include "inner.h"

#include <math.h>

#define SECOND INT64_C(1000000000)
enum { HISTORY = 4096 };

/* All that was added. */
static struct added {
	int64_t at;
	uint32_t slot;
	double fresh, prompt;
} added[HISTORY];
static uint32_t n_added;

static void
add(uint32_t slot, uint32_t fresh, uint32_t prompt, int64_t now)
{
	must(n_added < HISTORY);
	added[n_added++] = (struct added){ now, slot, fresh, prompt };
	pressure_add(k, slot, fresh, prompt, now);
}

static void
setup(void)
{
	struct kvr_options o = small_options();

	n_added = 0;
	o.ttl_ns = 3600 * SECOND;
	region_of(&o);
}

static bool
near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b) + 1e-12;
}

/* Compares each worker's share of all insertions, and of hits. */
static void
ck_history(int64_t now)
{
	double of[WORKERS] = { 0 }, all = 0, asked = 0, left;
	uint32_t i;

	for (i = 0; i < n_added; i++) {
		left = exp(-(double)(now - added[i].at) * 1e-9 / 600);
		of[added[i].slot] += left * added[i].fresh;
		all += left * added[i].fresh;
		asked += left * added[i].prompt;
	}
	for (i = 0; i < WORKERS; i++)
		must(near(pressure_inserted(k, i) / k->region->inserted,
		    of[i] / all));
	must(near(pressure_hits(k), 1 - all / asked));
	must(pressure_sane(k));
}

START_TEST(nothing_yet)
{
	ck_assert(pressure_hits(k) == 0);
	ck_assert(pressure_inserted(k, 0) == 0);
	add(1, 30, 40, 7 * SECOND);
	ck_assert(near(pressure_hits(k), 0.25));
	ck_assert(pressure_inserted(k, 0) == 0);
	ck_assert(pressure_inserted(k, 1) == 30);
}
END_TEST

START_TEST(older_ones_count_less)
{
	add(0, 1000, 4000, 5 * SECOND);
	add(1, 1000, 1000, 605 * SECOND);
	ck_history(605 * SECOND);
	ck_assert(near(pressure_inserted(k, 1) / pressure_inserted(k, 0),
	    exp(1)));
	ck_assert(near(pressure_hits(k), 1 - (exp(-1) + 1) /
	    (4 * exp(-1) + 1)));
}
END_TEST

/* Through hours and months: sums are scaled now and then, ratios are not. */
START_TEST(as_the_history_says)
{
	static const uint32_t longest[] = { 10, 600, 30000, 200000 };
	int64_t now = 0;
	uint32_t i, round;

	by_chance();
	for (round = 0; round < 4; round++) {
		n_added = 0;
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		for (i = 0; i < HISTORY / 4; i++) {
			now += (int64_t)pick(longest[round]) * SECOND / 10;
			add(pick(WORKERS), pick(5000), 5000, now);
			must(k->region->inserted <= 5000.0 * HISTORY *
			    exp(100));
			if (i % 16 == 15)
				ck_history(now);
		}
	}
}
END_TEST

START_TEST(scaled_after_100_mean_ages)
{
	add(0, 1000, 1000, 0);
	add(1, 500, 1000, 59990 * SECOND);
	ck_assert(pressure_inserted(k, 1) > 1e43);
	ck_assert_int_eq(k->region->inserted_since, 0);
	ck_history(59990 * SECOND);
	add(1, 500, 1000, 60001 * SECOND);
	ck_assert(pressure_inserted(k, 1) < 1000);
	ck_assert_int_eq(k->region->inserted_since, 60001 * SECOND);
	ck_history(60001 * SECOND);
	/* so long ago that nothing is left of it */
	add(2, 500, 1000, 600000 * SECOND);
	ck_assert(pressure_inserted(k, 1) == 0);
	ck_history(600000 * SECOND);
}
END_TEST

/* At an impossible time the past is forgotten, and later requests count. */
START_TEST(times_that_cannot_be)
{
	static const int64_t odd[] = { INT64_MAX, INT64_MIN, -2, 11 * SECOND };

	add(0, 1000, 2000, 0);
	k->region->inserted_since = odd[_i];
	add(1, 100, 400, 10 * SECOND);
	ck_assert(near(pressure_hits(k), 0.75));
	ck_assert(pressure_inserted(k, 0) < 1e-30);
	ck_assert(near(pressure_inserted(k, 1), 100));
	ck_assert_int_eq(k->region->inserted_since, 10 * SECOND);
}
END_TEST

START_TEST(clock_set_back)
{
	say_long(100, 0, 1);
	finish(reserved(0, 100 * SECOND), 100 * SECOND);
	finish(reserved(0, 100 * SECOND), 100 * SECOND);
	ck_assert(near(pressure_hits(k), 0.5));
	ck_assert_int_eq(kvr_clock_set(k, SECOND), KVR_OK);
	ck_assert(pressure_hits(k) == 0 && pressure_inserted(k, 0) == 0);
	finish(reserved(1, 2 * SECOND), 2 * SECOND);
	ck_assert(near(pressure_inserted(k, 1), 100));
	ck_assert(pressure_hits(k) == 0);
}
END_TEST

/* ---------------------------------------------------------- insertions --- */

static void
ck_sums(double of_0, double asked)
{
	double weight = pressure_inserted(k, 1);

	/* all at one time: worker 1 has 100 */
	ck_assert(near(pressure_inserted(k, 0) * 100 / weight, of_0));
	ck_assert(near(k->region->asked * 100 / weight, asked + 100));
}

START_TEST(which_requests_count)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;

	say_long(100, 0, 1);
	finish(reserved(1, 0), 0);
	ck_sums(0, 0);
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.flags = KVR_IGNORE_PREFILL;
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], 0, &d), KVR_OK);
	give_up(d.lease, 0);
	ck_sums(0, 0);
	r.flags = 0;
	r.stage = KVR_STAGE_DECODE;
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], 0, &d), KVR_OK);
	give_up(d.lease, 0);
	ck_sums(0, 0);
	/* when it is sent, whatever becomes of it */
	r.stage = KVR_STAGE_PREFILL;
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], 0, &d), KVR_OK);
	give_up(d.lease, 0);
	ck_sums(0, 0);
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], 0, &d), KVR_OK);
	ck_sums(0, 0);
	ck_assert_int_eq(kvr_lease_commit(k, d.lease, 0, 0), KVR_OK);
	ck_sums(100, 100);
	give_up(d.lease, 0);
	ck_sums(100, 100);
	/* blocks cached by the caller's account are not new */
	r.stage = KVR_STAGE_ALL;
	r.overlap_blocks = 30;
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], 0, &d), KVR_OK);
	finish(d.lease, 0);
	ck_sums(170, 200);
	/* observed prompts count, once */
	say_long(150, 100, 2);
	ck_assert_uint_eq(observed(0, 0), 150);
	ck_sums(320, 350);
	ck_assert_uint_eq(observed(0, 0), 150);
	ck_sums(320, 500);
	say_long(180, 100, 2);
	ck_assert_uint_eq(observed(0, 0), 180);
	ck_sums(350, 680);
}
END_TEST

/* An expired prompt is new again. */
START_TEST(observed_again_when_expired)
{
	say_long(100, 0, 1);
	ck_assert_uint_eq(observed(0, 0), 100);
	ck_assert_uint_eq(observed(0, 3599 * SECOND), 100);
	ck_assert(near(pressure_hits(k), 1 / (1 + exp(-3599 / 600.0))));
	ck_assert_uint_eq(observed(0, 7300 * SECOND), 100);
	ck_assert(pressure_hits(k) < 0.01);
}
END_TEST

START_TEST(a_reset_forgets_its_own)
{
	uint32_t slot;

	add(0, 100, 150, 0);
	add(1, 100, 250, 0);
	ck_assert_int_eq(kvr_worker_forget(k, id[0]), KVR_OK);
	ck_assert(pressure_inserted(k, 0) == 100);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	slot = id_slot(id[0]);
	ck_assert(pressure_inserted(k, slot) == 0);
	ck_assert(pressure_inserted(k, 1) == 100);
	ck_assert(near(pressure_hits(k), 0.5));
	ck_assert_int_eq(kvr_worker_reset(k, id[1], &id[1]), KVR_OK);
	/* slots that are used again begin anew as well */
	ck_assert_uint_eq(expire(0, 1000), 0);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_assert_int_eq(kvr_worker_reset(k, id[1], &id[1]), KVR_OK);
	ck_assert(pressure_inserted(k, id_slot(id[0])) == 0);
	ck_assert(pressure_inserted(k, id_slot(id[1])) == 0);
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_assert(k->region->inserted == 0 && k->region->asked == 0);
}
END_TEST

/* -------------------------------------------------------------- damage --- */

START_TEST(damage_is_noticed)
{
	static const double bad[] = { -1, -5e-324, 1.1e200, (double)INFINITY,
		(double)NAN };
	double *const at[] = { &k->region->inserted, &k->region->asked,
		&k->loads.inserted[1], &k->loads.inserted[2 * WORKERS - 1] };
	uint32_t i, j;

	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		for (j = 0; j < sizeof(bad) / sizeof(bad[0]); j++) {
			add(0, 50, 100, 0);
			ck_assert(pressure_hits(k) == 0.5);
			pressure_recover(k); /* which leaves sound values */
			ck_assert(pressure_hits(k) == 0.5);
			*at[i] = bad[j];
			ck_assert(!pressure_sane(k));
			ck_assert(pressure_hits(k) >= 0 &&
			    pressure_hits(k) <= 1);
			ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
			pressure_recover(k);
			ck_assert(pressure_sane(k));
			region_sound();
			ck_assert(*at[i] == 0 && pressure_hits(k) == 0 &&
			    pressure_inserted(k, 0) == 0);
		}
}
END_TEST

/* More inserted than asked: no share is found. */
START_TEST(hits_are_a_share)
{
	k->region->inserted = 7;
	k->region->asked = 5;
	ck_assert(pressure_hits(k) == 0);
	k->region->asked = 0;
	ck_assert(pressure_hits(k) == 0);
	pressure_add(k, UINT32_MAX, 1, 1, 0); /* no slot of this region */
	pressure_forget(k, UINT32_MAX);
	ck_assert(pressure_sane(k));
}
END_TEST

Suite *suite_pressure(void);

Suite *
suite_pressure(void)
{
	Suite *s = suite_create("pressure");
	TCase *t = tcase_create("pressure");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, nothing_yet);
	tcase_add_test(t, older_ones_count_less);
	tcase_add_test(t, as_the_history_says);
	tcase_add_test(t, scaled_after_100_mean_ages);
	tcase_add_loop_test(t, times_that_cannot_be, 0, 4);
	tcase_add_test(t, clock_set_back);
	tcase_add_test(t, which_requests_count);
	tcase_add_test(t, observed_again_when_expired);
	tcase_add_test(t, a_reset_forgets_its_own);
	tcase_add_test(t, damage_is_noticed);
	tcase_add_test(t, hits_are_a_share);
	return s;
}
