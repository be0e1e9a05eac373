/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rate.c - prefill rates and backlogs.
 *
 * The formulas of rate.c, by hand on short sequences of calls, then on long
 * random ones, against an independent second implementation: a few numbers for
 * each worker, and a list of requests.
 */
#include "id.h"
#include "rate.h"

#include "inner.h"

#include <math.h>

#define SECOND 1000000000.0
enum { REQUESTS = 40 };

/* No prompts share a prefix: every token given is to be prefilled. */
static uint32_t kinds;

static void
setup(void)
{
	struct kvr_options o = small_options();

	o.block_size = 64;
	o.ttl_ns = 0;
	kinds = 0;
	region_of(&o);
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
	double one = rate_backlog(k, worker, at(seconds));

	ck_assert(rate_backlog_of_two(&k->loads, worker & ~1U,
	    at(seconds))[worker & 1] == one);
	return one;
}

/* --------------------------------------------------------------- rates --- */

START_TEST(before_anything_is_seen)
{
	ck_near(rate_now(0), 17000);
	set_worker(1, 0, 2.5);
	ck_near(rate_now(1), 42500);
	set_worker(2, 5000, 2.5);
	ck_near(rate_now(2), 5000);
	set_worker(3, 0, 0.5);
	ck_near(rate_now(3), 8500);
}
END_TEST

START_TEST(one_request)
{
	double fleet = (34000 * 0.999 + 1000) / (2 * 0.999 + 0.25);

	first(ask(0, 1000, 3), 3.25);
	ck_near(rate_fleet(k), fleet);
	ck_near(rate_now(0), (1000 + 3 * fleet) / (0.25 + 3));
}
END_TEST

/* A configured rate is a prior; observations fade, the prior does not. */
START_TEST(configured)
{
	uint64_t lease;
	uint32_t i;

	set_worker(0, 500, 1);
	first(ask(0, 1000, 0), 0.5);
	ck_near(rate_now(0), (1000 + 3 * 500) / (0.5 + 3));
	first(ask(0, 600, 1), 1.5);
	ck_near(rate_now(0), (1000 * 0.995 + 600 + 1500) /
	    (0.5 * 0.995 + 0.5 + 3));
	for (i = 2; i < 2000; i++) {
		lease = ask(0, 1000, i);
		first(lease, i + 0.5);
		finish(lease, at(i + 0.5));
	}
	/* 200 pieces do not fade: 100 s against 3 */
	ck_near(round(rate_now(0)), round((200000 + 1500) / 103.0));
}
END_TEST

/* The fleet's rate is that of a worker of weight 1. */
START_TEST(weights)
{
	set_worker(0, 0, 4);
	first(ask(0, 4000, 0), 1);
	ck_near(rate_fleet(k), (34000 * 0.999 + 4000) / (2 * 0.999 + 4));
	ck_near(rate_now(0), (4000 + 3 * 4 * rate_fleet(k)) / (1 + 3));
}
END_TEST

/* One after the other: the second starts at the first one's first token. */
START_TEST(one_after_the_other)
{
	uint64_t a, b;

	set_worker(0, 1000, 1);
	a = ask(0, 1000, 0);
	b = ask(0, 300, 0.1);
	first(a, 1);
	first(b, 1.2);
	ck_near(rate_now(0), (1000 * 0.995 + 300 + 3000) /
	    (1 * 0.995 + 0.2 + 3));
}
END_TEST

/* And the other way round, if that is the order in which they arrive. */
START_TEST(out_of_order)
{
	uint64_t a, b, c;

	set_worker(0, 1000, 1);
	set_worker(1, 1000, 1);
	a = ask(0, 1000, 0);
	b = ask(0, 300, 0.1);
	first(b, 0.4);
	ck_near(rate_now(0), 3300 / 3.3);
	c = ask(1, 500, 0.9);
	first(a, 1);
	ck_near(rate_now(0), (300 * 0.995 + 1000 + 3000) /
	    (0.3 * 0.995 + 0.6 + 3));
	/* other workers' first tokens do not count */
	first(ask(0, 300, 1), 1.5);
	first(c, 1.6);
	ck_near(rate_now(1), 3500 / 3.7);
}
END_TEST

