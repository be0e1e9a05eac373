/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rate.c - prefill rates, backlogs and arrivals.
 *
 * The formulas of rate.c, by hand on short sequences of calls, then on long
 * random ones, against an independent second implementation: a few numbers for
 * each worker, and a list of requests.
 */
#include "rate.h"

#include "inner.h"

#include <math.h>

#define SECOND 1000000000.0
enum { REQUESTS = 40 };

/* No prompts share a prefix: every token given is to be prefilled. */
static uint32_t kinds;

static void
set_policy(double prior, double dead_band)
{
	struct kvr_policy y;

	ck_assert_int_eq(kvr_policy_init(&y, sizeof(y)), KVR_OK);
	y.balanced_prior = prior;
	y.balanced_dead_band = dead_band;
	ck_assert_int_eq(kvr_policy_set(k, &y), KVR_OK);
}

/* Every measured rate counts, however near it is to the expected one. */
static void
set_prior(double prior)
{
	set_policy(prior, 0);
}

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.block_size = 64;
	o.ttl_ns = 0;
	kinds = 0;
	region_of(&o);
	set_policy(10, 0);
}

static int64_t
at(double seconds)
{
	return (int64_t)(seconds * SECOND + 0.5);
}

static void
set_worker(uint32_t worker, double rate, double weight)
{
	struct kvr_worker f;

	ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
	f.prefill_rate = rate;
	f.weight = weight;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

/* A worker that prefills 1000 tokens a second, whatever is observed. */
static void
steady(uint32_t worker)
{
	set_prior(1e12);
	set_worker(worker, 1000, 1);
}

static uint64_t
ask(uint32_t worker, uint32_t tokens, double seconds)
{
	uint64_t lease;

	say_long(tokens, 0, kinds++);
	lease = reserved(worker, at(seconds));
	commit(lease, at(seconds));
	return lease;
}

static void
first(uint64_t lease, double seconds)
{
	ck_assert_int_eq(
	    kvr_lease_first_token(k, lease, at(seconds), 0), KVR_OK);
}

static bool
near(double a, double b)
{
	return fabs(a - b) <= 1e-6 + 1e-9 * fabs(b);
}

#define ck_near(a, b) do { \
	double a_ = (a), b_ = (b); \
	if (!near(a_, b_)) \
		ck_abort_msg("%s is %.12g, must be %.12g", #a, a_, b_); \
} while (0)

static double
rate_now(uint32_t worker)
{
	return worker_stats(worker).prefill_rate;
}

static double
backlog(uint32_t worker, double seconds)
{
	return rate_backlog(k, worker, at(seconds));
}

/* --------------------------------------------------------------- rates --- */

START_TEST(before_anything_is_seen)
{
	ck_near(rate_now(0), 17000);
	set_worker(1, 0, 2.5);
	ck_near(rate_now(1), 42500);
	set_worker(2, 5000, 2.5);
	ck_near(rate_now(2), 5000);
	set_prior(0);
	set_worker(3, 0, 0.5);
	ck_near(rate_now(3), 8500);
}
END_TEST

START_TEST(one_request)
{
	double fleet = (34000 * 0.999 + 1000) / (2 * 0.999 + 0.25);

	first(ask(0, 1000, 3), 3.25);
	ck_near(rate_fleet(k), fleet);
	ck_near(rate_now(0), (1000 + 10 * fleet) / (0.25 + 10));
}
END_TEST

/* A configured rate is a prior; observations fade, the prior does not. */
START_TEST(configured)
{
	uint64_t lease;
	uint32_t i;

	set_worker(0, 500, 1);
	first(ask(0, 1000, 0), 0.5);
	ck_near(rate_now(0), (1000 + 10 * 500) / (0.5 + 10));
	first(ask(0, 600, 1), 1.5);
	ck_near(rate_now(0), (1000 * 0.995 + 600 + 5000) /
	    (0.5 * 0.995 + 0.5 + 10));
	for (i = 2; i < 2000; i++) {
		lease = ask(0, 1000, i);
		first(lease, i + 0.5);
		finish(lease, at(i + 0.5));
	}
	/* 200 pieces are what does not fade: 100 s against 10 */
	ck_near(round(rate_now(0)), round((200000 + 5000) / 110.0));
}
END_TEST

/* Without a prior the worker is believed from its first request on. */
START_TEST(no_prior)
{
	set_prior(0);
	first(ask(0, 1000, 0), 0.5);
	ck_near(rate_now(0), 2000);
	first(ask(0, 1000, 1), 1.1);
	ck_near(rate_now(0), (1000 * 0.995 + 1000) / (0.5 * 0.995 + 0.1));
}
END_TEST

/* The fleet's rate is that of a worker of weight 1. */
START_TEST(weights)
{
	set_worker(0, 0, 4);
	first(ask(0, 4000, 0), 1);
	ck_near(rate_fleet(k), (34000 * 0.999 + 4000) / (2 * 0.999 + 4));
	ck_near(rate_now(0), (4000 + 10 * 4 * rate_fleet(k)) / (1 + 10));
}
END_TEST

/* One after the other: the second starts at the first one's first token. */
START_TEST(one_after_the_other)
{
	uint64_t a, b;

	set_prior(0);
	a = ask(0, 1000, 0);
	b = ask(0, 300, 0.1);
	first(a, 1);
	first(b, 1.2);
	ck_near(rate_now(0), (1000 * 0.995 + 300) / (1 * 0.995 + 0.2));
}
END_TEST

/* And the other way round, if that is the order in which they arrive. */
START_TEST(out_of_order)
{
	uint64_t a, b, c;

	set_prior(0);
	a = ask(0, 1000, 0);
	b = ask(0, 300, 0.1);
	first(b, 0.4);
	ck_near(rate_now(0), 300 / 0.3);
	c = ask(1, 500, 0.9);
	first(a, 1);
	ck_near(rate_now(0), (300 * 0.995 + 1000) / (0.3 * 0.995 + 0.6));
	/* other workers' first tokens do not count */
	first(ask(0, 300, 1), 1.5);
	first(c, 1.6);
	ck_near(rate_now(1), 500 / 0.7);
}
END_TEST

/* Too few tokens, or no time: no evidence, but still a first token. */
START_TEST(no_evidence)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	uint64_t a, b;

	set_prior(0);
	a = ask(0, 1000, 0);
	b = ask(0, 255, 0);
	first(b, 0.9);
	ck_near(rate_now(0), 17000);
	first(a, 0.901);
	ck_near(rate_now(0), 17000);
	first(ask(0, 256, 1), 1.002);
	ck_near(rate_now(0), 256 / 0.002);
	/* ended without a first token, or not counted at all */
	finish(ask(1, 1000, 2), at(3));
	give_up(ask(1, 1000, 3), at(4));
	kvr_request_init(&r, sizeof(r));
	r.flags = KVR_IGNORE_PREFILL;
	say_long(1000, 0, kinds++);
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[1], at(5), &d), KVR_OK);
	commit(d.lease, at(5));
	ck_near(backlog(1, 5), 0);
	first(d.lease, 6);
	ck_near(rate_now(1), rate_fleet(k));
	ck_near(rate_fleet(k), (34000 * 0.999 + 256) / (2 * 0.999 + 0.002));
}
END_TEST

