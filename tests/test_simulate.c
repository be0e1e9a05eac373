/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_simulate.c - policies before modelled engines: what must come out of
 * any simulation, and what is known of a published trace.
 */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "engine_model.h"
#include "rng.h"
#include "sample.h"
#include "simulate.h"
#include "tokens.h"
#include "trace.h"

/* Every policy with every index, oracles last. */
static const struct {
	enum simulate_policy policy;
	enum simulate_index index;
} kinds[] = {
	{ SIMULATE_ROUND_ROBIN, SIMULATE_TTL },
	{ SIMULATE_RANDOM, SIMULATE_TTL },
	{ SIMULATE_LEAST_LOADED, SIMULATE_TTL },
	{ SIMULATE_DYNAMO, SIMULATE_TTL },
	{ SIMULATE_TWO_TIER, SIMULATE_TTL },
	{ SIMULATE_BALANCED, SIMULATE_TTL },
	{ SIMULATE_DYNAMO, SIMULATE_CAPACITY },
	{ SIMULATE_TWO_TIER, SIMULATE_CAPACITY },
	{ SIMULATE_BALANCED, SIMULATE_CAPACITY },
	{ SIMULATE_DYNAMO, SIMULATE_FEEDBACK },
	{ SIMULATE_TWO_TIER, SIMULATE_FEEDBACK },
	{ SIMULATE_BALANCED, SIMULATE_FEEDBACK },
	{ SIMULATE_DYNAMO, SIMULATE_ORACLE },
	{ SIMULATE_TWO_TIER, SIMULATE_ORACLE },
	{ SIMULATE_BALANCED, SIMULATE_ORACLE }
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), ORACLES = KINDS - 3 };

static struct simulate_options
options_of(int kind, uint32_t workers, uint64_t capacity)
{
	struct simulate_options o;

	simulate_defaults(&o);
	o.policy = kinds[kind].policy;
	o.index = kinds[kind].index;
	o.workers = workers;
	o.capacity_tokens = capacity;
	return o;
}

static void
region_of(struct kvr_options *region, uint32_t workers, uint32_t block)
{
	struct rng r = { 1 };

	ck_assert_int_eq(kvr_options_init(region, sizeof(*region)), KVR_OK);
	region->region_bytes = UINT64_C(16) << 20;
	region->block_size = block;
	region->max_workers = workers;
	region->lease_limit_ns = INT64_C(86400000000000) * 365;
	region->secret_kind = KVR_SECRET_GIVEN;
	rng_fill(&r, region->secret, sizeof(region->secret));
}

struct setup {
	struct kvr_options region;
	struct kvr *k; /* for the prompt */
	struct kvr_prompt *prompt;
	struct tokens tokens;
	struct simulation *s;
};

