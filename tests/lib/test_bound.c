/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_bound.c - the limit on the requests of one worker: by hand here, and at
 * random in test_cost_balanced.c and test_balance.c. Each may run 3 beside its
 * share, whatever the factor.
 */
#include "bound.h"

#include "inner.h"

enum { FLEET = 4 };

static struct kvr_policy y;
static struct kvr_request r;
static int64_t later; /* the time */

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.max_workers = FLEET;
	later = 0;
	region_of(&o);
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	say("abcd");
}

static void
set_bound(double factor)
{
	y.balanced_bound = factor;
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
}

static void
run(uint32_t worker, uint32_t requests)
{
	struct kvr_load load = { .size = sizeof(load), .requests = requests };

	ck_assert_int_eq(kvr_worker_set_load(k, id[worker], 0, &load), KVR_OK);
}

static void
run_all(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	run(0, a);
	run(1, b);
	run(2, c);
	run(3, d);
}

static void
set_weight(uint32_t worker, double weight)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.weight = weight;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

/* The workers below the bound, as digits. */
static const char *
below(void)
{
	static char text[FLEET + 1];
	struct kvr_candidate c[FLEET];
	size_t n, i, length = 0;

	ck_assert_int_eq(kvr_candidates(k, p, &r, later, c, sizeof(c[0]), FLEET,
	    &n), KVR_OK);
	ck_assert_uint_eq(n, FLEET);
	for (i = 0; i < n; i++)
		if (c[i].verdict == KVR_ELIGIBLE)
			text[length++] = (char)('0' + i);
	text[length] = '\0';
	return text;
}

static enum kvr_verdict
verdict(uint32_t worker)
{
	struct kvr_candidate c[FLEET];
	size_t n;

	ck_assert_int_eq(kvr_candidates(k, p, &r, later, c, sizeof(c[0]), FLEET,
	    &n), KVR_OK);
	return (enum kvr_verdict)c[worker].verdict;
}

/* 16 with this one: twice a share of 4, and 3, is 11. */
START_TEST(a_factor_of_the_share)
{
	ck_assert(y.balanced_bound == 2);
	run_all(10, 3, 2, 0);
	ck_assert_str_eq(below(), "0123");
	run_all(11, 3, 1, 0);
	ck_assert_str_eq(below(), "123");
	ck_assert_uint_eq(verdict(0), KVR_ABOVE_BOUND);
	set_bound(2.25);
	ck_assert_str_eq(below(), "0123");
	set_bound(1);
	run_all(6, 3, 3, 3);
	ck_assert_str_eq(below(), "0123");
	run_all(7, 7, 0, 1);
	ck_assert_str_eq(below(), "23");
	/* 3 is no limit for an idle fleet */
	set_bound(0.001);
	run_all(2, 2, 0, 0);
	ck_assert_str_eq(below(), "0123");
	run_all(3, 2, 0, 0);
	ck_assert_str_eq(below(), "123");
}
END_TEST

START_TEST(no_bound)
{
	set_bound(0);
	run_all(100000, 0, 0, 0);
	ck_assert_str_eq(below(), "0123");
}
END_TEST

/* With a factor of 1 or more, some worker always has less than its share. */
START_TEST(some_worker_is_below)
{
	set_bound(1);
	run_all(99, 99, 99, 99);
	ck_assert_str_eq(below(), "0123");
	set_bound(0.1);
	run_all(50, 60, 70, 80);
	ck_assert_str_eq(below(), "0123");
}
END_TEST

/* Shares are by weight. */
START_TEST(shares_by_weight)
{
	set_weight(0, 5);
	set_bound(1);
	/* 16: ten for the first, two for each other */
	run_all(12, 0, 1, 2);
	ck_assert_str_eq(below(), "0123");
	run_all(10, 0, 0, 5);
	ck_assert_str_eq(below(), "012");
	run_all(13, 0, 1, 1);
	ck_assert_str_eq(below(), "123");
}
END_TEST

/* Workers that this request may not go to do not count. */
START_TEST(of_the_eligible)
{
	set_bound(1);
	run_all(6, 1, 1, 100);
	ck_assert_str_eq(below(), "012");
	r.n_excluded = 1;
	r.excluded[0] = id[3];
	/* 9 for three */
	ck_assert_str_eq(below(), "12");
	ck_assert_uint_eq(verdict(3), KVR_NOT_ALLOWED);
}
END_TEST

/* Observed requests run for a while: here five requests. */
START_TEST(of_what_is_observed)
{
	uint32_t i;

	set_bound(1);
	for (i = 0; i < 5; i++)
		(void)observed(0, 0);
	ck_assert_str_eq(below(), "123");
	/* more than 3 of them are left for 5.108 s */
	later = INT64_C(5100000000);
	ck_assert_str_eq(below(), "123");
	later += 10000000;
	ck_assert_str_eq(below(), "0123");
}
END_TEST

/* A pinned request goes where it is pinned. */
START_TEST(not_for_pinned_requests)
{
	struct kvr_decision d = { .size = sizeof(d) };

	run_all(50, 0, 0, 0);
	r.pinned = id[0];
	ck_assert_uint_eq(verdict(0), KVR_ELIGIBLE);
	ck_assert_int_eq(kvr_route(k, p, &r, later, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[0]);
}
END_TEST

/* Other costs have no bound. */
START_TEST(of_this_cost)
{
	run_all(50, 0, 0, 0);
	ck_assert_str_eq(below(), "123");
	y.cost = KVR_COST_DYNAMO;
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
	ck_assert_str_eq(below(), "0123");
}
END_TEST

/* A worker above the bound is not chosen, for any overlap, and not drawn. */
START_TEST(not_chosen)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t i;

	say_long(1000, 1000, 1);
	finish(reserved(0, 0), 0);
	ck_assert_int_eq(kvr_route(k, p, &r, later, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[0]);
	run_all(9, 1, 1, 1);
	ck_assert_int_eq(kvr_route(k, p, &r, later, &d), KVR_OK);
	ck_assert_uint_ne(d.worker, id[0]);
	ck_assert_uint_eq(d.eligible, FLEET);
	r.temperature = 100;
	for (i = 0; i < 200; i++) {
		r.seed = i;
		ck_assert_int_eq(kvr_route(k, p, &r, later, &d), KVR_OK);
		ck_assert_uint_ne(d.worker, id[0]);
	}
}
END_TEST

Suite *suite_bound(void);

Suite *
suite_bound(void)
{
	Suite *s = suite_create("bound");
	TCase *t = tcase_create("bound");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, a_factor_of_the_share);
	tcase_add_test(t, no_bound);
	tcase_add_test(t, some_worker_is_below);
	tcase_add_test(t, shares_by_weight);
	tcase_add_test(t, of_the_eligible);
	tcase_add_test(t, of_what_is_observed);
	tcase_add_test(t, not_for_pinned_requests);
	tcase_add_test(t, of_this_cost);
	tcase_add_test(t, not_chosen);
	return s;
}
