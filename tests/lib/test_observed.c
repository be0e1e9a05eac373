/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_observed.c - the load of requests that were only observed: against sums
 * over the whole history, and where it counts.
 */
#include "observed.h"

#include "fade.h"
#include "id.h"

#include "inner.h"

#include <math.h>

#define SECOND INT64_C(1000000000)
enum { HISTORY = 4096, HOUR = 3600 };

/* All that was added. */
static struct added {
	int64_t at;
	uint32_t slot;
	double prompt;
} added[HISTORY];
static uint32_t n_added;
static struct kvr_policy y;

static void
add(uint32_t slot, uint32_t prompt, int64_t now)
{
	must(n_added < HISTORY);
	added[n_added++] = (struct added){ now, slot, prompt };
	observed_add(k, slot, 0, prompt, now);
	if (k->region->clock < now)
		k->region->clock = now;
}

static void
setup(void)
{
	struct kvr_options o = small_options();

	n_added = 0;
	o.ttl_ns = HOUR * SECOND;
	region_of(&o);
	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
}

static void
set_seconds(double seconds)
{
	y.observed_seconds = seconds;
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
}

static bool
near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * fabs(b) + 1e-12;
}

static double
requests(uint32_t slot, int64_t now)
{
	return observed_requests(k, slot) * observed_left(k, now);
}

static double
reading(uint32_t slot, int64_t now)
{
	return observed_reading(k, slot) * observed_left(k, now);
}

static void
ck_history(double mean, int64_t now)
{
	double n[WORKERS] = { 0 }, tokens[WORKERS] = { 0 }, left;
	uint32_t i;

	for (i = 0; i < n_added; i++) {
		left = exp(-(double)(now - added[i].at) * 1e-9 / mean);
		n[added[i].slot] += left;
		tokens[added[i].slot] += left * added[i].prompt;
	}
	for (i = 0; i < WORKERS; i++) {
		must(near(requests(i, now), n[i]));
		must(near(reading(i, now), tokens[i]));
	}
	must(observed_sane(k));
}

/* One call is one request, and fades within some ten seconds. */
START_TEST(one_request)
{
	ck_assert(requests(0, 0) == 0 && reading(0, HOUR) == 0);
	say_long(300, 0, 1);
	ck_assert_uint_eq(observed(0, 5 * SECOND), 300);
	ck_assert(near(requests(0, 5 * SECOND), 1));
	ck_assert(near(reading(0, 5 * SECOND), 300));
	ck_assert(near(requests(0, 15 * SECOND), exp(-1)));
	ck_assert(near(reading(0, 15 * SECOND), 300 * exp(-1)));
	ck_assert(requests(1, 5 * SECOND) == 0);
	/* a short one as well, and one that is there */
	say_long(1, 0, 2);
	(void)observed(0, 5 * SECOND);
	say_long(300, 0, 1);
	(void)observed(0, 5 * SECOND);
	ck_assert(near(requests(0, 5 * SECOND), 3));
	ck_assert(near(reading(0, 5 * SECOND), 601));
	/* one that is over is no load */
	say_long(10, 0, 3);
	ck_assert_int_eq(kvr_observe(k, p, id[0], 5 * SECOND, KVR_ENDED,
	    NULL), KVR_OK);
	ck_assert_uint_eq(overlap(0, 5 * SECOND), 10);
	ck_assert(near(requests(0, 5 * SECOND), 3));
	/* observed requests are no load */
	ck_load(0, 0, 0, 0, 0);
}
END_TEST

START_TEST(as_the_history_says)
{
	static const double means[] = { 10, 1e-3, 77, 1e6 };
	int64_t now = 0;
	uint32_t i, round;

	by_chance();
	for (round = 0; round < 4; round++) {
		n_added = 0;
		ck_assert_int_eq(kvr_clear(k), KVR_OK);
		set_seconds(means[round]);
		for (i = 0; i < HISTORY / 4; i++) {
			now += (int64_t)(pick(round == 0 ? 100 : 3000) *
			    means[round] * 1e6);
			add(pick(WORKERS), pick(5000), now);
			if (i % 16 == 15)
				ck_history(means[round], now +
				    (int64_t)(pick(10) * means[round] * 1e9));
		}
	}
}
END_TEST