/* A first token counts once; without a commit it is refused. */
START_TEST(first_tokens_once)
{
	uint64_t lease;

	set_prior(0);
	say_long(1000, 0, kinds++);
	lease = reserved(0, at(1));
	ck_assert_int_eq(kvr_lease_first_token(k, lease, at(2), 0), KVR_ESTATE);
	commit(lease, at(3));
	first(lease, 3);
	ck_near(rate_now(0), 500);
	first(lease, 9);
	ck_near(rate_now(0), 500);
}
END_TEST

/* An engine that restarted may run on another machine. */
START_TEST(a_reset_forgets_the_rate)
{
	set_prior(0);
	first(ask(0, 1000, 0), 0.5);
	ck_near(worker_stats(0).prefill_rate, 2000);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_near(worker_stats(0).prefill_rate, rate_fleet(k));
	ck_near(worker_stats(0).backlog, 0);
	ck_assert(rate_fleet(k) < 17000);
}
END_TEST

/* Of its own rate nothing is left; of the fleet's, and of its queue, all is. */
START_TEST(forget_is_at_once)
{
	double fleet;
	uint64_t lease;

	set_worker(0, 5000, 1);
	set_worker(1, 5000, 1);
	first(ask(0, 1000, 0), 4);
	first(ask(1, 1000, 4), 6);
	fleet = rate_fleet(k);
	ck_near(rate_now(0), 51000 / 14.0);
	lease = ask(0, 1000, 6);
	ck_assert_int_eq(kvr_worker_forget(k, id[0]), KVR_OK);
	ck_near(rate_now(0), 5000);
	ck_near(rate_now(1), 51000 / 12.0);
	ck_near(rate_fleet(k), fleet);
	ck_assert_uint_eq(worker_stats(0).prefill_tokens, 1000);
	ck_assert_uint_eq(worker_stats(0).requests, 2);
	ck_assert_uint_eq(worker_stats(0).lease_opens, 2);
	ck_near(backlog(0, 6), 1000 / (51000 / 14.0));
	/* it learns again as a new one does */
	first(lease, 7);
	ck_near(rate_now(0), 51000 / 11.0);
	ck_assert_int_eq(kvr_worker_forget(k, id[0] + (1 << 16)), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_forget(k, 0), KVR_EWORKER);
	ck_assert_int_eq(kvr_worker_forget(NULL, id[0]), KVR_EINVAL);
}
END_TEST

