/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_balance.c - the effect of the balanced cost on a fleet.
 *
 * Each test is named after a way in which a fleet can be used badly. Engines
 * are imitated: each prefills one prompt after the other, holds the prompts it
 * has prefilled, and decodes each request for a given time. So its first token
 * and its end are known when it arrives.
 */
#include "inner.h"

#include <math.h>

#define SECOND 1000000000.0
enum { ENGINES = 4, REQUESTS = 4096, DOCUMENTS = 64 };

struct engine {
	double rate;                /* tokens per second */
	double free_at;             /* its prefill */
	uint32_t held[DOCUMENTS];   /* tokens of each document */
	uint32_t asked;
};

static struct sent {
	uint64_t lease;
	uint32_t engine;
	double first, end;
	bool spoken;
} sent[REQUESTS];
static uint32_t n_sent, done; /* `done`: all before it have ended */
static struct engine engine[ENGINES];
static struct kvr_request r;
static uint32_t kinds;
static double now, decode;

static int64_t
ns(double seconds)
{
	return (int64_t)(seconds * SECOND + 0.5);
}

static void
setup(void)
{
	struct kvr_options o = small_options();
	uint32_t i;

	o.region_bytes = 16 << 20;
	o.block_size = 16;
	o.ttl_ns = ns(600);
	o.max_workers = ENGINES;
	region_of(&o);
	ck_assert_int_eq(kvr_request_init(&r, sizeof(r)), KVR_OK);
	memset(engine, 0, sizeof(engine));
	n_sent = done = kinds = 0;
	now = 0;
	decode = 2;
	for (i = 0; i < ENGINES; i++)
		engine[i].rate = 17000;
}

/* ------------------------------------------------------------- engines --- */

/* The document's tokens, and others that are its own. */
static void
prompt(uint32_t document, uint32_t tokens, uint32_t own)
{
	static uint32_t token[65536];
	uint32_t i;

	for (i = 0; i < tokens; i++)
		token[i] = document << 20 | i;
	for (; i < tokens + own; i++)
		token[i] = UINT32_C(0x80000000) + kinds;
	kinds++;
	ck_assert_int_eq(kvr_prompt_set_tokens(p, NULL, token, i), KVR_OK);
}

/* All that happens until now, in order. */
static void
live(void)
{
	struct sent *next;
	double at;
	uint32_t i;

	for (;;) {
		next = NULL;
		for (at = now, i = done; i < n_sent; i++) {
			double t = sent[i].spoken ? sent[i].end
			    : sent[i].first;

			if (sent[i].lease != 0 && t <= at) {
				next = &sent[i];
				at = t;
			}
		}
		if (next == NULL)
			break;
		if (!next->spoken) {
			must(kvr_lease_first_token(k, next->lease, ns(at), 0)
			    == KVR_OK);
			next->spoken = true;
		} else {
			finish(next->lease, ns(at));
			next->lease = 0;
		}
		while (done < n_sent && sent[done].lease == 0)
			done++;
	}
}

/* One request; returns its engine. */
static uint32_t
ask(uint32_t document, uint32_t tokens, uint32_t own)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct sent *s = &sent[n_sent];
	struct engine *e;
	uint32_t fresh;

	live();
	must(n_sent < REQUESTS);
	prompt(document, tokens, own);
	must(kvr_lease_open(k, p, &r, ns(now), &d) == KVR_OK);
	must(d.lease != 0);
	commit(d.lease, ns(now));
	for (s->engine = 0; id[s->engine] != d.worker; s->engine++)
		must(s->engine + 1 < ENGINES);
	s->lease = d.lease;
	s->spoken = false;
	e = &engine[s->engine];
	e->asked++;
	fresh = tokens - e->held[document] + own;
	e->held[document] = tokens;
	s->first = e->free_at = fmax(now, e->free_at) + fresh / e->rate;
	s->end = s->first + decode;
	n_sent++;
	return s->engine;
}

/* All that is left ends. */
static void
drain(void)
{
	while (done < n_sent) {
		now = fmax(now, sent[done].end);
		live();
	}
}

static void
count_anew(void)
{
	uint32_t i;

	for (i = 0; i < ENGINES; i++)
		engine[i].asked = 0;
}

/* So many requests on one document, at even intervals. */
static void
stream(uint32_t requests, double per_second, uint32_t tokens, uint32_t own)
{
	count_anew();
	for (; requests > 0; requests--) {
		now += 1 / per_second;
		(void)ask(0, tokens, own);
	}
}

static void
ck_share(uint32_t e, uint32_t least, uint32_t most)
{
	ck_assert_msg(engine[e].asked >= least && engine[e].asked <= most,
	    "engine %u of %u %u %u %u requests: not %u to %u", e,
	    engine[0].asked, engine[1].asked, engine[2].asked,
	    engine[3].asked, least, most);
}

static void
set_state(uint32_t worker, uint32_t state)
{
	struct kvr_worker f = { .size = sizeof(f) };

	ck_assert_int_eq(kvr_worker_get(k, id[worker], &f), KVR_OK);
	f.state = state;
	ck_assert_int_eq(kvr_worker_set(k, id[worker], &f), KVR_OK);
}

