/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulated.h - what the suites of simulations share: every policy with every
 * index, fleets of every sort, and the way through a trace.
 */
#ifndef KVR_SIMULATED_H
#define KVR_SIMULATED_H

#include "simulate.h"
#include "test.h"
#include "tokens.h"
#include "trace.h"

#include <stdio.h>

struct kind {
	enum simulate_policy policy;
	enum simulate_index index;
};
enum { KINDS = 15, ORACLES = KINDS - 3, FLEETS = 6 };
/* Oracles last. */
extern const struct kind kinds[KINDS];
struct simulate_options options_of(int kind, uint32_t workers,
    uint64_t capacity);
/* What engines and routers may be like, beside how a policy thinks of them. */
extern void (*const fleets[FLEETS])(struct simulate_options *);

void region_of(struct kvr_options *region, uint32_t workers, uint32_t block);

struct setup {
	struct kvr_options region;
	struct kvr *k; /* for the prompt */
	struct kvr_prompt *prompt;
	struct tokens tokens;
	struct simulation *s;
};
void begin(struct setup *u, const struct simulate_options *o, uint32_t block);
void give(struct setup *u, const struct trace_request *q, int64_t now);
void give_simple(struct setup *u, uint64_t tokens, uint64_t output,
    const uint64_t *ids, int64_t now);
void end(struct setup *u);

/* Through the whole trace in `f`, arrivals `speed` times as fast. */
void simulate_file(struct setup *u, FILE *f, bool ticks, int64_t speed);
void simulate_sample(struct setup *u, uint64_t requests, int64_t speed);
/* Of 400 requests of the sample, and one of their times to first token. */
struct simulate_totals totals_of(const struct simulate_options *o,
    int64_t *first);

#endif