static void
begin(struct setup *u, const struct simulate_options *o, uint32_t block)
{
	memset(u, 0, sizeof(*u));
	region_of(&u->region, o->workers, block);
	if (o->check) /* which looks at every cell */
		u->region.region_bytes = 512 << 10;
	ck_assert_int_eq(kvr_new(&u->region, &u->k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(u->k, &u->prompt), KVR_OK);
	ck_assert_int_eq(simulate_new(o, &u->region, &u->s), KVR_OK);
}

static void
give(struct setup *u, const struct trace_request *q, int64_t now)
{
	ck_assert_int_eq(tokens_make(&u->tokens, q), 0);
	if (q->tokens > 0)
		ck_assert_int_eq(kvr_prompt_set_tokens(u->prompt, NULL,
		    u->tokens.tokens, q->tokens), KVR_OK);
	ck_assert_int_eq(simulate_request(u->s, u->prompt, q, now), KVR_OK);
}

static void
give_simple(struct setup *u, uint64_t tokens, uint64_t output,
    const uint64_t *ids, int64_t now)
{
	struct trace_request q = { .tokens = tokens, .output_length = output,
	    .n_ids = (tokens + 511) / 512, .ids = ids };

	give(u, &q, now);
}

static void
end(struct setup *u)
{
	simulate_free(u->s);
	kvr_prompt_free(u->prompt);
	kvr_free(u->k);
	tokens_free(&u->tokens);
}

/* ------------------------------------------------------------- by hand --- */

/* 15.1 ms, 2 blocks, 700 tokens; then two steps more: with every policy. */
START_TEST(one_request)
{
	static const uint64_t ids[] = { 1, 2 };
	struct simulate_options o = options_of(_i, 1, 4096);
	const struct simulate_totals *t;
	struct setup u;

	o.check = true;
	begin(&u, &o, 512);
	give_simple(&u, 700, 3, ids, 1000000);
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	t = simulate_totals(u.s);
	ck_assert_uint_eq(t->finished, 1);
	ck_assert_uint_eq(t->steps, 3);
	ck_assert_int_eq(simulate_first_tokens(u.s)[0], 50110000);
	ck_assert_int_eq(t->end, 1000000 + 50110000 + 2 * 15110000);
	ck_assert_uint_eq(t->token_ns, 2 * 15110000);
	ck_assert_uint_eq(t->later_tokens, 2);
	end(&u);
}
END_TEST

/*
 * Two at one instant share a step; a third, which comes when that step ends,
 * is in the next one; a fourth finds the engine idle and its prefix cached.
 */
START_TEST(instants)
{
	static const uint64_t a[] = { 1 }, b[] = { 2 }, c[] = { 1, 3 };
	int64_t first = 15000000 + 2 * 100000 + 2 * 5000 + 200 * 50000;
	int64_t second = 15000000 + 100000 + 5000 + 50 * 50000;
	int64_t third = 15000000 + 100000 + 5000 * 2 + 600 * 50000;
	struct simulate_options o = options_of(_i, 1, 0);
	const int64_t *times;
	struct setup u;

	o.check = true;
	begin(&u, &o, 512);
	give_simple(&u, 100, 1, a, 0);
	give_simple(&u, 100, 1, b, 0);
	give_simple(&u, 50, 1, a, first);
	give_simple(&u, 600, 1, c, first * 2);
	give_simple(&u, 600, 1, c, first * 20);
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	times = simulate_first_tokens(u.s);
	ck_assert_int_eq(times[0], second);
	ck_assert_int_eq(times[1], 15000000 + 100000 + 5000 * 2 + 88 * 50000);
	ck_assert_int_eq(times[2], first);
	ck_assert_int_eq(times[3], first);
	ck_assert_int_eq(times[4], third);
	ck_assert_uint_eq(simulate_totals(u.s)->hit_tokens, 512);
	end(&u);
}
END_TEST

/* What no engine could hold is refused, and leaves nothing behind. */
START_TEST(refused_and_empty)
{
	static const uint64_t ids[] = { 1, 2, 3, 4 };
	struct simulate_options o = options_of(_i, 2, 1024);
	const struct simulate_totals *t;
	struct setup u;

	o.check = true;
	begin(&u, &o, 512);
	give_simple(&u, 2000, 1, ids, 0);
	ck_assert_int_eq(simulate_check(u.s), KVR_OK);
	give_simple(&u, 0, 5, ids, 0);
	give_simple(&u, 600, 1, ids, 0);
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	ck_assert_int_eq(simulate_check(u.s), KVR_OK);
	t = simulate_totals(u.s);
	ck_assert_uint_eq(t->requests, 3);
	ck_assert_uint_eq(t->refused, 1);
	ck_assert_uint_eq(t->empty, 1);
	ck_assert_uint_eq(t->finished, 1);
	ck_assert_uint_eq(t->tokens, 600);
	end(&u);
}
END_TEST

/* ---------------------------------------------------------- the sample --- */

/* Through the whole trace in `f`, arrivals `speed` times as fast. */
static void
simulate_file(struct setup *u, FILE *f, bool ticks, int64_t speed)
{
	struct trace *t = trace_new(f, "trace");
	struct trace_request q;
	int result;

	while ((result = trace_next(t, &q)) == 1)
		give(u, &q, (ticks ? q.timestamp_ms : q.arrival_ms) *
		    (1000000 / speed));
	ck_assert_int_eq(result, 0);
	ck_assert_int_eq(simulate_drain(u->s), KVR_OK);
	trace_free(t);
}

static void
simulate_sample(struct setup *u, uint64_t requests, int64_t speed)
{
	struct sample_options sample;
	FILE *f = tmpfile();

	sample_defaults(&sample);
	sample.requests = requests;
	sample.duration_s = 60;
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(sample_write(f, &sample), 0);
	rewind(f);
	simulate_file(u, f, false, speed);
	fclose(f);
}

/* What engines and routers may be like, beside how a policy thinks of them. */
static void
make_plain(struct simulate_options *o)
{
	(void)o;
}

static void
make_mixed(struct simulate_options *o)
{
	o->n_capacities = 2;
	o->capacities[0] = 40000;
	o->capacities[1] = 90000;
	o->n_speeds = 3;
	o->speeds[0] = 1;
	o->speeds[1] = 2;
	o->speeds[2] = 4;
}

static void
make_other(struct simulate_options *o)
{
	o->engine_block = 200;
	o->eviction = ENGINE_EVICT_RANDOM;
	o->reset_ns = INT64_C(5000000000);
	o->event_delay_ns = INT64_C(1000000000);
	o->told = true;
}

static void
make_leaf(struct simulate_options *o)
{
	o->eviction = ENGINE_EVICT_LEAF;
	o->told = true;
	o->replicas = 2;
}

static void
make_exchange(struct simulate_options *o)
{
	o->replicas = 3;
	o->exchange = true;
	o->reset_ns = INT64_C(5000000000);
}

static void
make_lying(struct simulate_options *o)
{
	ck_assert_ptr_null(engine_report_parse("lying", &o->reports));
}

static void (*const fleets[])(struct simulate_options *) = {
	make_plain, make_mixed, make_other, make_leaf, make_exchange,
	make_lying
};
enum { FLEETS = sizeof(fleets) / sizeof(fleets[0]) };

/* Engines, requests, leases, loads: counted anew after every step. */
START_TEST(conserved)
{
	static const uint32_t blocks[] = { 512, 16, 700, 512, 512, 64 };
	struct simulate_options o = options_of(_i % KINDS, 3, 60000);
	const struct simulate_totals *t;
	struct setup u;

	o.check = true;
	fleets[_i / KINDS](&o);
	begin(&u, &o, blocks[_i / KINDS]);
	simulate_sample(&u, test_amount(60), 2);
	t = simulate_totals(u.s);
	ck_assert_int_eq(simulate_check(u.s), KVR_OK);
	ck_assert_uint_eq(t->finished + t->refused + t->empty, t->requests);
	ck_assert_uint_gt(t->finished, 0);
	ck_assert_uint_le(t->hit_tokens, t->tokens);
	ck_assert_uint_eq(t->predicted_tokens - t->over_tokens,
	    t->hit_tokens - t->under_tokens);
	end(&u);
}
END_TEST

static struct simulate_totals
totals_of(const struct simulate_options *o, int64_t *first)
{
	struct simulate_totals t;
	struct setup u;

	begin(&u, o, 512);
	simulate_sample(&u, 400, 1);
	t = *simulate_totals(u.s);
	*first = simulate_first_tokens(u.s)[t.finished / 2];
	end(&u);
	return t;
}

START_TEST(same_seed_same_result)
{
	struct simulate_options o = options_of(_i % KINDS, 4, 100000);
	struct simulate_totals a, b, c;
	int64_t x, y, z;

	fleets[_i / KINDS](&o);
	o.seed = 3;
	a = totals_of(&o, &x);
	b = totals_of(&o, &y);
	o.seed = 4;
	c = totals_of(&o, &z);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_int_eq(x, y);
	if (o.policy == SIMULATE_RANDOM)
		ck_assert_uint_ne(a.hit_tokens, c.hit_tokens);
	if (o.policy == SIMULATE_ROUND_ROBIN &&
	    o.eviction != ENGINE_EVICT_RANDOM)
		ck_assert_mem_eq(&a, &c, sizeof(a));
}
END_TEST

/* --------------------------------------------- unlike the usual engine --- */

/* Engines alike, however it is said. */
START_TEST(lists_of_one_kind)
{
	struct simulate_options o = options_of(_i, 4, 100000);
	struct simulate_totals a, b;
	int64_t x, y;

	a = totals_of(&o, &x);
	o.n_capacities = 2;
	o.capacities[0] = o.capacities[1] = 100000;
	o.n_speeds = 3;
	o.speeds[0] = o.speeds[1] = o.speeds[2] = 1;
	b = totals_of(&o, &y);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_int_eq(x, y);
}
END_TEST

START_TEST(faster_engines)
{
	struct simulate_options o = options_of(_i, 4, 0);
	int64_t x, y;

	(void)totals_of(&o, &x);
	o.n_speeds = 1;
	o.speeds[0] = 4;
	(void)totals_of(&o, &y);
	ck_assert_int_lt(y, x);
}
END_TEST

/* Each engine in its turn; nothing is hit that was there before. */
START_TEST(resets)
{
	struct simulate_options o = options_of(_i, 4, 0);
	struct simulate_totals a, b;
	int64_t x;

	a = totals_of(&o, &x);
	o.reset_ns = INT64_C(10000000000);
	b = totals_of(&o, &x);
	ck_assert_uint_eq(a.resets, 0);
	ck_assert_uint_gt(b.resets, 4 * 4);
	ck_assert_uint_lt(b.hit_tokens, a.hit_tokens);
}
END_TEST

/* What the engines hit are their blocks, whatever the index counts in. */
START_TEST(other_blocks)
{
	static const uint32_t blocks[] = { 16, 32, 2176 };
	struct simulate_options o = options_of(_i % KINDS, 2, 200000);
	const struct simulate_ride *rides;
	size_t n, i;
	struct setup u;

	o.engine_block = blocks[_i / KINDS];
	begin(&u, &o, 512);
	simulate_sample(&u, 200, 1);
	rides = simulate_rides(u.s, &n);
	ck_assert_uint_eq(n, 200);
	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(rides[i].hit % o.engine_block, 0);
		ck_assert_uint_lt(rides[i].hit, rides[i].tokens);
	}
	ck_assert_uint_gt(simulate_totals(u.s)->hit_tokens, 0);
	end(&u);
}
END_TEST