static struct kvr_candidate
candidate(uint32_t worker)
{
	struct kvr_candidate c[ENGINES];
	size_t n;

	ck_assert_int_eq(kvr_candidates(k, p, &r, ns(now), c, sizeof(c[0]),
	    ENGINES, &n), KVR_OK);
	ck_assert_uint_eq(c[worker].worker, id[worker]);
	return c[worker];
}

/* ------------------------------------------------------ shared prefixes --- */

/* Each step reads all of them, whatever they share. */
START_TEST(a_hundred_requests_on_one_prefix_are_a_hundred)
{
	uint64_t lease[100];
	uint32_t i;

	for (i = 0; i < 100; i++) {
		prompt(0, 8000, 48);
		lease[i] = reserved(0, 0);
		commit(lease[i], 0);
		ck_assert_int_eq(kvr_lease_first_token(k, lease[i], 0, 0),
		    KVR_OK);
	}
	r.flags = KVR_IGNORE_PREFILL;
	ck_assert(fabs(candidate(0).cost - 100 / 4.0 * 8048 / 5 / 17000) <
	    1e-9);
	ck_assert(candidate(1).cost == 0);
	for (i = 0; i < 100; i++)
		finish(lease[i], 0);
	ck_assert(candidate(0).cost == 0);
}
END_TEST

START_TEST(a_shared_prefix_spills_over)
{
	uint32_t i;

	stream(400, 40, 20000, 200);
	/* it was on one, and soon on all */
	for (i = 0; i < ENGINES; i++)
		ck_share(i, 70, 130);
	stream(400, 40, 20000, 200);
	for (i = 0; i < ENGINES; i++)
		ck_share(i, 80, 120);
}
END_TEST

/* A prefix that all others use is little reason to avoid it. */
START_TEST(a_worker_that_joins_gets_its_share)
{
	set_state(3, KVR_STATE_DOWN);
	stream(400, 40, 20000, 200);
	ck_share(3, 0, 0);
	drain();
	set_state(3, KVR_STATE_UP);
	stream(200, 10, 20000, 200);
	ck_share(3, 35, 75);
}
END_TEST

START_TEST(one_drained_and_back)
{
	stream(200, 20, 8000, 200);
	set_state(1, KVR_STATE_DRAINING);
	stream(200, 20, 8000, 200);
	ck_share(1, 0, 0);
	set_state(1, KVR_STATE_UP);
	stream(200, 20, 8000, 200);
	ck_share(1, 35, 75);
}
END_TEST

/* ---------------------------------------------------------------- rates --- */

/* Requests come one after the other, so that load makes no difference. */
START_TEST(idle_fleet_spreads)
{
	static const double faster[] = { 1, 1.003, 0.998, 1.005 };
	uint32_t documents[ENGINES] = { 0 }, i, round, e;

	for (i = 0; i < ENGINES; i++)
		engine[i].rate *= faster[i];
	for (round = 0; round < 4; round++)
		for (i = 0; i < 60; i++) {
			e = ask(i, 4000, 100);
			documents[e] += round == 0;
			drain();
			now += 0.1;
		}
	for (i = 0; i < ENGINES; i++)
		ck_assert_msg(documents[i] >= 8 && documents[i] <= 22,
		    "engine %u: %u documents", i, documents[i]);
	/* and a document goes to its first engine */
	for (i = 0; i < ENGINES; i++)
		ck_share(i, documents[i] * 4, documents[i] * 4);
}
END_TEST

/* Sends prompts that share nothing, at half the fleet's prefill rate. */
static void
strangers(double seconds)
{
	double until = now + seconds;

	count_anew();
	while (now < until) {
		now += 0.125;
		memset(engine[0].held, 0, sizeof(engine[0].held));
		(void)ask(63, 0, 4000);
		if (n_sent == REQUESTS || done == n_sent) {
			memmove(sent, sent + done,
			    (n_sent - done) * sizeof(sent[0]));
			n_sent -= done;
			done = 0;
		}
	}
}

START_TEST(a_slow_spell_is_forgotten)
{
	strangers(30);
	ck_share(2, 40, 80);
	engine[2].rate /= 20;
	strangers(25);
	engine[2].rate *= 20;
	ck_share(2, 1, 40);
	/* once its queue is done and it is believed again */
	strangers(150);
	strangers(30);
	ck_share(2, 30, 90);
}
END_TEST

/* kvr_worker_forget does not wait for new figures. */
START_TEST(forget_is_at_once)
{
	strangers(30);
	engine[2].rate /= 20;
	strangers(25);
	engine[2].rate *= 20;
	drain();
	strangers(5);
	ck_share(2, 0, 4);
	ck_assert_int_eq(kvr_worker_forget(k, id[2]), KVR_OK);
	strangers(5);
	ck_share(2, 6, 16);
}
END_TEST

/* ---------------------------------------------------------- the bound --- */

