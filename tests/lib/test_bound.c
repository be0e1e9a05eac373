/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_bound.c - the limit on the requests of one worker: by hand here, and at
 * random in test_cost_balanced.c and test_balance.c.
 */
#include "bound.h"

#include "inner.h"

enum { FLEET = 4 };

static struct kvr_policy y;
static struct kvr_request r;

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.max_workers = FLEET;
	region_of(&o);
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	y.cost = KVR_COST_BALANCED;
	y.balanced_bound_slack = 0;
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
	say("abcd");
}

static void
set_bound(double factor, double slack)
{
	y.balanced_bound = factor;
	y.balanced_bound_slack = slack;
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
set_facts(uint32_t worker, double weight, uint32_t sequences)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.weight = weight;
	f.sequences = sequences;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

/* The workers below the bound, as digits. */
static const char *
below(void)
{
	static char text[FLEET + 1];
	struct kvr_candidate c[FLEET];
	size_t n, i, length = 0;

	ck_assert_int_eq(kvr_candidates(k, p, &r, 0, c, sizeof(c[0]), FLEET,
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

	ck_assert_int_eq(kvr_candidates(k, p, &r, 0, c, sizeof(c[0]), FLEET,
	    &n), KVR_OK);
	return (enum kvr_verdict)c[worker].verdict;
}

/* 16 with this one: twice a share of 4 is 8. */
START_TEST(a_factor_of_the_share)
{
	set_bound(2, 0);
	run_all(7, 4, 4, 0);
	ck_assert_str_eq(below(), "0123");
	run_all(8, 4, 3, 0);
	ck_assert_str_eq(below(), "123");
	ck_assert_uint_eq(verdict(0), KVR_ABOVE_BOUND);
	set_bound(2.25, 0);
	ck_assert_str_eq(below(), "0123");
}
END_TEST

START_TEST(and_a_few_more)
{
	set_bound(1, 3);
	run_all(6, 3, 3, 3);
	ck_assert_str_eq(below(), "0123");
	run_all(7, 3, 3, 2);
	ck_assert_str_eq(below(), "123");
	/* an idle fleet: the slack alone keeps a few together */
	set_bound(1, 3.5);
	run_all(3, 0, 0, 0);
	ck_assert_str_eq(below(), "0123");
	run_all(4, 0, 0, 0);
	ck_assert_str_eq(below(), "123");
}
END_TEST

START_TEST(no_bound)
{
	set_bound(0, 0);
	run_all(100000, 0, 0, 0);
	ck_assert_str_eq(below(), "0123");
}
END_TEST

/* With a factor of 1, some worker always has less than its share. */
START_TEST(some_worker_is_below)
{
	set_bound(1, 0);
	run_all(0, 0, 0, 0);
	/* each would have 1 of a share of a quarter: no bound is possible */
	ck_assert_str_eq(below(), "0123");
	run_all(1, 1, 1, 0);
	ck_assert_str_eq(below(), "3");
	run_all(9, 9, 9, 9);
	ck_assert_str_eq(below(), "0123");
	set_bound(0.1, 0);
	run_all(10, 20, 30, 40);
	ck_assert_str_eq(below(), "0123");
}
END_TEST

/* Shares are by weight. */
START_TEST(shares_by_weight)
{
	set_facts(0, 5, 0);
	set_bound(1, 0);
	run_all(9, 0, 0, 6);
	/* 16: ten for the first, two for each other */
	ck_assert_str_eq(below(), "012");
	run_all(10, 1, 2, 2);
	ck_assert_str_eq(below(), "1");
}
END_TEST

/* ... and by places; unknown ones count as the mean of the others. */
START_TEST(shares_by_places)
{
	set_facts(0, 1, 8);
	set_facts(1, 1, 4);
	set_bound(1, 0);
	/* 8 4 6 6 of 24 */
	run_all(7, 4, 6, 6);
	ck_assert_str_eq(below(), "0");
	run_all(8, 3, 6, 6);
	ck_assert_str_eq(below(), "1");
	run_all(8, 4, 5, 6);
	ck_assert_str_eq(below(), "2");
}
END_TEST

/* Workers that this request may not go to do not count. */
START_TEST(of_the_eligible)
{
	set_bound(1, 0);
	run_all(3, 3, 1, 100);
	ck_assert_str_eq(below(), "012");
	r.n_excluded = 1;
	r.excluded[0] = id[3];
	/* 8 for three */
	ck_assert_str_eq(below(), "2");
	ck_assert_uint_eq(verdict(3), KVR_NOT_ALLOWED);
}
END_TEST

/* A pinned request goes where it is pinned. */
START_TEST(not_for_pinned_requests)
{
	struct kvr_decision d = { .size = sizeof(d) };

	set_bound(1, 0);
	run_all(50, 0, 0, 0);
	r.pinned = id[0];
	ck_assert_uint_eq(verdict(0), KVR_ELIGIBLE);
	ck_assert_int_eq(kvr_route(k, p, &r, 0, &d), KVR_OK);
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

/* What is above is not chosen, whatever it holds, and not drawn. */
START_TEST(not_chosen)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t i;

	set_bound(1.5, 0);
	say_long(1000, 1000, 1);
	(void)observed(0, 0);
	ck_assert_int_eq(kvr_route(k, p, &r, 0, &d), KVR_OK);
	ck_assert_uint_eq(d.worker, id[0]);
	run_all(3, 1, 1, 1);
	ck_assert_int_eq(kvr_route(k, p, &r, 0, &d), KVR_OK);
	ck_assert_uint_ne(d.worker, id[0]);
	ck_assert_uint_eq(d.eligible, FLEET);
	r.temperature = 100;
	for (i = 0; i < 200; i++) {
		r.seed = i;
		ck_assert_int_eq(kvr_route(k, p, &r, 0, &d), KVR_OK);
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
	tcase_add_test(t, and_a_few_more);
	tcase_add_test(t, no_bound);
	tcase_add_test(t, some_worker_is_below);
	tcase_add_test(t, shares_by_weight);
	tcase_add_test(t, shares_by_places);
	tcase_add_test(t, of_the_eligible);
	tcase_add_test(t, not_for_pinned_requests);
	tcase_add_test(t, of_this_cost);
	tcase_add_test(t, not_chosen);
	return s;
}
