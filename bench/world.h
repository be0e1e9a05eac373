/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world.h - a region, its workers and the policy `half`: what is measured.
 *
 * Every replay of a load makes the same decisions, whatever its region, as
 * long as nothing has to be evicted.
 */
#ifndef KVROUTE_WORLD_H
#define KVROUTE_WORLD_H

#include "fleet.h"
#include "half.h"
#include "load.h"
#include "tokens.h"

#include <kvroute.h>

#include <stdbool.h>
#include <stdint.h>

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
	int64_t base;  /* the time at which the replay began */
};

/* Gives KVR_ETOOSMALL; other errors end the program. */
int world_open(struct world *w, const struct kvr_options *options,
    uint32_t workers);
void world_close(struct world *w);
/* Forgets all but the clock: another replay may begin, after `span_ns`. */
void world_restart(struct world *w, int64_t span_ns);
/* Gives every worker a load of its own, until the next restart. */
void world_load(struct world *w);

/* The steps of a request, in this order; each does one thing. */
void world_make(struct world *w, const struct trace_request *r);
void world_expire(struct world *w, int64_t now);
void world_hash(struct world *w, const struct trace_request *r);
void world_match(struct world *w, int64_t now);
uint64_t world_choose(struct world *w, const struct trace_request *r);
void world_observe(struct world *w, uint64_t worker, int64_t now);

#endif
