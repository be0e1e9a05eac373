/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulated.h - shared by the suites of simulations: all policies and indexes,
 * various fleets, and helpers to run a trace.
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
/* Oracles are last. */
extern const struct kind kinds[KINDS];
struct simulate_options options_of(int kind, uint32_t workers,
    uint64_t capacity);
/* Variants of engines and routers. */
extern void (*const fleets[FLEETS])(struct simulate_options *);

void region_of(struct kvr_options *region, uint32_t workers, uint32_t block);
/*
 * Makes a simulation with its first allocation failing, then its second, and so
 * on, which is KVR_ENOMEM each time, until it is made; returns the number of
 * times, which must be below `most`.
 */
unsigned long made_without_memory(const struct simulate_options *o,
    const struct kvr_options *region, unsigned long most);

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

/* Runs the whole trace in `f`, with arrivals `speed` times as fast. */
void simulate_file(struct setup *u, FILE *f, bool ticks, int64_t speed);
void simulate_sample(struct setup *u, uint64_t requests, int64_t speed);
/* Totals of 150 requests of the sample, and one of their TTFTs. */
struct simulate_totals totals_of(const struct simulate_options *o,
    int64_t *first);

#endif