START_TEST(random_eviction)
{
	struct simulate_options o = options_of(_i, 4, 60000);
	struct simulate_totals a, b;
	int64_t x;

	a = totals_of(&o, &x);
	o.eviction = ENGINE_EVICT_RANDOM;
	b = totals_of(&o, &x);
	ck_assert_uint_ne(a.hit_tokens, b.hit_tokens);
}
END_TEST

/* What reaches the library is what the engines say. */
START_TEST(reports)
{
	static const struct {
		const char *text;
		uint64_t least;
		uint64_t most;
	} said[] = {
		{ "exact", 350, 400 }, /* none of a prompt without a block */
		{ "reported=0", 0, 0 },
		{ "reported=0.25", 50, 150 }
	};
	struct simulate_options o = options_of(_i, 4, 100000);
	struct kvr_stats t;
	struct setup u;
	size_t i;

	for (i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		ck_assert_ptr_null(engine_report_parse(said[i].text,
		    &o.reports));
		begin(&u, &o, 512);
		simulate_sample(&u, 400, 1);
		ck_assert_int_eq(simulate_index_stats(u.s, &t), KVR_OK);
		ck_assert_uint_ge(t.reports, said[i].least);
		ck_assert_uint_le(t.reports, said[i].most);
		ck_assert_uint_eq(t.reports + t.silent, 400);
		end(&u);
	}
}
END_TEST