/* Too few tokens, or no time: no evidence, but still a first token. */
START_TEST(no_evidence)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	uint64_t a, b;

	set_worker(0, 1000, 1);
	a = ask(0, 1000, 0);
	b = ask(0, 255, 0);
	first(b, 0.9);
	ck_near(rate_now(0), 1000);
	first(a, 0.901);
	ck_near(rate_now(0), 1000);
	first(ask(0, 256, 1), 1.002);
	ck_near(rate_now(0), 3256 / 3.002);
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

/* A first token counts once, and commits. */
START_TEST(first_tokens_once)
{
	uint64_t lease;

	set_worker(0, 1000, 1);
	say_long(1000, 0, kinds++);
	lease = reserved(0, at(1));
	first(lease, 3);
	ck_near(rate_now(0), 4000 / 5.0);
	commit(lease, at(3));
	first(lease, 9);
	ck_near(rate_now(0), 4000 / 5.0);
}
END_TEST

/* An engine that restarted may run on another machine. */
START_TEST(a_reset_forgets_the_rate)
{
	first(ask(0, 1000, 0), 0.5);
	ck_assert(worker_stats(0).prefill_rate < rate_fleet(k));
	(void)ask(0, 1000, 1);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_near(worker_stats(0).prefill_rate, rate_fleet(k));
	ck_near(worker_stats(0).backlog, 0);
	ck_assert(rate_fleet(k) < 17000);
}
END_TEST

/* The worker's own rate is gone; the fleet's rate and its queue stay. */
START_TEST(forget_is_at_once)
{
	double fleet;
	uint64_t lease;

	set_worker(0, 5000, 1);
	set_worker(1, 5000, 1);
	first(ask(0, 1000, 0), 4);
	first(ask(1, 1000, 4), 6);
	fleet = rate_fleet(k);
	ck_near(rate_now(0), 16000 / 7.0);
	lease = ask(0, 1000, 6);
	ck_assert_int_eq(kvr_worker_forget(k, id[0]), KVR_OK);
	ck_near(rate_now(0), 5000);
	ck_near(rate_now(1), 16000 / 5.0);
	ck_near(rate_fleet(k), fleet);
	ck_assert_uint_eq(worker_stats(0).prefill_tokens, 1000);
	ck_assert_uint_eq(worker_stats(0).requests, 2);
	ck_assert_uint_eq(worker_stats(0).lease_opens, 2);
	ck_near(backlog(0, 6), 0.2);
	/* it learns again as a new one does */
	first(lease, 7);
	ck_near(rate_now(0), 16000 / 4.0);
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
		/* any writing call passes the time to one worker, in turn */
		while (k->region->rate_turn != 0)
			give_up(ask(1, 1, 10 + fresh[i][0]),
			    at(10 + fresh[i][0]));
		ck_near(rate_now(0), (1000 * fresh[i][1] + 3 * 1000) /
		    (10 * fresh[i][1] + 3));
		give_up(ask(1, 1, 10 + fresh[i][0]), at(10 + fresh[i][0]));
	}
	ck_near(rate_now(0), 1000);
}
END_TEST

