/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_simulate_return.c - the share of workers that joined or were slow, and
 * how much of a fleet is in use, against figures computed by hand.
 */
#include "simulated.h"

#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "simulate_report.h"

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

static const uint64_t ids[] = { 1, 2 };

static void
add(struct simulate_options *o, enum simulate_change_kind kind,
    uint32_t worker, int64_t at)
{
	struct simulate_change change = { at, 2, worker, kind };

	ck_assert(simulate_add_change(o, &change));
}

/* Round robin: a request each second, two of a session in a row. */
static size_t
returns_of(struct setup *u, const struct simulate_options *o, int64_t n,
    struct simulate_return *out)
{
	size_t found;
	int64_t i;

	begin(u, o, 512);
	for (i = 0; i < n; i++) {
		struct trace_request q = { .tokens = 700, .output_length = 1,
		    .n_ids = 2, .ids = ids, .session = (uint64_t)i / 2 + 1 };

		give(u, &q, i * SECOND);
	}
	ck_assert_int_eq(simulate_drain(u->s), KVR_OK);
	ck_assert_int_eq(simulate_returns(u->s, out, &found), KVR_OK);
	return found;
}

/* It gets half of seconds 10 to 69, and all begins of sessions or none. */
START_TEST(joined)
{
	struct simulate_options o = options_of(0, 2, 0);
	struct simulate_return r[SIMULATE_CHANGES_MAX];
	struct setup u;

	add(&o, SIMULATE_JOIN, 1, 10 * SECOND);
	ck_assert_uint_eq(returns_of(&u, &o, 100, r), 1);
	ck_assert_int_eq(r[0].change.kind, SIMULATE_JOIN);
	ck_assert_uint_eq(r[0].requests, 30);
	ck_assert_double_eq_tol(r[0].share, 1, 1e-9);
	ck_assert(r[0].session_share < 1e-9 || r[0].session_share > 1.999);
	end(&u);
}
END_TEST

/* 8 requests: 4 are too few. */
START_TEST(too_few)
{
	struct simulate_options o = options_of(0, 2, 0);
	struct simulate_return r[SIMULATE_CHANGES_MAX];
	struct setup u;

	add(&o, SIMULATE_JOIN, 1, 10 * SECOND);
	ck_assert_uint_eq(returns_of(&u, &o, 18, r), 1);
	ck_assert_uint_eq(r[0].requests, 4);
	ck_assert_double_eq_tol(r[0].share, -1, 1e-9);
	ck_assert_double_eq_tol(r[0].session_share, -1, 1e-9);
	end(&u);
}
END_TEST

/* Half of the requests, where its speed is three quarters of the fleet's. */
START_TEST(fair_by_speed)
{
	struct simulate_options o = options_of(0, 3, 0);
	struct simulate_return r[SIMULATE_CHANGES_MAX];
	struct setup u;

	o.n_speeds = 3;
	o.speeds[0] = 1;
	o.speeds[1] = 3;
	o.speeds[2] = 9; /* drains before */
	add(&o, SIMULATE_DRAIN, 2, 5 * SECOND);
	add(&o, SIMULATE_JOIN, 1, 10 * SECOND);
	ck_assert_uint_eq(returns_of(&u, &o, 100, r), 1);
	ck_assert_double_eq_tol(r[0].share, .5 / .75, 1e-9);
	end(&u);
}
END_TEST

/*
 * It is slow until 20 s: seconds 80 to 139 count, when the other one drains. A
 * state from the beginning is no return.
 */
START_TEST(was_slow)
{
	struct simulate_options o = options_of(0, 2, 0);
	struct simulate_return r[SIMULATE_CHANGES_MAX];
	struct setup u;

	add(&o, SIMULATE_SLOW, 1, 0);
	add(&o, SIMULATE_SLOW_END, 1, 20 * SECOND);
	add(&o, SIMULATE_DRAIN, 0, 80 * SECOND);
	ck_assert_uint_eq(returns_of(&u, &o, 200, r), 1);
	ck_assert_int_eq(r[0].change.kind, SIMULATE_SLOW_END);
	ck_assert_uint_eq(r[0].requests, 60);
	ck_assert_double_eq_tol(r[0].share, 2, 1e-9);
	ck_assert_double_eq_tol(r[0].session_share, 2, 1e-9);
	end(&u);
}
END_TEST

static char *
printed(struct setup *u, int (*print)(FILE *, const struct simulate_row *,
    size_t))
{
	struct simulate_row row = { "x", u->s, NULL };
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(print(f, &row, 1), KVR_OK);
	fclose(f);
	return text;
}