/* Silence: all counts for half a minute, and nothing after a minute more. */
START_TEST(what_was_shown_fades)
{
	const double fresh[][2] = { { 30, 1 }, { 45, 0.75 }, { 60, 0.5 },
		{ 89, 1.0 / 60 }, { 90, 0 }, { 1e6, 0 } };
	uint32_t i;

	set_worker(0, 1000, 1);
	first(ask(0, 1000, 0), 10);
	for (i = 0; i < sizeof(fresh) / sizeof(fresh[0]); i++) {
		/* any writing call tells the time, in turn to each worker */
		while (k->region->rate_turn != 0)
			give_up(ask(1, 1, 10 + fresh[i][0]),
			    at(10 + fresh[i][0]));
		ck_near(rate_now(0), (1000 * fresh[i][1] + 10 * 1000) /
		    (10 * fresh[i][1] + 10));
		give_up(ask(1, 1, 10 + fresh[i][0]), at(10 + fresh[i][0]));
	}
	ck_near(rate_now(0), 1000);
}
END_TEST

/* What has faded does not come back with the next first token. */
START_TEST(faded_is_gone)
{
	uint64_t lease;

	set_worker(0, 1000, 1);
	first(ask(0, 1000, 0), 10);
	lease = ask(0, 1000, 69);
	(void)expire(at(70), 0);
	first(lease, 70);
	/* half of the first, and the second */
	ck_near(rate_now(0), (500 * 0.995 + 1000 + 10000) /
	    (5 * 0.995 + 1 + 10));
	first(ask(0, 1000, 1000), 1001);
	ck_near(rate_now(0), (1000 + 10000) / (1 + 10.0));
	/* a first token without evidence is a sign of life as well */
	first(ask(0, 1000, 1000), 1003);
	first(ask(0, 10, 1029), 1029);
	first(ask(0, 10, 1055), 1055);
	ck_near(rate_now(0), (1000 * 0.995 + 1000 + 10000) /
	    (1 * 0.995 + 2 + 10));
}
END_TEST