/* A faded rate does not come back with the next first token. */
START_TEST(faded_is_gone)
{
	uint64_t lease;

	set_worker(0, 1000, 1);
	first(ask(0, 1000, 0), 10);
	lease = ask(0, 1000, 69);
	(void)expire(at(70), 0);
	first(lease, 70);
	/* half of the first, and the second */
	ck_near(rate_now(0), (500 * 0.995 + 1000 + 3000) /
	    (5 * 0.995 + 1 + 3));
	first(ask(0, 1000, 1000), 1001);
	ck_near(rate_now(0), (1000 + 3000) / (1 + 3.0));
	/* a first token without evidence is a sign of life as well */
	first(ask(0, 1000, 1000), 1003);
	first(ask(0, 10, 1029), 1029);
	first(ask(0, 10, 1055), 1055);
	ck_near(rate_now(0), (1000 * 0.995 + 1000 + 3000) /
	    (1 * 0.995 + 2 + 3));
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

/* Prompts of less than 256 tokens teach no rate: it stays as configured. */

START_TEST(booked_until_the_first_token)
{
	uint64_t a, b, c;

	set_worker(0, 100, 1);
	a = ask(0, 200, 0);
	ck_near(backlog(0, 0), 2);
	b = ask(0, 100, 0.25);
	c = ask(0, 50, 0.5);
	/* whatever the time */
	ck_near(backlog(0, 0.5), 3.5);
	ck_near(backlog(0, 1000), 3.5);
	ck_near(worker_stats(0).backlog, 3.5);
	ck_near(backlog(1, 1000), 0);
	first(b, 1000);
	ck_near(backlog(0, 1000), 2.5);
	/* an end is one as well */
	finish(a, at(1001));
	ck_near(backlog(0, 1001), 0.5);
	give_up(c, at(1002));
	ck_near(backlog(0, 1002), 0);
	finish(b, at(1002));
	ck_near(backlog(0, 1002), 0);
}
END_TEST

START_TEST(ended_by_others)
{
	uint64_t from = 0;

	set_worker(0, 100, 1);
	(void)ask(0, 200, 1);
	ck_assert_int_eq(kvr_owner_reap(k, 0, at(1), &from, NULL), KVR_OK);
	ck_near(backlog(0, 1), 0);
}
END_TEST

START_TEST(from_outside)
{
	struct kvr_load load = { .size = sizeof(load) };
	uint64_t a;

	set_worker(0, 100, 1);
	load.prefill_tokens = 300;
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	ck_near(backlog(0, 0), 3);
	a = ask(0, 100, 0);
	ck_near(backlog(0, 0), 4);
	first(a, 0.5);
	/* load set from outside is not removed */
	ck_near(backlog(0, 0.5), 3);
	load.prefill_tokens = 0;
	ck_assert_int_eq(kvr_worker_set_load(k, id[0], 0, &load), KVR_OK);
	ck_near(backlog(0, 0.5), 0);
}
END_TEST

/* Cached tokens are not prefilled. */
START_TEST(overlap_is_not_booked)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;

	set_worker(0, 1000, 1);
	kvr_request_init(&r, sizeof(r));
	r.overlap_blocks = 10;
	say_long(1000, 0, kinds++);
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[0], 0, &d), KVR_OK);
	ck_near(backlog(0, 0), 0.36);
}
END_TEST

/* -------------------------------------------------------------- silent --- */

/* An answer that comes as a whole. */
static uint64_t
ask_silently(uint32_t worker, uint32_t tokens, double seconds)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;

	kvr_request_init(&r, sizeof(r));
	r.flags = KVR_NO_FIRST_TOKEN;
	say_long(tokens, 0, kinds++);
	ck_assert_int_eq(kvr_lease_open_on(k, p, &r, id[worker], at(seconds),
	    &d), KVR_OK);
	commit(d.lease, at(seconds));
	return d.lease;
}

/* One behind the other, and by then all are prefilled. */
START_TEST(silent_ones_pass_with_time)
{
	uint64_t a, b, c;

	set_worker(0, 100, 1);
	a = ask_silently(0, 200, 0);
	ck_near(backlog(0, 0), 2);
	ck_near(backlog(0, 0.5), 1.5);
	b = ask_silently(0, 100, 0.5);
	ck_near(backlog(0, 0.5), 2.5);
	/* with those that will have a first token */
	(void)ask(0, 50, 1);
	ck_near(backlog(0, 1), 2.5);
	ck_near(backlog(0, 3), 0.5);
	ck_near(backlog(0, 20), 0.5);
	ck_assert_uint_eq(worker_stats(0).prefill_tokens, 350);
	/* later requests begin later */
	c = ask_silently(0, 100, 30);
	ck_near(backlog(0, 30), 1.5);
	finish(c, at(30));
	/* a late report of it counts once */
	first(a, 40);
	finish(b, at(40));
	ck_near(backlog(0, 40), 0.5);
	ck_assert_uint_eq(worker_stats(0).prefill_tokens, 50);
	ck_near(worker_stats(0).backlog, 0.5);
}
END_TEST