/* ------------------------------------------------------------- the past --- */

/* Requests a second and a bit apart, so that no two share an instant. */
static struct simulate_totals
apart(const struct simulate_options *o)
{
	uint64_t ids[40], i, k;
	struct simulate_totals t;
	struct rng r = { 5 };
	struct setup u;

	begin(&u, o, 512);
	for (i = 0; i < 300; i++) {
		uint64_t chat = rng_between(&r, 1, 6);

		for (k = 0; k < 40; k++)
			ids[k] = chat * 1000 + k;
		give_simple(&u, rng_between(&r, 1, 40 * 512),
		    rng_between(&r, 1, 60), ids, (int64_t)i * 1000000007);
	}
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	t = *simulate_totals(u.s);
	end(&u);
	return t;
}

/* The twin of an engine is the engine, a nanosecond ago. */
START_TEST(just_past)
{
	struct simulate_options o = options_of(_i % 3 + ORACLES, 3, 30000);
	struct simulate_totals a, b;

	o.eviction = (enum engine_eviction)(_i / 3);
	o.reset_ns = INT64_C(7700000000);
	a = apart(&o);
	o.event_delay_ns = 1;
	b = apart(&o);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_uint_gt(a.hit_tokens, 0);
	ck_assert_uint_eq(a.over_tokens + a.under_tokens, 0);
}
END_TEST

