/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_simulate_load.c - engines under load and workers that change in
 * mid-run, and the reports about them, against figures computed by hand.
 */
#include "simulated.h"

#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "simulate_report.h"

#define MS INT64_C(1000000)

static const uint64_t a[] = { 1, 2 }, b[] = { 3, 4 }, c[] = { 5, 6, 7 };

static void
add(struct simulate_options *o, enum simulate_change_kind kind,
    uint32_t worker, int64_t at)
{
	struct simulate_change change = { at, 2, worker, kind };

	ck_assert(simulate_add_change(o, &change));
}

static const struct simulate_ride *
rides_of(struct setup *u, size_t n)
{
	size_t count;
	const struct simulate_ride *r = simulate_rides(u->s, &count);

	ck_assert_uint_eq(count, n);
	return r;
}

static struct simulate_served
served_of(struct setup *u)
{
	struct simulate_served served;

	ck_assert_int_eq(simulate_drain(u->s), KVR_OK);
	ck_assert_int_eq(simulate_check(u->s), KVR_OK);
	ck_assert_int_eq(simulate_served(u->s, &served), KVR_OK);
	return served;
}

/* ------------------------------------------------------------ engines --- */

/* One slot: the second waits for all of the first. */
START_TEST(slots)
{
	struct simulate_options o = options_of(_i, 1, 0);
	struct setup u;

	o.check = true;
	o.n_sequences = 1;
	o.sequences[0] = 1;
	begin(&u, &o, 512);
	give_simple(&u, 700, 3, a, 0);
	give_simple(&u, 700, 3, b, 0);
	(void)served_of(&u);
	ck_assert_uint_eq(simulate_totals(u.s)->waited, 1);
	ck_assert_int_eq(rides_of(&u, 2)[0].end, 80330000);
	ck_assert_int_eq(rides_of(&u, 2)[1].first, 80330000 + 50110000);
	end(&u);
}
END_TEST

/* The case is test_engine_load.c's, with books checked after each step. */
START_TEST(preempted)
{
	struct simulate_options o = options_of(_i, 1, 3 * 512);
	struct setup u;

	o.check = true;
	o.preempt = true;
	begin(&u, &o, 512);
	give_simple(&u, 510, 5, a, 0);
	give_simple(&u, 510, 5, b, 0);
	(void)served_of(&u);
	ck_assert_uint_eq(simulate_totals(u.s)->preempted, 1);
	ck_assert_uint_eq(simulate_totals(u.s)->tokens, 1020);
	ck_assert_uint_eq(simulate_totals(u.s)->waited, 0);
	end(&u);
}
END_TEST

/* ------------------------------------------------------------ changes --- */

/* The step that begins in the spell takes twice as long. */
START_TEST(slow)
{
	struct simulate_options o = options_of(_i, 1, 0);
	struct setup u;

	o.check = true;
	add(&o, SIMULATE_SLOW_END, 0, 60 * MS);
	add(&o, SIMULATE_SLOW, 0, 10 * MS);
	begin(&u, &o, 512);
	give_simple(&u, 700, 3, a, 0);
	(void)served_of(&u);
	ck_assert_int_eq(rides_of(&u, 1)[0].end,
	    50110000 + 2 * 15110000 + 15110000);
	end(&u);
}
END_TEST

/* Turns go over the workers that are up. */
START_TEST(turns_of_those_up)
{
	static const uint32_t workers[] = { 0, 1, 2, 2, 0, 2, 0, 1 };
	struct simulate_options o = options_of(0, 3, 0);
	struct setup u;
	int64_t i;

	o.check = true;
	add(&o, SIMULATE_JOIN, 1, 6 * MS);
	add(&o, SIMULATE_DRAIN, 1, 3 * MS);
	begin(&u, &o, 512);
	for (i = 0; i < 6; i++)
		give_simple(&u, 700, 3, a, i * MS);
	give_simple(&u, 700, 3, a, 6 * MS);
	give_simple(&u, 700, 3, a, 7 * MS);
	(void)served_of(&u);
	for (i = 0; i < 8; i++)
		ck_assert_uint_eq(rides_of(&u, 8)[i].worker, workers[i]);
	ck_assert_uint_eq(simulate_totals(u.s)->finished, 8);
	end(&u);
}
END_TEST