/* The backlog is at most the sum of the requests that have not ended. */
START_TEST(silent_ones_end)
{
	uint64_t a, b, c;

	set_worker(0, 100, 1);
	a = ask_silently(0, 200, 1);
	b = ask_silently(0, 100, 1);
	c = ask_silently(0, 50, 1);
	ck_near(backlog(0, 1), 3.5);
	finish(b, at(1));
	ck_near(backlog(0, 1), 2.5);
	ck_near(backlog(0, 2.5), 1);
	first(c, 1);
	ck_near(backlog(0, 1), 2);
	finish(c, at(1));
	ck_near(backlog(0, 1), 2);
	give_up(a, at(1));
	ck_near(backlog(0, 1), 0);
}
END_TEST

/* Observed requests have neither a first token nor an end. */
START_TEST(observed_ones_pass_with_time)
{
	uint32_t i;

	region_end();
	small_setup();
	set_worker(0, 100, 1);
	for (i = 0; i < 2; i++) {
		say_long(200, 0, 7);
		ck_assert_uint_eq(observed(0, at(1)), 200);
		/* the second time it is there */
		ck_near(backlog(0, 1), 2);
	}
	ck_near(backlog(0, 2.5), 0.5);
	ck_near(backlog(0, 4), 0);
	ck_assert_uint_eq(worker_stats(0).prefill_tokens, 0);
	ck_assert_int_eq(kvr_worker_reset(k, id[0], &id[0]), KVR_OK);
	ck_near(backlog(id_slot(id[0]), 1), 0);
}
END_TEST

/* A slow worker and a long queue: a finite time, and no overflow. */
START_TEST(never_is_far_enough)
{
	uint32_t i;

	set_worker(0, 1e-9, 1);
	for (i = 0; i < 10; i++)
		(void)ask_silently(0, 20000, i);
	ck_near(backlog(0, 9), 1e6);
	set_worker(1, 1e15, 1);
	(void)ask(1, 20000, 9);
	ck_near(backlog(1, 9), 20000e-9);
}
END_TEST

/* -------------------------------------------------------------- random --- */

/* The formulas again. Times in seconds. */
static struct other {
	double tokens, seconds, rate, weight, silent_until, last, pace;
} other[WORKERS];
static double fleet_tokens, fleet_seconds;
static double clock_was; /* when the call before this one was made */
static struct waiting {
	uint64_t lease;
	uint32_t worker, tokens;
	double opened;
	bool open, booked, silent;
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
	double fresh = other_fresh(o);

	return (fresh * o->seconds + 3) / (fresh * o->tokens + 3 * rate);
}

/* Each call on this worker ends with this. */
static void
call_ends(uint32_t worker, double now)
{
	other[worker].pace = other_pace(&other[worker]);
	clock_was = now;
}

static void
other_first(struct waiting *w, double now)
{
	struct other *o = &other[w->worker];
	double took = now - fmax(w->opened, o->last);
	double fresh = other_fresh(o);

	o->tokens *= fresh;
	o->seconds *= fresh;
	o->last = now;
	if (w->tokens < 256 || took < 0.0010000005)
		return;
	took = fmin(took, 100 * w->tokens * other_pace(o));
	o->tokens = o->tokens * 0.995 + w->tokens;
	o->seconds = o->seconds * 0.995 + took;
	fleet_tokens = fleet_tokens * 0.999 + w->tokens;
	fleet_seconds = fleet_seconds * 0.999 + took * o->weight;
}

static void
other_begin(void)
{
	uint32_t i;

	memset(waiting, 0, sizeof(waiting));
	memset(other, 0, sizeof(other));
	fleet_tokens = 34000;
	fleet_seconds = 2;
	clock_was = 0;
	for (i = 0; i < WORKERS; i++) {
		other[i].rate = pick(3) == 0 ? 100 + pick(50000) : 0;
		other[i].weight = pick(2) == 0 ? 1 : 0.25 * (1 + pick(16));
		set_worker(i, other[i].rate, other[i].weight);
	}
}