/* Later events, worse predictions; events that never come predict nothing. */
START_TEST(long_past)
{
	struct simulate_options o = options_of(_i, 3, 30000);
	struct simulate_totals t;

	o.event_delay_ns = INT64_C(20000000000);
	t = apart(&o);
	ck_assert_uint_gt(t.over_tokens, 0);
	ck_assert_uint_gt(t.under_tokens, 0);
	o.event_delay_ns = INT64_C(1000000000000);
	t = apart(&o);
	ck_assert_uint_eq(t.predicted_tokens, 0);
	ck_assert_uint_gt(t.hit_tokens, 0);
}
END_TEST

/* ------------------------------------------------------------- replicas --- */

/*
 * Routers that tell each other everything decide as one: what one of them
 * predicts and books, all book.
 */
START_TEST(exchange_makes_one)
{
	struct simulate_options o = options_of(_i, 4, 100000);
	struct simulate_totals a, b;
	int64_t x, y;

	a = totals_of(&o, &x);
	o.replicas = 3;
	o.exchange = true;
	b = totals_of(&o, &y);
	ck_assert_mem_eq(&a, &b, sizeof(a));
	ck_assert_int_eq(x, y);
}
END_TEST

/* Alone each knows a third of what was sent, and hits less. */
START_TEST(no_exchange)
{
	struct simulate_options o = options_of(_i, 4, 0);
	struct simulate_totals a, b;
	int64_t x;

	a = totals_of(&o, &x);
	o.replicas = 3;
	b = totals_of(&o, &x);
	ck_assert_uint_eq(a.finished, b.finished);
	ck_assert_uint_lt(b.hit_tokens, a.hit_tokens);
}
END_TEST

/* -------------------------------------------------------------- samples --- */