/* Nothing goes to a worker that is not up; with every policy. */
START_TEST(only_to_those_up)
{
	struct simulate_options o = options_of(_i, 3, 0);
	uint64_t ids[1], seen = 0;
	struct setup u;
	int64_t i;

	o.check = true;
	add(&o, SIMULATE_JOIN, 2, 1000 * MS);
	add(&o, SIMULATE_DRAIN, 0, 2000 * MS);
	add(&o, SIMULATE_KILL, 1, 3000 * MS);
	add(&o, SIMULATE_JOIN, 0, 4000 * MS);
	begin(&u, &o, 512);
	for (i = 0; i < 200; i++) {
		ids[0] = (uint64_t)i;
		give_simple(&u, 500, 20, ids, 25 * i * MS);
	}
	(void)served_of(&u);
	for (i = 0; i < 200; i++) {
		const struct simulate_ride *r = &rides_of(&u, 200)[i];
		int64_t at = r->arrival / MS;

		seen |= UINT64_C(1) << (at / 1000 * 4 + r->worker);
		ck_assert(r->worker != 2 || at >= 1000);
		ck_assert(r->worker != 0 || at < 2000 || at >= 4000);
		ck_assert(r->worker != 1 || at < 3000);
	}
	/* each is used when it is there */
	ck_assert_uint_eq(seen & 0x3, 0x3);
	ck_assert_uint_eq(seen >> 4 & 0x7, 0x7);
	ck_assert_uint_eq(seen >> 8 & 0x6, 0x6);
	ck_assert_uint_eq(seen >> 12, 0x54);
	end(&u);
}
END_TEST

/* A worker keeps its whole cache, or nothing. */
START_TEST(back_with_its_cache)
{
	struct simulate_options o = options_of(0, 2, 0);
	struct setup u;

	o.check = true;
	add(&o, _i == 0 ? SIMULATE_DRAIN : SIMULATE_KILL, 0, 1000 * MS);
	add(&o, SIMULATE_JOIN, 0, 2000 * MS);
	begin(&u, &o, 512);
	give_simple(&u, 700, 3, a, 0);
	give_simple(&u, 700, 3, b, 0);
	give_simple(&u, 700, 3, a, 3000 * MS);
	(void)served_of(&u);
	ck_assert_uint_eq(rides_of(&u, 3)[2].worker, 0);
	ck_assert_uint_eq(simulate_totals(u.s)->hit_tokens,
	    _i == 0 ? 512 : 0);
	end(&u);
}
END_TEST

/*
 * It begins anew on the other worker, before its first token or after it; times
 * count from its arrival.
 */
START_TEST(killed)
{
	int64_t at = _i < KINDS ? 20 * MS : 55 * MS;
	struct simulate_options o = options_of(_i % KINDS, 2, 0);
	const struct simulate_ride *r;
	struct setup u;
	uint32_t worker, other;

	/* where does it go? */
	begin(&u, &o, 512);
	give_simple(&u, 700, 3, a, 0);
	worker = rides_of(&u, 1)->worker;
	end(&u);
	other = 1 - worker;
	o.check = true;
	add(&o, SIMULATE_KILL, worker, at);
	begin(&u, &o, 512);
	give_simple(&u, 700, 3, a, 0);
	(void)served_of(&u);
	r = rides_of(&u, 1);
	ck_assert_uint_eq(r->worker, other);
	ck_assert_int_eq(r->arrival, 0);
	ck_assert_int_eq(r->first, at + 50110000);
	ck_assert_int_eq(r->end, at + 80330000);
	ck_assert_uint_eq(simulate_totals(u.s)->retried, 1);
	ck_assert_uint_eq(simulate_totals(u.s)->finished, 1);
	ck_assert_uint_eq(simulate_totals(u.s)->tokens, 700);
	ck_assert_uint_eq(simulate_totals(u.s)->over_tokens, 0);
	end(&u);
}
END_TEST

/* 1100 tokens do not fit into the worker that is left. */
START_TEST(lost)
{
	struct simulate_options o = options_of(_i, 2, 0);
	struct simulate_served served;
	struct setup u;

	o.check = true;
	o.n_capacities = 2;
	o.capacities[0] = 2048;
	o.capacities[1] = 1024;
	add(&o, SIMULATE_JOIN, 1, 10 * MS);
	add(&o, SIMULATE_KILL, 0, 20 * MS);
	o.slo_first_ns = o.slo_token_ns = 1000 * MS;
	begin(&u, &o, 512);
	give_simple(&u, 1100, 3, c, 0);
	give_simple(&u, 700, 3, a, 0);
	served = served_of(&u);
	ck_assert_uint_eq(simulate_totals(u.s)->retried, 2);
	ck_assert_uint_eq(simulate_totals(u.s)->lost, 1);
	ck_assert_uint_eq(simulate_totals(u.s)->finished, 1);
	ck_assert_double_eq_tol(served.goodput, 0.5, 1e-9);
	end(&u);
}
END_TEST