static double
limit_of(const struct kvr_candidate *c, uint32_t worker)
{
	double all = 1, weights = 0, weight[ENGINES];
	uint32_t i;

	for (i = 0; i < ENGINES; i++) {
		struct kvr_worker f = { .size = sizeof(f) };

		must(kvr_worker_get(k, id[i], &f) == KVR_OK);
		weight[i] = f.weight;
		weights += f.weight;
		all += (double)c[i].requests;
	}
	return 2 * all * weight[worker] / weights + 3;
}

static void
ck_below(const struct kvr_candidate *c, uint64_t chosen)
{
	uint32_t i, below = 0, w;

	for (w = 0; id[w] != chosen; w++)
		must(w + 1 < ENGINES);
	for (i = 0; i < ENGINES; i++)
		below += (double)c[i].requests + 1 <= limit_of(c, i) + 1e-9;
	must(below > 0);
	must((double)c[w].requests + 1 <= limit_of(c, w) + 1e-9);
}

START_TEST(no_worker_above_the_bound)
{
	uint64_t lease[200] = { 0 }, n = test_amount(4000), i, full = 0;
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_candidate c[ENGINES];
	struct kvr_worker f;
	uint32_t j, at;
	size_t count;

	by_chance();
	/* until the bound has mattered */
	for (i = 0; i < n || (full <= 100 && i < 20 * n); i++) {
		if (i % 500 == 0)
			for (j = 0; j < ENGINES; j++) {
				must(kvr_worker_init(&f, sizeof(f)) == KVR_OK);
				f.weight = 1 + pick(3);
				must(kvr_worker_set(k, id[j], &f) == KVR_OK);
			}
		at = pick(200);
		if (lease[at] != 0) {
			finish(lease[at], 0);
			lease[at] = 0;
			continue;
		}
		/* it pays to send all of them to one */
		prompt(pick(2), 20000, 16);
		if (pick(4) == 0) {
			lease[at] = reserved(pick(2), 0);
			continue;
		}
		must(kvr_candidates(k, p, &r, 0, c, sizeof(c[0]), ENGINES,
		    &count) == KVR_OK && count == ENGINES);
		must(kvr_lease_open(k, p, &r, 0, &d) == KVR_OK);
		lease[at] = d.lease;
		for (j = 0; j < ENGINES; j++)
			full += c[j].verdict == KVR_ABOVE_BOUND;
		ck_below(c, d.worker);
	}
	ck_assert(n < 1000 || full > 100);
}
END_TEST

/* -------------------------------------------------------------- ties --- */

/* Rates differ too little to count: load decides, then the lot. */
START_TEST(near_ties_by_load)
{
	static const double rates[] = { 17000, 17080, 16950, 17040 };
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_load load = { .size = sizeof(load) };
	uint32_t asked[ENGINES] = { 0 }, i, j;
	struct kvr_worker f;

	for (i = 0; i < ENGINES; i++) {
		ck_assert_int_eq(kvr_worker_init(&f, sizeof(f)), KVR_OK);
		f.prefill_rate = rates[i];
		ck_assert_int_eq(kvr_worker_set(k, id[i], &f), KVR_OK);
	}
	for (j = 0; j < 400; j++) {
		prompt(0, 0, 2000);
		ck_assert_int_eq(kvr_route(k, p, &r, 0, &d), KVR_OK);
		ck_assert_uint_eq(d.reason, KVR_REASON_TIE);
		for (i = 0; id[i] != d.worker; i++)
			ck_assert_uint_lt(i, ENGINES - 1);
		asked[i]++;
	}
	for (i = 0; i < ENGINES; i++)
		ck_assert(asked[i] >= 60 && asked[i] <= 140);
	/* one request less decides, wherever the cost is lowest */
	for (i = 0; i < ENGINES; i++) {
		for (j = 0; j < ENGINES; j++) {
			load.requests = j == i ? 1 : 2;
			ck_assert_int_eq(kvr_worker_set_load(k, id[j], 0,
			    &load), KVR_OK);
		}
		ck_assert_int_eq(kvr_route(k, p, &r, 0, &d), KVR_OK);
		ck_assert_uint_eq(d.worker, id[i]);
	}
}
END_TEST

Suite *suite_balance(void);

Suite *
suite_balance(void)
{
	Suite *s = suite_create("balance");
	TCase *t = tcase_create("balance");

	tcase_add_checked_fixture(t, setup, region_end);
	suite_add_tcase(s, t);
	tcase_add_test(t, a_hundred_requests_on_one_prefix_are_a_hundred);
	tcase_add_test(t, a_shared_prefix_spills_over);
	tcase_add_test(t, a_worker_that_joins_gets_its_share);
	tcase_add_test(t, one_drained_and_back);
	tcase_add_test(t, idle_fleet_spreads);
	tcase_add_test(t, a_slow_spell_is_forgotten);
	tcase_add_test(t, forget_is_at_once);
	tcase_add_test(t, no_worker_above_the_bound);
	tcase_add_test(t, near_ties_by_load);
	return s;
}