/* Near the expected rate it is the expected rate; it is learnt all the same. */
START_TEST(dead_band)
{
	set_policy(10, 0.125);
	set_worker(0, 1000, 1);
	/* 1.1 times as fast as configured, once it counts */
	first(ask(0, 4400, 0), 2);
	ck_near(rate_now(0), (4400 + 10000) / 12.0);
	set_worker(1, 1000, 1);
	first(ask(1, 1200, 10), 11);
	ck_near(rate_now(1), 1000);
	first(ask(1, 2000, 11), 11.001001);
	ck_near(rate_now(1), (1200 * 0.995 + 2000 + 10000) /
	    (0.995 + 0.001001 + 10));
	set_worker(2, 1000, 1);
	first(ask(2, 1000, 20), 22.4);
	ck_near(rate_now(2), 1000); /* 11000 in 12.4 s: 887 */
	first(ask(2, 1000, 22.4), 23.8);
	ck_near(rate_now(2), (1000 * 0.995 + 11000) /
	    (2.4 * 0.995 + 1.4 + 10));
	/* measured, that is what it has been from its first request on */
	set_policy(10, 0);
	set_worker(1, 1000, 1);
	ck_near(rate_now(1), (1200 * 0.995 + 2000 + 10000) /
	    (0.995 + 0.001001 + 10));
}
END_TEST

/* Workers without requests learn of the fleet's rate too, in turn. */
START_TEST(everybody_in_turn)
{
	uint32_t i;

	for (i = 0; i < 300; i++)
		first(ask(0, 1000, i), i + 0.5);
	for (i = 1; i < WORKERS; i++)
		ck_assert(fabs(rate_now(i) / rate_fleet(k) - 1) < 0.01);
}
END_TEST

/* ------------------------------------------------------------- backlog --- */

START_TEST(booked_one_behind_the_other)
{
	steady(0);
	(void)ask(0, 1000, 0);
	ck_near(backlog(0, 0), 1);
	ck_near(backlog(0, 0.25), 0.75);
	(void)ask(0, 500, 0.25);
	ck_near(backlog(0, 0.25), 1.25);
	ck_near(backlog(0, 1.5), 0);
	ck_near(backlog(0, 20), 0);
	/* no first token was reported, but by now they would be done */
	(void)ask(0, 500, 20);
	ck_near(backlog(0, 20), 0.5);
	ck_near(backlog(1, 20), 0);
	ck_near(worker_stats(0).backlog, 0.5);
}
END_TEST

START_TEST(first_tokens_put_it_right)
{
	uint64_t a, b, c;

	steady(0);
	a = ask(0, 1000, 0);
	b = ask(0, 500, 0);
	c = ask(0, 200, 0);
	ck_near(backlog(0, 0), 1.7);
	/* early: what remains takes no longer than its tokens */
	first(a, 0.1);
	ck_near(backlog(0, 0.1), 0.7);
	/* late: it is not made longer */
	first(b, 0.75);
	ck_near(backlog(0, 0.75), 0.05);
	first(c, 5);
	ck_near(backlog(0, 5), 0);
}
END_TEST

/* The end of the last one is the end, however much was estimated to remain. */
START_TEST(nothing_takes_nothing)
{
	uint64_t a;

	steady(0);
	a = ask(0, 4000, 0);
	ck_near(backlog(0, 0), 4);
	first(a, 0.5);
	ck_near(backlog(0, 0.5), 0);
	a = ask(0, 4000, 1);
	finish(a, at(1.5));
	ck_near(backlog(0, 1.5), 0);
}
END_TEST