static void
busy(struct simulate_options *o)
{
	o->preempt = o->own_reads = true;
	o->attention = 53000;
	o->batch = 300;
	o->n_sequences = 2;
	o->sequences[0] = 3;
	o->sequences[1] = 8;
	add(o, SIMULATE_DRAIN, 0, 3000 * MS);
	add(o, SIMULATE_SLOW, 2, 2000 * MS);
	add(o, SIMULATE_KILL, 1, 5000 * MS);
	add(o, SIMULATE_JOIN, 0, 6000 * MS);
	add(o, SIMULATE_JOIN, 1, 9000 * MS);
	add(o, SIMULATE_SLOW_END, 2, 11000 * MS);
	add(o, SIMULATE_KILL, 2, 12000 * MS);
}

/* Recounts everything after every step, in fleets of all kinds. */
START_TEST(conserved)
{
	struct simulate_options o = options_of(_i % KINDS, 3, 30000);
	const struct simulate_totals *t;
	struct setup u;

	o.check = true;
	fleets[_i / KINDS](&o);
	busy(&o);
	begin(&u, &o, 512);
	simulate_sample(&u, test_amount(25), 4);
	t = simulate_totals(u.s);
	ck_assert_int_eq(simulate_check(u.s), KVR_OK);
	ck_assert_uint_eq(t->finished + t->refused + t->empty + t->lost,
	    t->requests);
	ck_assert_uint_eq(t->predicted_tokens - t->over_tokens,
	    t->hit_tokens - t->under_tokens);
	end(&u);
}
END_TEST

static struct simulate_totals
crowd(const struct simulate_options *o)
{
	struct simulate_totals t;
	struct setup u;

	begin(&u, o, 512);
	simulate_sample(&u, 300, 3);
	t = *simulate_totals(u.s);
	end(&u);
	return t;
}

/* The same seed, the same result; and requests are routed again. */
START_TEST(same_again)
{
	struct simulate_options o = options_of(_i, 3, 30000);
	struct simulate_totals x, y;

	busy(&o);
	x = crowd(&o);
	y = crowd(&o);
	ck_assert_mem_eq(&x, &y, sizeof(x));
	ck_assert_uint_gt(x.retried, 0);
}
END_TEST

/* The twin dies and is slow when the engine is, a nanosecond later. */
START_TEST(just_past)
{
	uint64_t hits[2];
	int k;

	for (k = 0; k < 2; k++) {
		struct simulate_options o = options_of(_i, 3, 0);
		const struct simulate_totals *t;
		struct setup u;
		int64_t i;

		o.event_delay_ns = k;
		busy(&o);
		begin(&u, &o, 512);
		for (i = 0; i < 300; i++)
			give_simple(&u, i % 2 == 0 ? 1024 : 700, 9,
			    i % 5 < 3 ? a : b, i * 51000007);
		ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
		t = simulate_totals(u.s);
		hits[k] = t->hit_tokens;
		ck_assert_uint_gt(hits[k], 0);
		end(&u);
	}
	ck_assert_uint_eq(hits[0], hits[1]);
}
END_TEST

