/* SPDX-License-Identifier: BSD-2-Clause */
/* simulated.c - see simulated.h. */
#include "simulated.h"

#include <string.h>

#include "alloc.h"
#include "rng.h"
#include "sample.h"

const struct kind kinds[KINDS] = {
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

struct simulate_options
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

void
region_of(struct kvr_options *region, uint32_t workers, uint32_t block)
{
	struct rng r = { 1 };

	ck_assert_int_eq(kvr_options_init(region, sizeof(*region)), KVR_OK);
	region->region_bytes = UINT64_C(2) << 20;
	region->block_size = block;
	region->max_workers = workers;
	region->lease_limit_ns = INT64_C(86400000000000) * 365;
	region->secret_bytes = KVR_SECRET_MIN;
	rng_fill(&r, region->secret, sizeof(region->secret));
}

unsigned long
made_without_memory(const struct simulate_options *o,
    const struct kvr_options *region, unsigned long most)
{
	struct simulation *s = NULL;
	unsigned long n;
	int e = KVR_ENOMEM;

	for (n = 1; e != KVR_OK && n < most; n++) {
		alloc_fail_at(n);
		e = simulate_new(o, region, &s);
		alloc_reset();
		if (e != KVR_OK)
			ck_assert_int_eq(e, KVR_ENOMEM);
	}
	ck_assert_int_eq(e, KVR_OK);
	simulate_free(s);
	return n;
}

void
begin(struct setup *u, const struct simulate_options *o, uint32_t block)
{
	memset(u, 0, sizeof(*u));
	region_of(&u->region, o->workers, block);
	if (o->check) /* reads every cell */
		u->region.region_bytes = 512 << 10;
	ck_assert_int_eq(kvr_new(&u->region, &u->k), KVR_OK);
	ck_assert_int_eq(kvr_prompt_new(u->k, &u->prompt), KVR_OK);
	ck_assert_int_eq(simulate_new(o, &u->region, &u->s), KVR_OK);
}

void
give(struct setup *u, const struct trace_request *q, int64_t now)
{
	struct trace_request seen = trace_seen(q);

	ck_assert_int_eq(tokens_make(&u->tokens, &seen), 0);
	if (seen.tokens > 0)
		ck_assert_int_eq(kvr_prompt_set_tokens(u->prompt, NULL,
		    u->tokens.tokens, seen.tokens), KVR_OK);
	ck_assert_int_eq(simulate_request(u->s, u->prompt, q, now), KVR_OK);
}

void
give_simple(struct setup *u, uint64_t tokens, uint64_t output,
    const uint64_t *ids, int64_t now)
{
	struct trace_request q = { .tokens = tokens, .output_length = output,
	    .n_ids = (tokens + 511) / 512, .ids = ids };

	give(u, &q, now);
}

void
end(struct setup *u)
{
	struct kvr_stats t;

	ck_assert_int_eq(simulate_index_stats(u->s, &t), KVR_OK);
	ck_assert_uint_eq(t.evicted_region, 0);
	simulate_free(u->s);
	kvr_prompt_free(u->prompt);
	kvr_free(u->k);
	tokens_free(&u->tokens);
}

void
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

void
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

struct simulate_totals
totals_of(const struct simulate_options *o, int64_t *first)
{
	struct simulate_totals t;
	struct setup u;

	begin(&u, o, 512);
	simulate_sample(&u, 150, 1);
	t = *simulate_totals(u.s);
	*first = simulate_first_tokens(u.s)[t.finished / 2];
	end(&u);
	return t;
}

/* --------------------------------------------------------------- fleets --- */

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
	o->exchange = SIMULATE_ALL;
	o->reset_ns = INT64_C(5000000000);
}

static void
make_lying(struct simulate_options *o)
{
	ck_assert_ptr_null(engine_report_parse("lying", &o->reports));
}

void (*const fleets[FLEETS])(struct simulate_options *) = {
	make_plain, make_mixed, make_other, make_leaf, make_exchange,
	make_lying
};