START_TEST(given_up)
{
	uint64_t a, b, from = 0;

	steady(0);
	a = ask(0, 4000, 0);
	b = ask(0, 500, 0);
	ck_near(backlog(0, 0), 4.5);
	give_up(a, at(0.25));
	ck_near(backlog(0, 0.25), 0.5);
	give_up(b, at(0.25));
	ck_near(backlog(0, 0.25), 0);
	/* the same if they are never ended */
	(void)ask(0, 4000, 1);
	ck_assert_int_eq(kvr_owner_reap(k, 0, at(1), &from, NULL), KVR_OK);
	ck_near(backlog(0, 1), 0);
	ck_assert_uint_eq(slot_at(k, 0)->prefilling, 0);
}
END_TEST

START_TEST(from_outside)
{
	struct kvr_load load = { .size = sizeof(load) };
	uint64_t a;

	steady(0);
	load.prefill_tokens = 3000;
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	ck_near(backlog(0, 0), 3);
	a = ask(0, 1000, 0);
	ck_near(backlog(0, 0), 4);
	ck_near(backlog(0, 0.5), 3.5);
	first(a, 0.5);
	/* load set from outside is not removed */
	ck_near(backlog(0, 0.5), 3);
	load.prefill_tokens = 0;
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	ck_near(backlog(0, 0.5), 0);
}
END_TEST

/* What is cached is not prefilled. */
START_TEST(overlap_is_not_booked)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;

	steady(0);
	kvr_request_init(&r, sizeof(r));
	r.overlap_blocks = 10;
	say_long(1000, 0, kinds++);
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], 0, &d), KVR_OK);
	ck_near(backlog(0, 0), 0.36);
	ck_near(rate_arrivals(k, 0) * 60, 360);
}
END_TEST

/* A slow worker and a long queue: a finite time, and no overflow. */
START_TEST(never_is_far_enough)
{
	uint32_t i;

	set_prior(1e12);
	set_worker(0, 1e-9, 1);
	for (i = 0; i < 10; i++)
		(void)ask(0, 20000, i);
	ck_near(backlog(0, 9), 1e6);
	set_worker(1, 1e15, 1);
	(void)ask(1, 20000, 9);
	ck_near(backlog(1, 9), 20000e-9);
}
END_TEST

/* ---------------------------------------------------------------- late --- */

/* `share` of 100 requests have a first token before their end. */
static void
speak(uint32_t share, double seconds)
{
	uint64_t lease;
	uint32_t i;

	for (i = 0; i < 100; i++) {
		lease = ask(3, 1, seconds);
		if (i < share)
			first(lease, seconds);
		finish(lease, at(seconds));
	}
}

/* First tokens tell what waits only where nearly all requests have one. */
START_TEST(most_have_a_first_token)
{
	uint64_t lease;
	uint32_t i;

	ck_assert(!rate_spoken(k));
	/* given up is no end that tells anything */
	for (i = 0; i < 200; i++) {
		lease = ask(0, 1, 0);
		first(lease, 0);
		give_up(lease, 0);
	}
	ck_assert(!rate_spoken(k));
	for (i = 0; i < 44; i++) {
		lease = ask(0, 1, 0);
		first(lease, 0);
		finish(lease, 0);
	}
	/* 1 - 0.95^44 is 0.895 */
	ck_assert(!rate_spoken(k));
	lease = ask(0, 1, 0);
	first(lease, 0);
	finish(lease, 0);
	ck_assert(rate_spoken(k));
	finish(ask(0, 1, 0), 0);
	ck_assert(!rate_spoken(k));
}
END_TEST

/* What should be prefilled and is not will take as long again. */
START_TEST(what_is_late_stays_late)
{
	uint64_t a, b;

	steady(0);
	speak(100, 0);
	a = ask(0, 1000, 0);
	ck_near(rate_wait(k, 0, at(0.25)), 0.75);
	ck_near(rate_wait(k, 0, at(1)), 0);
	ck_near(rate_wait(k, 0, at(3)), 2);
	/* another is booked: the queue counts from now on */
	b = ask(0, 1000, 3);
	ck_near(rate_wait(k, 0, at(3)), 1);
	ck_near(rate_wait(k, 0, at(6)), 2);
	first(a, 6);
	ck_near(rate_wait(k, 0, at(6)), 2);
	first(b, 6);
	ck_near(rate_wait(k, 0, at(60)), 0);
}
END_TEST