START_TEST(samples)
{
	static const uint64_t ids[] = { 1, 2 };
	struct simulate_options o = options_of(_i, 2, 4096);
	const struct simulate_sample *at;
	const struct simulate_ride *rides;
	struct setup u;
	size_t n;

	o.sample_ns = 20000000;
	begin(&u, &o, 512);
	give_simple(&u, 700, 1, ids, 10000000);
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	/* 0, 20, 40, 60 ms; the request ran from 10 ms to 60.11 ms */
	at = simulate_samples(u.s, &n);
	ck_assert_uint_eq(n, 4);
	ck_assert_int_eq(at[3].at, 60000000);
	ck_assert_uint_eq(at[0].running[0] + at[0].running[1], 0);
	ck_assert_uint_eq(at[1].running[0] + at[1].running[1], 1);
	ck_assert_uint_eq(at[3].running[0] + at[3].running[1], 1);
	ck_assert_uint_eq(at[3].waiting[0] + at[3].waiting[1], 0);
	ck_assert_uint_eq(at[0].index_blocks, 0);
	if (o.policy >= SIMULATE_DYNAMO)
		ck_assert_uint_eq(at[1].index_blocks, 1);
	rides = simulate_rides(u.s, &n);
	ck_assert_uint_eq(n, 1);
	ck_assert_int_eq(rides[0].arrival, 10000000);
	ck_assert_int_eq(rides[0].first, 60110000);
	ck_assert_uint_eq(rides[0].tokens, 700);
	end(&u);
}
END_TEST

START_TEST(memory)
{
	struct simulate_options o = options_of(_i % KINDS, 3, 60000);
	struct kvr_options region;
	struct simulation *s = NULL;
	unsigned long n;
	int e = KVR_ENOMEM;

	fleets[_i / KINDS](&o);
	region_of(&region, 3, 512);
	for (n = 1; e != KVR_OK && n < 100; n++) {
		alloc_fail_at(n);
		e = simulate_new(&o, &region, &s);
		alloc_reset();
		if (e != KVR_OK)
			ck_assert_int_eq(e, KVR_ENOMEM);
	}
	ck_assert_int_eq(e, KVR_OK);
	ck_assert_uint_gt(n, 10);
	simulate_free(s);
}
END_TEST

/* --------------------------------------------------- a published trace --- */

static struct simulate_totals
conversation(struct simulate_options o, int64_t ttl_ns, double *p90)
{
	FILE *f = fopen(test_shared("traces/conversation_trace.jsonl"), "r");
	const int64_t *first;
	struct simulate_totals t;
	struct setup u;

	begin(&u, &o, 512);
	if (ttl_ns != u.region.ttl_ns) {
		simulate_free(u.s);
		u.region.ttl_ns = ttl_ns;
		ck_assert_int_eq(simulate_new(&o, &u.region, &u.s), KVR_OK);
	}
	simulate_file(&u, f, true, 1);
	ck_assert_int_eq(simulate_check(u.s), KVR_OK);
	t = *simulate_totals(u.s);
	first = simulate_first_tokens(u.s);
	*p90 = (double)first[(t.finished * 9 + 9) / 10 - 1] / 1e9;
	fclose(f);
	end(&u);
	return t;
}

/* One endless cache hits all that was ever there, whoever routes to it. */
START_TEST(endless)
{
	FILE *f = fopen(test_shared("traces/conversation_trace.jsonl"), "r");
	const struct simulate_totals *t, *in_turn;
	struct simulate_options o;
	struct simulation *s[KINDS];
	struct trace_request q;
	struct trace *trace = trace_new(f, "trace");
	struct setup u;
	char text[32];
	int i;

	o = options_of(0, 1, 0);
	begin(&u, &o, 512);
	u.region.ttl_ns = KVR_TTL_ENDLESS;
	for (i = 0; i < KINDS; i++) {
		o = options_of(i, 1, 0);
		ck_assert_int_eq(simulate_new(&o, &u.region, &s[i]), KVR_OK);
	}
	while (trace_next(trace, &q) == 1) {
		give(&u, &q, q.timestamp_ms * 1000000);
		for (i = 0; i < KINDS; i++)
			ck_assert_int_eq(simulate_request(s[i], u.prompt, &q,
			    q.timestamp_ms * 1000000), KVR_OK);
	}
	ck_assert_int_eq(simulate_drain(u.s), KVR_OK);
	in_turn = simulate_totals(u.s);
	snprintf(text, sizeof(text), "%.5f", (double)in_turn->hit_tokens /
	    (double)in_turn->tokens);
	ck_assert_str_eq(text, "0.37338");
	for (i = 0; i < KINDS; i++) {
		ck_assert_int_eq(simulate_drain(s[i]), KVR_OK);
		t = simulate_totals(s[i]);
		ck_assert_uint_eq(t->finished, 12031);
		ck_assert_uint_eq(t->hit_tokens, in_turn->hit_tokens);
		ck_assert_uint_eq(t->token_ns, in_turn->token_ns);
		ck_assert_int_eq(t->end, in_turn->end);
		simulate_free(s[i]);
	}
	trace_free(trace);
	fclose(f);
	end(&u);
}
END_TEST