START_TEST(scaled_after_100_mean_ages)
{
	add(0, 10, 0);
	add(1, 10, 999 * SECOND);
	ck_assert(observed_requests(k, 1) > 1e43);
	ck_history(10, 999 * SECOND);
	ck_history(10, 1001 * SECOND); /* before another is added */
	add(0, 10, 1001 * SECOND);
	ck_assert(near(observed_requests(k, 0), 1));
	ck_assert_int_eq(k->region->observed_since, 1001 * SECOND);
	ck_history(10, 1001 * SECOND);
	/* requests that old have faded */
	ck_assert(requests(0, 2002 * SECOND) < 1e-40);
	ck_assert(requests(0, INT64_MAX) == 0);
}
END_TEST

/* Sums that fade with another mean are of no use: the past is forgotten. */
START_TEST(change_of_policy)
{
	static const double means[] = { 10, 1000, 1, 300, 1e6 };
	int64_t now = 0;
	uint32_t i;

	for (i = 0; i < 4; i++) {
		set_seconds(means[i]);
		say_long(50, 0, 1);
		now += SECOND;
		(void)observed(0, now);
		now += (int64_t)(80 * means[i]) * SECOND;
		say_long(50, 0, 2);
		(void)observed(0, now);
		ck_assert(near(requests(0, now), 1 + exp(-80)));
		/* another change does not affect them */
		y.temperature = 1;
		set_seconds(means[i]);
		ck_assert(near(requests(0, now), 1 + exp(-80)));
		set_seconds(means[i + 1]);
		ck_assert(requests(0, now) == 0 && reading(0, now) == 0);
		(void)observed(0, now);
		ck_assert(near(requests(0, now), 1));
		now += (int64_t)(means[i + 1] * 1e9);
		ck_assert(near(requests(0, now), exp(-1)));
	}
}
END_TEST

/* ------------------------------------------------------ where it counts --- */

static uint64_t
route(struct kvr *from, int64_t now, double *cost)
{
	struct kvr_candidate c[WORKERS];
	struct kvr_decision d = { .size = sizeof(d) };
	size_t n, i;

	must(kvr_candidates(from, p, NULL, now, c, sizeof(c[0]), WORKERS, &n)
	    == KVR_OK && n == WORKERS);
	for (i = 0; i < n; i++)
		cost[i] = c[i].cost;
	must(kvr_route(from, p, NULL, now, &d) == KVR_OK);
	return d.worker;
}

/* Dynamo has no such load: its decisions are as with leases that have ended. */
START_TEST(not_by_dynamos_cost)
{
	double one[WORKERS], two[WORKERS];
	uint32_t i, w, kind, differ[2] = { 0, 0 };
	struct kvr *leases = k, *observes;
	uint64_t a, b;

	by_chance();
	kvr_prompt_free(p);
	setup();
	observes = k;
	for (i = 0; i < test_amount(400); i++) {
		y.cost = i % 2;
		w = pick(WORKERS);
		kind = pick(5);
		say_long(20 + pick(20), pick(20), kind);
		(void)observed(w, (int64_t)i * SECOND);
		must(kvr_policy_set(k, &y) == KVR_OK);
		b = route(k, (int64_t)i * SECOND, two);
		k = leases;
		finish(reserved(w, (int64_t)i * SECOND),
		    (int64_t)i * SECOND);
		must(kvr_policy_set(k, &y) == KVR_OK);
		a = route(k, (int64_t)i * SECOND, one);
		k = observes;
		if (y.cost == KVR_COST_DYNAMO)
			must(a == b && memcmp(one, two, sizeof(one)) == 0);
		differ[0] += a != b;
		differ[1] += memcmp(one, two, sizeof(one)) != 0;
	}
	ck_assert(differ[0] > i / 10 && differ[1] > i / 4);
	kvr_free(leases);
}
END_TEST