static void
prints(struct setup *u, int (*print)(FILE *, const struct simulate_row *,
    size_t), const char *want, bool wanted)
{
	char *text = printed(u, print);

	ck_assert_msg((strstr(text, want) != NULL) == wanted, "%s\n%s", want,
	    text);
	free(text);
}

START_TEST(reported)
{
	struct simulate_options o = options_of(0, 2, 0);
	struct simulate_return r[SIMULATE_CHANGES_MAX];
	struct setup u;

	(void)returns_of(&u, &o, 18, r);
	prints(&u, simulate_json, "returns", false);
	prints(&u, simulate_kv, "return", false);
	end(&u);
	add(&o, SIMULATE_JOIN, 1, 10 * SECOND);
	add(&o, SIMULATE_DRAIN, 1, 11 * SECOND);
	add(&o, SIMULATE_JOIN, 1, 12 * SECOND);
	ck_assert_uint_eq(returns_of(&u, &o, 18, r), 2);
	prints(&u, simulate_json, "\"returns\":[{\"kind\":\"join\","
	    "\"worker\":1,\"at\":10.000,\"requests\":3,\"share\":-1.0000,"
	    "\"session_share\":-1.0000},{\"kind\":\"join\",\"worker\":1,"
	    "\"at\":12.000,\"requests\":3,\"share\":-1.0000,"
	    "\"session_share\":-1.0000}]}\n", true);
	prints(&u, simulate_kv, "return1_kind=join\nreturn1_worker=1\n"
	    "return1_at=12.000\nreturn1_requests=3\nreturn1_share=-1.0000\n"
	    "return1_session_share=-1.0000\n", true);
	end(&u);
}
END_TEST

START_TEST(returns_memory)
{
	struct simulate_options o = options_of(0, 2, 0);
	struct simulate_return r[SIMULATE_CHANGES_MAX];
	unsigned long at;
	struct setup u;
	size_t n;

	add(&o, SIMULATE_JOIN, 1, 10 * SECOND);
	(void)returns_of(&u, &o, 18, r);
	for (at = 1; at <= 2; at++) {
		alloc_fail_at(at);
		ck_assert_int_eq(simulate_returns(u.s, r, &n), KVR_ENOMEM);
		alloc_reset();
		ck_assert_uint_eq(n, 0);
	}
	end(&u);
}
END_TEST

/* ---------------------------------------------------------- utilisation --- */

/* A request at once, and one 100 ms later that is not part of the figure. */
static double
utilisation_of(const struct simulate_options *o)
{
	struct simulate_served served;
	struct setup u;

	begin(&u, o, 512);
	give_simple(&u, 700, 1, ids, 0);
	give_simple(&u, 700, 9, ids, 100 * MS);
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	ck_assert_int_eq(simulate_served(u.s, &served), KVR_OK);
	end(&u);
	return served.utilisation;
}

/* 700 tokens take 35 ms, and the step takes 50.11 ms. */
START_TEST(scarcest)
{
	struct simulate_options o = options_of(0, 1, 0);

	ck_assert_double_eq_tol(utilisation_of(&o), .35, 1e-6);
	o.n_speeds = 1;
	o.speeds[0] = 2;
	ck_assert_double_eq_tol(utilisation_of(&o), .175, 1e-6);
	o.n_speeds = 0;
	o.capacity_tokens = 4 * 512; /* half of it is used */
	ck_assert_double_eq_tol(utilisation_of(&o), .35, 1e-6);
	o.capacity_tokens = 2 * 512;
	ck_assert_double_eq_tol(utilisation_of(&o), .5011, 1e-3);
	o.capacity_tokens = 0;
	o.n_sequences = 1;
	o.sequences[0] = 1;
	ck_assert_double_eq_tol(utilisation_of(&o), .5011, 1e-3);
}
END_TEST

/* The second worker is there from 50 ms on. */
START_TEST(while_up)
{
	struct simulate_options o = options_of(0, 2, 0);

	add(&o, SIMULATE_JOIN, 1, 50 * MS);
	ck_assert_double_eq_tol(utilisation_of(&o), .35 / 1.5, 1e-6);
}
END_TEST

Suite *suite_simulate_return(void);

Suite *
suite_simulate_return(void)
{
	Suite *s = suite_create("simulate_return");
	TCase *c = tcase_create("simulate_return");

	tcase_add_test(c, joined);
	tcase_add_test(c, too_few);
	tcase_add_test(c, fair_by_speed);
	tcase_add_test(c, was_slow);
	tcase_add_test(c, reported);
	tcase_add_test(c, returns_memory);
	tcase_add_test(c, scarcest);
	tcase_add_test(c, while_up);
	suite_add_tcase(s, c);
	return s;
}