/* Figures of another simulator of this model: a point of hits, 5 % of time. */
static const struct {
	int kind;
	double hits;
	double p90;
} known[] = {
	{ 0, 8.0, 2.17 },
	{ 3, 14.1, 1.73 },
	{ ORACLES, 17.8, 1.68 },
	{ 5, 19.4, 1.50 },
	{ 11, 25.2, 1.43 },
	{ 8, 25.5, 1.42 },
	{ ORACLES + 2, 25.5, 1.42 }
};

START_TEST(known_points)
{
	double p90, hits;
	struct simulate_totals t = conversation(options_of(known[_i].kind, 8,
	    1000000), INT64_C(120000000000), &p90);

	hits = (double)t.hit_tokens / (double)t.tokens * 100;
	ck_assert_double_eq_tol(hits, known[_i].hits, 1);
	ck_assert_double_eq_tol(p90, known[_i].p90, known[_i].p90 * 0.05);
}
END_TEST

/* Where nobody waits for memory the oracle sees what will be hit. */
START_TEST(oracle_is_right)
{
	double p90;
	struct simulate_totals t = conversation(options_of(_i, 8, 1000000), 0,
	    &p90);

	ck_assert_uint_eq(t.waited, 0);
	ck_assert_uint_eq(t.over_tokens + t.under_tokens, 0);
	ck_assert_uint_eq(t.predicted_tokens, t.hit_tokens);
	ck_assert_uint_gt(t.hit_tokens, 0);
}
END_TEST

Suite *suite_simulate(void);

Suite *
suite_simulate(void)
{
	Suite *s = suite_create("simulate");
	TCase *c = tcase_create("simulate");

	tcase_set_timeout(c, 60);
	tcase_add_loop_test(c, one_request, 0, KINDS);
	tcase_add_loop_test(c, instants, 0, KINDS);
	tcase_add_loop_test(c, refused_and_empty, 0, KINDS);
	tcase_add_loop_test(c, conserved, 0, FLEETS * KINDS);
	tcase_add_loop_test(c, same_seed_same_result, 0, FLEETS * KINDS);
	tcase_add_loop_test(c, memory, 0, FLEETS * KINDS);
	tcase_add_loop_test(c, lists_of_one_kind, 0, KINDS);
	tcase_add_loop_test(c, faster_engines, 0, KINDS);
	tcase_add_loop_test(c, resets, 0, KINDS);
	tcase_add_loop_test(c, other_blocks, 0, 3 * KINDS);
	tcase_add_loop_test(c, random_eviction, 0, KINDS);
	tcase_add_loop_test(c, reports, 3, KINDS);
	tcase_add_loop_test(c, just_past, 0, 3 * 3);
	tcase_add_loop_test(c, long_past, ORACLES, KINDS);
	tcase_add_loop_test(c, exchange_makes_one, 0, KINDS);
	tcase_add_loop_test(c, no_exchange, 3, ORACLES);
	tcase_add_loop_test(c, samples, 0, KINDS);
	tcase_add_test(c, endless);
	tcase_add_loop_test(c, known_points, 0,
	    (int)(sizeof(known) / sizeof(known[0])));
	tcase_add_loop_test(c, oracle_is_right, ORACLES, KINDS);
	suite_add_tcase(s, c);
	return s;
}
