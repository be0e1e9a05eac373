/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_index.h - what is measured: a region, its workers and the policy
 * `half`.
 *
 * Every replay of a load makes the same decisions, whatever its region, as
 * long as nothing has to be evicted.
 *
 * Replays may follow each other in one region, whose workers then still hold
 * the prompts of earlier ones. These must never match, so each replay has
 * prompts of its own: the hash ids of replay n are the trace's with n in bits
 * that the trace does not use.
 */
#ifndef KVROUTE_BENCH_INDEX_H
#define KVROUTE_BENCH_INDEX_H

#include "fleet.h"
#include "half.h"
#include "load.h"
#include "tokens.h"

#include <kvroute.h>

#include <stdbool.h>
#include <stdint.h>

struct world_options {
	struct kvr_options region;
	uint32_t workers;
	uint32_t retain;          /* enum kvr_retain, of every worker */
	uint64_t capacity_tokens; /* of each; 0: unknown */
	uint32_t cost;            /* enum kvr_cost */
};

struct world {
	struct kvr_options options;
	struct kvr *k;
	struct fleet *fleet;
	struct half *half;
	struct kvr_prompt *prompt;
	struct tokens tokens;
	struct kvr_overlap *overlaps;  /* [workers] */
	struct half_overlap *numbered; /* [workers] */
	size_t n_overlaps;
	uint32_t workers;
	int64_t base;   /* the time at which the replay began */
	uint64_t round; /* replays since the region was empty */
	uint64_t *ids;  /* of a request of this replay */
};

/* Returns KVR_ETOOSMALL; other errors end the program. */
int world_open(struct world *w, const struct world_options *options);
void world_close(struct world *w);
/* Forgets all but the clock: another replay may begin, after `span_ns`. */
void world_restart(struct world *w, int64_t span_ns);
/* Forgets nothing; the next replay has prompts of its own. */
void world_go_on(struct world *w, int64_t span_ns);
/* Sets a load on every worker, each another, until a restart; or clears it. */
void world_load(struct world *w, bool loaded);

/* The steps of a request, in this order; each does one thing. */
void world_make(struct world *w, const struct trace_request *r);
void world_expire(struct world *w, int64_t now);
void world_hash(struct world *w, const struct trace_request *r);
void world_match(struct world *w, int64_t now);
uint64_t world_choose(struct world *w, const struct trace_request *r);
void world_observe(struct world *w, uint64_t worker, int64_t now);

#endif
