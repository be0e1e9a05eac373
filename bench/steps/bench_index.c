/* SPDX-License-Identifier: BSD-2-Clause */
/* bench_index.c - see bench_index.h. */
#include "bench_index.h"

#include "args.h"
#include "rng.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND_BIT = 40 }; /* from here on, ids say which replay they are of */

static void
bench_must(int e, const char *what)
{
	if (e != KVR_OK)
		errx(ARGS_FAILED, "%s: %s", what, kvr_strerror(e));
}

/* The facts of each worker, and the policy. */
static void
furnish(struct world *w, const struct world_options *o)
{
	struct kvr_worker facts;
	struct kvr_policy policy;
	uint32_t i;

	policy.size = sizeof(policy);
	bench_must(kvr_policy_get(w->k, &policy), "kvr_policy_get");
	policy.cost = o->cost;
	bench_must(kvr_policy_set(w->k, &policy), "kvr_policy_set");
	facts.size = sizeof(facts);
	for (i = 0; i < w->workers; i++) {
		bench_must(kvr_worker_get(w->k, fleet_id(w->fleet, i), &facts),
		    "kvr_worker_get");
		facts.retain = o->retain;
		facts.capacity_tokens = o->capacity_tokens;
		bench_must(kvr_worker_set(w->k, fleet_id(w->fleet, i), &facts),
		    "kvr_worker_set");
	}
}

int
world_open(struct world *w, const struct world_options *options)
{
	uint32_t workers = options->workers;
	int e;

	memset(w, 0, sizeof(*w));
	w->options = options->region;
	w->options.max_workers = workers;
	w->workers = workers;
	e = kvr_new(&w->options, &w->k);
	if (e == KVR_ETOOSMALL)
		return e;
	bench_must(e, "kvr_new");
	bench_must(fleet_new(w->k, workers, &w->fleet), "kvr_worker_add");
	furnish(w, options);
	bench_must(kvr_prompt_new(w->k, &w->prompt), "kvr_prompt_new");
	w->half = half_new(workers);
	w->overlaps = calloc(workers, sizeof(*w->overlaps));
	w->numbered = calloc(workers, sizeof(*w->numbered));
	w->ids = calloc(TRACE_IDS_MAX, sizeof(*w->ids));
	if (w->half == NULL || w->overlaps == NULL || w->numbered == NULL ||
	    w->ids == NULL)
		err(ARGS_FAILED, NULL);
	return KVR_OK;
}

void
world_close(struct world *w)
{
	kvr_prompt_free(w->prompt);
	kvr_free(w->k);
	fleet_free(w->fleet);
	half_free(w->half);
	tokens_free(&w->tokens);
	free(w->overlaps);
	free(w->numbered);
	free(w->ids);
}

void
world_go_on(struct world *w, int64_t span_ns)
{
	w->round++;
	if (w->base > INT64_MAX / 2 - span_ns)
		errx(ARGS_FAILED, "too many trials of so long a trace");
	w->base += span_ns + 1;
	half_free(w->half);
	w->half = half_new(w->workers);
	if (w->half == NULL)
		err(ARGS_FAILED, NULL);
}

void
world_restart(struct world *w, int64_t span_ns)
{
	bench_must(kvr_clear(w->k), "kvr_clear");
	world_go_on(w, span_ns);
	w->round = 0;
}

void
world_load(struct world *w, bool loaded)
{
	struct rng random = { 1 };
	struct kvr_load load;
	uint32_t i;

	memset(&load, 0, sizeof(load));
	load.size = sizeof(load);
	for (i = 0; i < w->workers; i++) {
		if (loaded) {
			load.prefill_tokens = rng_between(&random, 0, 60000);
			load.active_blocks = rng_between(&random, 1, 20000);
			load.requests = rng_between(&random, 1, 64);
		}
		bench_must(kvr_worker_set_load(w->k, fleet_id(w->fleet, i), 0,
		    &load), "kvr_worker_set_load");
	}
}

void
world_make(struct world *w, const struct trace_request *r)
{
	struct trace_request own = *r;
	size_t i;

	if (w->round > 0) {
		for (i = 0; i < r->n_ids; i++)
			w->ids[i] = r->ids[i] ^ (w->round << ROUND_BIT);
		own.ids = w->ids;
	}
	if (tokens_make(&w->tokens, &own) != 0)
		err(ARGS_FAILED, NULL);
}

void
world_expire(struct world *w, int64_t now)
{
	bench_must(kvr_expire(w->k, now, UINT32_MAX, NULL), "kvr_expire");
}

void
world_hash(struct world *w, const struct trace_request *r)
{
	bench_must(kvr_prompt_set_tokens(w->prompt, NULL, w->tokens.tokens,
	    r->tokens), "kvr_prompt_set_tokens");
}

void
world_match(struct world *w, int64_t now)
{
	bench_must(kvr_match(w->k, w->prompt, now, w->overlaps,
	    sizeof(*w->overlaps), w->workers, &w->n_overlaps), "kvr_match");
}

uint64_t
world_choose(struct world *w, const struct trace_request *r)
{
	struct half_choice c;
	size_t i;

	for (i = 0; i < w->n_overlaps; i++) {
		w->numbered[i].worker = fleet_number(w->fleet,
		    w->overlaps[i].worker);
		w->numbered[i].blocks = w->overlaps[i].blocks;
	}
	c = half_choose(w->half, w->numbered, w->n_overlaps, r->tokens,
	    w->options.block_size);
	return fleet_id(w->fleet, c.worker);
}

void
world_observe(struct world *w, uint64_t worker, int64_t now)
{
	bench_must(kvr_observe(w->k, w->prompt, worker, now, 0, NULL),
	    "kvr_observe");
}