/* A request whose answer comes as a whole is nothing to wait for. */
START_TEST(what_will_not_speak_is_not_late)
{
	struct kvr_request r = { .size = sizeof(r) };
	struct kvr_decision d = { .size = sizeof(d) };
	uint32_t i;

	steady(0);
	speak(100, 0);
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	r.flags = KVR_NO_FIRST_TOKEN;
	for (i = 0; i < 50; i++) {
		say_long(1000, 0, kinds++);
		ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], at(i), &d),
		    KVR_OK);
		commit(d.lease, at(i));
		ck_assert_uint_eq(slot_at(k, 0)->prefilling, 0);
		ck_near(rate_wait(k, 0, at(i + 0.25)), 0.75);
		ck_near(rate_wait(k, 0, at(i + 1)), 0);
		if (i % 2 == 0) /* told all the same */
			first(d.lease, i + 1);
		finish(d.lease, at(i + 1));
	}
	/* that these had none does not mean that others have none */
	ck_assert(rate_spoken(k));
	say_long(1000, 0, kinds++);
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], at(100), &d),
	    KVR_OK);
	ck_near(rate_wait(k, 0, at(160)), 0);
	(void)ask(0, 1000, 200);
	ck_near(rate_wait(k, 0, at(203)), 2);
}
END_TEST

/* Where first tokens are not told, one that is missing means nothing. */
START_TEST(late_only_where_first_tokens_come)
{
	steady(0);
	speak(50, 0);
	(void)ask(0, 1000, 0);
	ck_near(rate_wait(k, 0, at(0.25)), 0.75);
	ck_near(rate_wait(k, 0, at(30)), 0);
}
END_TEST

/* ------------------------------------------------------------ arrivals --- */

START_TEST(arrivals_fade)
{
	ck_near(rate_arrivals(k, 0), 0);
	(void)ask(0, 6000, 0);
	ck_near(rate_arrivals(k, 0), 100);
	ck_near(rate_arrivals(k, at(60)), 100 / exp(1));
	(void)ask(1, 3000, 30);
	ck_near(rate_arrivals(k, at(30)), 100 * exp(-0.5) + 50);
	ck_near(rate_arrivals(k, at(150)), (100 * exp(-0.5) + 50) * exp(-2));
	ck_near(rate_arrivals(k, at(1e6)), 0);
	/* a time in the past: the value when it was last known */
	ck_near(rate_arrivals(k, 0), 100 * exp(-0.5) + 50);
}
END_TEST

START_TEST(steady_arrivals)
{
	uint32_t i;

	steady(0);
	for (i = 0; i < 1200; i++)
		give_up(ask(i % WORKERS, 700, i * 0.5), at(i * 0.5));
	ck_assert(fabs(rate_arrivals(k, at(600)) / 1400 - 1) < 0.01);
}
END_TEST

/* -------------------------------------------------------------- random --- */

/* The formulas again. Times in seconds. */
static struct other {
	double tokens, seconds, rate, weight, free_at, last, pace;
	uint32_t waiting;
} other[WORKERS];
static double fleet_tokens, fleet_seconds, arrived, arrived_at, prior, band;
static double spoke;
static double clock_was; /* when the call before this one was made */
static struct waiting {
	uint64_t lease;
	uint32_t worker, tokens;
	double opened;
	bool open, booked, spoken;
} waiting[REQUESTS];

static double
other_fresh(const struct other *o)
{
	double fresh = (90 - fmax(0, clock_was - o->last)) / 60;

	/* times are whole nanoseconds there: nothing is left after 90 s */
	return fresh < 1e-9 ? 0 : fmin(1, fresh);
}