/* Each allocation of a run with a death fails once: an error, and no leak. */
START_TEST(memory)
{
	static const int some[] = { 0, 8, 11, 14 };
	struct simulate_options o = options_of(some[_i], 2, 60000);
	struct trace_request q = { .tokens = 700, .output_length = 9,
	    .n_ids = 2, .ids = a };
	uint32_t tokens[700] = { 0 };
	struct simulate_served served;
	struct simulation *s;
	struct setup u;
	unsigned long n;
	int e = KVR_ENOMEM;

	begin(&u, &o, 512);
	ck_assert_int_eq(kvr_prompt_set_tokens(u.prompt, NULL, tokens, 700),
	    KVR_OK);
	o.event_delay_ns = 1000;
	add(&o, SIMULATE_KILL, 0, 20 * MS);
	add(&o, SIMULATE_JOIN, 0, 30 * MS);
	add(&o, SIMULATE_KILL, 1, 40 * MS);
	for (n = 1; e != KVR_OK && n < 500; n++) {
		s = NULL;
		alloc_fail_at(n);
		e = simulate_new(&o, &u.region, &s);
		if (e == KVR_OK)
			e = simulate_request(s, u.prompt, &q, 0);
		if (e == KVR_OK)
			e = simulate_request(s, u.prompt, &q, 1);
		if (e == KVR_OK)
			e = simulate_drain(s);
		if (e == KVR_OK)
			e = simulate_served(s, &served);
		alloc_reset();
		if (e != KVR_OK)
			ck_assert_int_eq(e, KVR_ENOMEM);
		simulate_free(s);
	}
	ck_assert_int_eq(e, KVR_OK);
	ck_assert_uint_gt(n, 10);
	end(&u);
}
END_TEST

/* ------------------------------------------------------------ figures --- */

/* 50.11 ms to the first token, and 15.11 ms for each later one. */
START_TEST(goodput)
{
	static const struct {
		int64_t first;
		int64_t token;
		double good;
	} slo[] = {
		{ 50110000, 15110000, 1 }, { 50109999, 15110000, 0 },
		{ 50110000, 15109999, 0 }
	};
	struct simulate_options o = options_of(0, 1, 0);
	struct simulate_served served;
	struct setup u;
	size_t i;

	for (i = 0; i < 3; i++) {
		o.slo_first_ns = slo[i].first;
		o.slo_token_ns = slo[i].token;
		begin(&u, &o, 512);
		give_simple(&u, 700, 3, a, 7);
		served = served_of(&u);
		ck_assert_double_eq_tol(served.goodput, slo[i].good, 1e-9);
		ck_assert_double_eq_tol(served.mean, 0.08033, 1e-9);
		ck_assert_double_eq_tol(served.p90, 0.08033, 1e-9);
		ck_assert_double_eq_tol(served.worst_share, 1, 1e-6);
		end(&u);
	}
}
END_TEST

/* Ten requests a second apart, of 1 to 10 output tokens: 15.11 ms more each. */
START_TEST(percentiles)
{
	struct simulate_options o = options_of(0, 10, 0);
	struct simulate_served served;
	struct setup u;
	uint64_t i;

	begin(&u, &o, 512);
	for (i = 0; i < 10; i++)
		give_simple(&u, 700, i + 1, a, (int64_t)i * 1000 * MS);
	served = served_of(&u);
	ck_assert_double_eq_tol(served.mean, 0.05011 + 0.01511 * 4.5, 1e-9);
	ck_assert_double_eq_tol(served.p90, 0.05011 + 0.01511 * 8, 1e-9);
	ck_assert_double_eq_tol(served.p99, 0.05011 + 0.01511 * 9, 1e-9);
	end(&u);
}
END_TEST

/*
 * 20.105 and 30.105 ms in flight, in turn. Both workers are up until the end,
 * or the second one from 10 ms on, where its request arrives.
 */
START_TEST(worst_share)
{
	struct simulate_options o = options_of(0, 2, 0);
	struct simulate_served served;
	struct setup u;

	if (_i == 1)
		add(&o, SIMULATE_JOIN, 1, 10 * MS);
	begin(&u, &o, 512);
	give_simple(&u, 100, 1, a, 0);
	give_simple(&u, 300, 1, b, _i * 10 * MS);
	served = served_of(&u);
	ck_assert_double_eq_tol(served.worst_share, _i == 0 ?
	    2 * 30.105 / (20.105 + 30.105) :
	    (40.105 + 30.105) / (20.105 + 30.105), 1e-6);
	end(&u);
}
END_TEST

/* The text that simulate_kv or simulate_json writes, to be freed. */
static char *
printed(const struct simulate_row *rows, size_t n,
    int (*print)(FILE *, const struct simulate_row *, size_t))
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(print(f, rows, n), KVR_OK);
	fclose(f);
	return text;
}