static void
one_more(struct waiting *w, double now)
{
	struct other *o;

	w->worker = pick(WORKERS);
	w->tokens = pick(4) == 0 ? 1 + pick(400) : 200 + pick(8000);
	w->opened = now;
	w->silent = pick(3) == 0;
	w->lease = w->silent ? ask_silently(w->worker, w->tokens, now)
	    : ask(w->worker, w->tokens, now);
	w->open = w->booked = true;
	o = &other[w->worker];
	if (w->silent)
		o->silent_until = fmax(o->silent_until, now) +
		    w->tokens * other_pace(o);
	call_ends(w->worker, now);
}

/* The silent queue is at most as long as the other silent requests. */
static void
other_unbook(struct waiting *w)
{
	struct other *o = &other[w->worker];
	double left = 0;
	uint32_t i;

	if (!w->booked)
		return;
	w->booked = false;
	for (i = 0; i < REQUESTS; i++)
		if (waiting[i].booked && waiting[i].silent &&
		    waiting[i].worker == w->worker)
			left += waiting[i].tokens;
	if (w->silent)
		o->silent_until = fmin(o->silent_until, clock_was +
		    left * other_pace(o));
}

static void
one_less(struct waiting *w, double now)
{
	if (w->booked && pick(4) != 0) {
		first(w->lease, now);
		other_first(w, now);
		other_unbook(w);
		call_ends(w->worker, now);
		if (pick(2) == 0)
			return;
	}
	if (pick(2) == 0)
		finish(w->lease, at(now));
	else
		give_up(w->lease, at(now));
	other_unbook(w);
	w->open = false;
	call_ends(w->worker, now);
}

static void
ck_worker(uint32_t worker, double now)
{
	const struct other *o = &other[worker];
	double booked = 0;
	uint32_t i;

	for (i = 0; i < REQUESTS; i++)
		if (waiting[i].booked && !waiting[i].silent &&
		    waiting[i].worker == worker)
			booked += waiting[i].tokens;
	must(near(rate_now(worker), 1 / o->pace));
	must(near(backlog(worker, now), booked * o->pace +
	    fmax(0, o->silent_until - now)));
	must(near(rate_fleet(k), fleet_tokens / fleet_seconds));
}

START_TEST(as_the_formulas_say)
{
	uint64_t calls = test_amount(8000);
	struct waiting *w;
	double now = 0;

	by_chance();
	other_begin();
	for (; calls > 0; calls--) {
		/* whole microseconds, so that both use the same time */
		now = round((now + (pick(4) == 0 ? 0 : pick(8) == 0
		    ? pick(100) : pick(1000) * 1e-3)) * 1e6) * 1e-6;
		w = &waiting[pick(REQUESTS)];
		if (w->open)
			one_less(w, now);
		else
			one_more(w, now);
		ck_worker(w->worker, now);
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
	tcase_add_test(t, weights);
	tcase_add_test(t, one_after_the_other);
	tcase_add_test(t, out_of_order);
	tcase_add_test(t, no_evidence);
	tcase_add_test(t, first_tokens_once);
	tcase_add_test(t, a_reset_forgets_the_rate);
	tcase_add_test(t, forget_is_at_once);
	tcase_add_test(t, what_was_shown_fades);
	tcase_add_test(t, faded_is_gone);
	tcase_add_test(t, everybody_in_turn);
	tcase_add_test(t, booked_until_the_first_token);
	tcase_add_test(t, ended_by_others);
	tcase_add_test(t, from_outside);
	tcase_add_test(t, overlap_is_not_booked);
	tcase_add_test(t, silent_ones_pass_with_time);
	tcase_add_test(t, silent_ones_end);
	tcase_add_test(t, observed_ones_pass_with_time);
	tcase_add_test(t, never_is_far_enough);
	tcase_add_test(t, as_the_formulas_say);
	return s;
}