START_TEST(a_reset_forgets_its_own)
{
	add(0, 100, 0);
	add(1, 100, 0);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_assert(requests(id_slot(id[0]), 0) == 0);
	ck_assert(reading(id_slot(id[0]), 0) == 0);
	ck_assert(near(requests(1, 0), 1) && near(reading(1, 0), 100));
	ck_assert_int_eq(kvr_clear(k), KVR_OK);
	ck_assert(requests(1, 0) == 0 && reading(1, 0) == 0);
}
END_TEST

START_TEST(clock_set_back)
{
	say_long(10, 0, 1);
	(void)observed(0, 100 * SECOND);
	ck_assert_int_eq(kvr_clock_set(k, SECOND), KVR_OK);
	ck_assert(requests(0, SECOND) == 0 && requests(0, 200 * SECOND) == 0);
	(void)observed(0, 2 * SECOND);
	ck_assert(near(requests(0, 2 * SECOND), 1));
}
END_TEST

/* -------------------------------------------------------------- damage --- */

/* At an impossible time the past is forgotten, and later requests count. */
START_TEST(times_that_cannot_be)
{
	static const int64_t odd[] = { INT64_MAX, INT64_MIN, -2, 11 * SECOND };

	add(0, 10, 0);
	k->region->observed_since = odd[_i];
	ck_assert(requests(0, 10 * SECOND) == 0);
	add(1, 10, 10 * SECOND);
	ck_assert(near(requests(1, 10 * SECOND), 1));
	ck_assert(requests(0, 10 * SECOND) < 1e-30);
}
END_TEST

START_TEST(damage_is_noticed)
{
	static const double bad[] = { -1, -5e-324, 1.1e200, (double)INFINITY,
		(double)NAN };
	double *const at[] = { &k->loads.observed_requests[0],
		&k->loads.observed_requests[2 * WORKERS - 1],
		&k->loads.observed_reading[1] };
	uint32_t i, j;

	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		for (j = 0; j < sizeof(bad) / sizeof(bad[0]); j++) {
			add(0, 50, 0);
			observed_recover(k); /* which leaves sound values */
			ck_assert(near(requests(0, 0), 1));
			*at[i] = bad[j];
			ck_assert(!observed_sane(k));
			ck_assert_int_eq(kvr_check(k), KVR_EINEXACT);
			observed_recover(k);
			ck_assert(observed_sane(k));
			region_sound();
			ck_assert(*at[i] == 0 && requests(0, 0) == 0);
		}
	observed_add(k, UINT32_MAX, 1, 1, 0); /* no slot of this region */
	observed_forget(k, UINT32_MAX);
}
END_TEST

/* The policy has no valid number. */
START_TEST(damaged_policy)
{
	static const double bad[] = { 0, -1, 5e-324, 1e308, (double)INFINITY,
		(double)NAN };
	double left;
	uint32_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		k->region->policy.observed_seconds = bad[i];
		add(0, 50, (int64_t)(1 + i) * SECOND);
		left = observed_left(k, (int64_t)(2 + i) * SECOND);
		ck_assert(left >= 0 && left <= 1);
		ck_assert(observed_sane(k));
	}
	k->region->policy.observed_seconds = 10;
}
END_TEST

Suite *suite_observed(void);

Suite *
suite_observed(void)
{
	Suite *s = suite_create("observed");
	TCase *t = tcase_create("observed");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, one_request);
	tcase_add_test(t, as_the_history_says);
	tcase_add_test(t, scaled_after_100_mean_ages);
	tcase_add_test(t, change_of_policy);
	tcase_add_test(t, not_by_dynamos_cost);
	tcase_add_test(t, a_reset_forgets_its_own);
	tcase_add_test(t, clock_set_back);
	tcase_add_loop_test(t, times_that_cannot_be, 0, 4);
	tcase_add_test(t, damage_is_noticed);
	tcase_add_test(t, damaged_policy);
	return s;
}