static double
other_pace(const struct other *o)
{
	double rate = o->rate > 0 ? o->rate
	    : o->weight * fleet_tokens / fleet_seconds;
	double fresh = other_fresh(o), seen;

	if (fresh * o->seconds + prior == 0)
		return 1 / rate;
	seen = (fresh * o->tokens + prior * rate) /
	    (fresh * o->seconds + prior);
	return 1 / (fabs(seen / rate - 1) < band ? rate : seen);
}

/* What a call on this worker leaves behind. */
static void
call_ends(uint32_t worker, double now)
{
	other[worker].pace = other_pace(&other[worker]);
	clock_was = now;
}

static void
other_book(struct waiting *w, double now)
{
	struct other *o = &other[w->worker];

	arrived = arrived * exp(-(now - arrived_at) / 60) + w->tokens;
	arrived_at = now;
	o->waiting++;
	o->free_at = fmax(o->free_at, now) + w->tokens * other_pace(o);
}

/* Then a first token says nothing of prefill; learnt as in test_places.c. */
static bool
all_places_taken(uint32_t worker)
{
	struct kvr_worker_stats s = worker_stats(worker);

	return s.sequences > 0 && s.requests > s.sequences;
}

static void
other_first(struct waiting *w, double now)
{
	struct other *o = &other[w->worker];
	double took = now - fmax(w->opened, o->last);
	double fresh = other_fresh(o);

	w->spoken = true;
	o->tokens *= fresh;
	o->seconds *= fresh;
	o->last = now;
	if (w->tokens < 256 || took < 0.0010000005 ||
	    all_places_taken(w->worker))
		return;
	took = fmin(took, 100 * w->tokens * other_pace(o));
	o->tokens = o->tokens * 0.995 + w->tokens;
	o->seconds = o->seconds * 0.995 + took;
	fleet_tokens = fleet_tokens * 0.999 + w->tokens;
	fleet_seconds = fleet_seconds * 0.999 + took * o->weight;
}

static void
other_unbook(struct waiting *w, double now)
{
	struct other *o = &other[w->worker];
	double left = 0;
	uint32_t i;

	if (!w->booked)
		return;
	w->booked = false;
	for (i = 0; i < REQUESTS; i++)
		if (waiting[i].open && waiting[i].booked &&
		    waiting[i].worker == w->worker)
			left += waiting[i].tokens;
	o->waiting--;
	o->free_at = o->waiting == 0 ? now
	    : fmin(o->free_at, now + left * other_pace(o));
}

static void
other_begin(double new_prior, double new_band)
{
	uint32_t i;

	memset(waiting, 0, sizeof(waiting));
	memset(other, 0, sizeof(other));
	fleet_tokens = 34000;
	fleet_seconds = 2;
	arrived = arrived_at = spoke = clock_was = 0;
	prior = new_prior;
	band = new_band;
	set_policy(prior, band);
	for (i = 0; i < WORKERS; i++) {
		other[i].rate = pick(3) == 0 ? 100 + pick(50000) : 0;
		other[i].weight = pick(2) == 0 ? 1 : 0.25 * (1 + pick(16));
		set_worker(i, other[i].rate, other[i].weight);
	}
}

static void
one_more(struct waiting *w, double now)
{
	w->worker = pick(WORKERS);
	w->tokens = pick(4) == 0 ? 1 + pick(400) : 200 + pick(8000);
	w->opened = now;
	w->lease = ask(w->worker, w->tokens, now);
	w->open = w->booked = true;
	w->spoken = false;
	other_book(w, now);
	call_ends(w->worker, now);
}