/* The first engine takes twice as long as the second. */
START_TEST(regrets)
{
	struct simulate_options o = options_of(0, 1, 0);
	struct simulate_row rows[2];
	struct setup u[2];
	char *kv, *json, *second;
	int i;

	o.n_speeds = 1;
	for (i = 0; i < 2; i++) {
		o.speeds[0] = i + 1;
		o.slo_first_ns = o.slo_token_ns = _i * 40 * MS;
		begin(&u[i], &o, 512);
		give_simple(&u[i], 700, 3, a, 0);
		ck_assert_int_eq(simulate_drain(u[i].s), KVR_OK);
		rows[i] = (struct simulate_row){ i == 0 ? "x" : "y", u[i].s,
		    NULL };
	}
	kv = printed(rows, 2, simulate_kv);
	second = strstr(kv, "\n\npolicy=y\n");
	ck_assert_ptr_nonnull(second);
	ck_assert_ptr_nonnull(strstr(second, "ttft_regret=1.0000\n"
	    "request_regret=1.0000\n"));
	*second = '\0';
	ck_assert_ptr_nonnull(strstr(kv, "ttft_regret=2.0000\n"
	    "request_regret=2.0000\n"));
	ck_assert_int_eq(strstr(kv, "goodput=0.00000") != NULL, _i == 1);
	json = printed(rows, 2, simulate_json);
	ck_assert_int_eq(strncmp(json, "{\"policy\":\"x\",\"workers\":1,", 25),
	    0);
	second = strstr(json, "}\n{\"policy\":\"y\",");
	ck_assert_ptr_nonnull(second);
	ck_assert_int_eq(strstr(second, "\"goodput\":1.00000,") != NULL,
	    _i == 1);
	ck_assert_ptr_nonnull(strstr(second, ",\"request_regret\":1.0000,"));
	ck_assert_str_eq(json + strlen(json) - 2, "}\n");
	free(kv);
	free(json);
	end(&u[0]);
	end(&u[1]);
}
END_TEST

static int
table(FILE *f, const struct simulate_row *rows, size_t n)
{
	const struct simulate_about about = { "trace", 1, 3, 1000000000 };

	return simulate_table(f, &about, rows, n);
}

static void
ck_order(const char *text, const char *first, const char *second)
{
	const char *at = strstr(text, first);

	ck_assert_msg(at != NULL, "no %s in\n%s", first, text);
	ck_assert_msg(strstr(at, second) != NULL, "no %s after %s in\n%s",
	    second, first, text);
}

/* Whichever is the best, and if none is. */
START_TEST(conclusions)
{
	static const struct { double speed[2]; } runs[] = {
		{ { 1, 2 } }, { { 2, 1 } }, { { 1, 1 } }
	};
	struct simulate_options o = options_of(0, 1, 0);
	struct simulate_row rows[2];
	struct setup u[2];
	char *text, *at;
	int i;

	o.n_speeds = 1;
	for (i = 0; i < 2; i++) {
		o.speeds[0] = runs[_i].speed[i];
		begin(&u[i], &o, 512);
		give_simple(&u[i], 700, 3, a, 0);
		ck_assert_int_eq(simulate_drain(u[i].s), KVR_OK);
		rows[i] = (struct simulate_row){ i == 0 ? "slow" : "fast",
		    u[i].s, NULL };
	}
	if (_i == 1) {
		rows[0].name = "fast";
		rows[1].name = "slow";
	}
	text = printed(rows, 2, table);
	for (at = text; (at = strchr(at, '\n')) != NULL; )
		*at = ' ';
	if (_i < 2) {
		ck_order(text, "came soonest with fast,", "with slow,");
		ck_order(text, "with fast, and", "100 %");
	} else {
		ck_order(text, "No policy had", "the same time with all.");
	}
	/* nothing is predicted, and hit; there is no goal */
	ck_assert_ptr_null(strstr(text, "blocks wrong"));
	ck_assert_ptr_null(strstr(text, "goodput"));
	ck_order(text, " hits: ", " busiest: ");
	free(text);
	text = printed(rows, 1, table);
	ck_assert_ptr_null(strstr(text, "soonest"));
	free(text);
	end(&u[0]);
	end(&u[1]);
}
END_TEST

/* ------------------------------------------------------------ refused --- */

START_TEST(contradictions)
{
	static const struct {
		struct simulate_change changes[4];
		const char *problem;
		uint32_t which;
	} wrong[] = {
		{ { { 5, 1, 2, SIMULATE_KILL } }, "no such worker", 0 },
		{ { { 5, 1, 0, SIMULATE_KILL }, { 6, 1, 0, SIMULATE_DRAIN } },
		    "not there", 1 },
		{ { { 5, 1, 0, SIMULATE_DRAIN }, { 6, 1, 0, SIMULATE_DRAIN } },
		    "drains already", 1 },
		{ { { 5, 1, 0, SIMULATE_JOIN }, { 6, 1, 0, SIMULATE_JOIN } },
		    "up already", 1 },
		{ { { 5, 1, 0, SIMULATE_KILL }, { 6, 1, 1, SIMULATE_DRAIN } },
		    "no worker is left", 1 },
		{ { { 5, 1, 0, SIMULATE_JOIN }, { 6, 1, 1, SIMULATE_JOIN } },
		    "from the beginning", 0 },
		{ { { 5, 2, 0, SIMULATE_SLOW }, { 6, 2, 0, SIMULATE_SLOW },
		    { 7, 1, 0, SIMULATE_SLOW_END } }, "slow already", 1 },
		{ { { 5, 0, 0, SIMULATE_SLOW },
		    { 7, 1, 0, SIMULATE_SLOW_END } }, "out of range", 0 }
	};
	struct simulate_options o = options_of(3, 2, 0);
	struct kvr_options region;
	struct simulation *s = NULL;
	uint32_t which = 99, i;
	const char *problem;

	for (i = 0; i < 4 && wrong[_i].changes[i].at > 0; i++)
		ck_assert(simulate_add_change(&o, &wrong[_i].changes[i]));
	problem = simulate_changes_problem(&o, &which);
	ck_assert_ptr_nonnull(problem);
	ck_assert_msg(strstr(problem, wrong[_i].problem) != NULL, "%s",
	    problem);
	ck_assert_uint_eq(which, wrong[_i].which);
	region_of(&region, 2, 512);
	ck_assert_int_eq(simulate_new(&o, &region, &s), KVR_EINVAL);
}
END_TEST

/* A spell may begin when another ends, in whatever order they are given. */
START_TEST(in_order_of_time)
{
	struct simulate_options o = options_of(0, 2, 0);
	uint32_t which, i;

	add(&o, SIMULATE_SLOW, 1, 20);
	add(&o, SIMULATE_SLOW_END, 1, 30);
	add(&o, SIMULATE_SLOW, 1, 10);
	add(&o, SIMULATE_SLOW_END, 1, 20);
	add(&o, SIMULATE_KILL, 1, 20);
	ck_assert_ptr_null(simulate_changes_problem(&o, &which));
	for (i = 1; i < o.n_changes; i++)
		ck_assert_int_le(o.changes[i - 1].at, o.changes[i].at);
	for (; i < SIMULATE_CHANGES_MAX; i++)
		add(&o, SIMULATE_KILL, 1, 20);
	ck_assert(!simulate_add_change(&o, &o.changes[0]));
	ck_assert_ptr_nonnull(simulate_changes_problem(&o, &which));
}
END_TEST

Suite *suite_simulate_load(void);

Suite *
suite_simulate_load(void)
{
	Suite *s = suite_create("simulate_load");
	TCase *t = tcase_create("simulate_load");

	tcase_add_loop_test(t, slots, 0, KINDS);
	tcase_add_loop_test(t, preempted, 0, KINDS);
	tcase_add_loop_test(t, slow, 0, KINDS);
	tcase_add_test(t, turns_of_those_up);
	tcase_add_loop_test(t, only_to_those_up, 0, KINDS);
	tcase_add_loop_test(t, back_with_its_cache, 0, 2);
	tcase_add_loop_test(t, killed, 0, 2 * KINDS);
	tcase_add_loop_test(t, lost, 0, KINDS);
	tcase_add_loop_test(t, conserved, 0, FLEETS * KINDS);
	tcase_add_loop_test(t, same_again, 0, KINDS);
	tcase_add_loop_test(t, just_past, ORACLES, KINDS);
	tcase_add_loop_test(t, memory, 0, 4);
	tcase_add_test(t, goodput);
	tcase_add_test(t, percentiles);
	tcase_add_loop_test(t, worst_share, 0, 2);
	tcase_add_loop_test(t, regrets, 0, 2);
	tcase_add_loop_test(t, conclusions, 0, 3);
	tcase_add_loop_test(t, contradictions, 0, 8);
	tcase_add_test(t, in_order_of_time);
	suite_add_tcase(s, t);
	return s;
}