static void
one_less(struct waiting *w, uint32_t quiet, double now)
{
	bool tells = quiet == 0 || pick(quiet) != 0;

	if (tells && w->booked) {
		first(w->lease, now);
		other_first(w, now);
		other_unbook(w, now);
		call_ends(w->worker, now);
		if (pick(2) == 0)
			return;
	}
	if (pick(2) == 0) {
		finish(w->lease, at(now));
		spoke += ((w->spoken ? 1 : 0) - spoke) * 0.05;
	} else {
		give_up(w->lease, at(now));
	}
	other_unbook(w, now);
	call_ends(w->worker, now);
	w->open = false;
}

static void
ck_worker(uint32_t worker, double now)
{
	const struct other *o = &other[worker];

	double late = spoke > 0.9 && o->waiting > 0
	    ? fmax(0, now - o->free_at) : 0;

	must(near(rate_now(worker), 1 / o->pace));
	must(near(backlog(worker, now), fmax(0, o->free_at - now)));
	must(rate_spoken(k) == (spoke > 0.9));
	must(near(rate_wait(k, worker, at(now)),
	    fmax(0, o->free_at - now) + late));
	must(near(rate_fleet(k), fleet_tokens / fleet_seconds));
	must(near(rate_arrivals(k, at(now)), arrived / 60 *
	    exp(-(now - arrived_at) / 60)));
	must(slot_at(k, worker)->prefilling == o->waiting);
}

/* One of `quiet` requests ends without a first token; 0: none does. */
static void
some_calls(uint64_t calls, uint32_t quiet)
{
	struct waiting *w;
	double now = 0;

	for (; calls > 0; calls--) {
		/* whole microseconds, so that both use the same time */
		now = round((now + (pick(4) == 0 ? 0 : pick(8) == 0
		    ? pick(100) : pick(1000) * 1e-3)) * 1e6) * 1e-6;
		w = &waiting[pick(REQUESTS)];
		if (w->open)
			one_less(w, quiet, now);
		else
			one_more(w, now);
		ck_worker(w->worker, now);
	}
}

START_TEST(as_the_formulas_say)
{
	static const double priors[] = { 0, 10, 0.5, 1000 };
	static const double bands[] = { 0.125, 0.125, 0, 0.5 };
	uint64_t calls = test_amount(4000);
	uint32_t i;

	by_chance();
	for (i = 0; i < 4; i++) {
		region_end();
		setup();
		other_begin(priors[i], bands[i]);
		some_calls(calls, i * 4);
	}
}
END_TEST

Suite *suite_rate(void);

Suite *
suite_rate(void)
{
	Suite *s = suite_create("rate");
	TCase *t = tcase_create("rate");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, before_anything_is_seen);
	tcase_add_test(t, one_request);
	tcase_add_test(t, configured);
	tcase_add_test(t, no_prior);
	tcase_add_test(t, weights);
	tcase_add_test(t, one_after_the_other);
	tcase_add_test(t, out_of_order);
	tcase_add_test(t, no_evidence);
	tcase_add_test(t, first_tokens_once);
	tcase_add_test(t, a_reset_forgets_the_rate);
	tcase_add_test(t, forget_is_at_once);
	tcase_add_test(t, what_was_shown_fades);
	tcase_add_test(t, faded_is_gone);
	tcase_add_test(t, dead_band);
	tcase_add_test(t, everybody_in_turn);
	tcase_add_test(t, booked_one_behind_the_other);
	tcase_add_test(t, first_tokens_put_it_right);
	tcase_add_test(t, nothing_takes_nothing);
	tcase_add_test(t, given_up);
	tcase_add_test(t, from_outside);
	tcase_add_test(t, overlap_is_not_booked);
	tcase_add_test(t, never_is_far_enough);
	tcase_add_test(t, most_have_a_first_token);
	tcase_add_test(t, what_is_late_stays_late);
	tcase_add_test(t, what_will_not_speak_is_not_late);
	tcase_add_test(t, late_only_where_first_tokens_come);
	tcase_add_test(t, arrivals_fade);
	tcase_add_test(t, steady_arrivals);
	tcase_add_test(t, as_the_formulas_say);
	return s;
}
