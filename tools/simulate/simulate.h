/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate.h - one policy before a fleet of modelled engines.
 *
 * Requests are given one by one in the order of their arrival; before each,
 * everything that the engines do until then happens. What the policy may know
 * is what a router knows: its own decisions, that a first token came, that the
 * answer grew, that it ended and what the engine then said of its cache. Only
 * the oracle sees into the engines.
 *
 *   requests --> routers --> engines     one router, or several that each get
 *                  ^  decisions   |      a share of the requests
 *                  `---- events --'
 *
 * Several simulations can be fed the same prompts side by side.
 */
#ifndef KVROUTE_SIMULATE_H
#define KVROUTE_SIMULATE_H

#include "engine_model.h"
#include "engine_report.h"

#include <kvroute.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_request;

enum simulate_policy {
	SIMULATE_ROUND_ROBIN,  /* worker after worker */
	SIMULATE_RANDOM,
	SIMULATE_LEAST_LOADED, /* fewest requests, then least to prefill */
	/* from here on the library's */
	SIMULATE_DYNAMO,       /* KVR_COST_DYNAMO */
	SIMULATE_TWO_TIER,     /* KVR_COST_TWO_TIER */
	SIMULATE_BALANCED,     /* KVR_COST_BALANCED */
	SIMULATE_POLICIES
};
extern const char *const simulate_policy_names[SIMULATE_POLICIES];

/* What the library's know of prefixes: its own index, but for the last. */
enum simulate_index {
	SIMULATE_TTL,      /* with the region's TTL */
	SIMULATE_CAPACITY, /* told the engines' capacities */
	SIMULATE_FEEDBACK, /* told nothing: by TTL until reports come */
	SIMULATE_ORACLE,   /* what the engines hold, or held a while ago */
	SIMULATE_INDEXES
};
extern const char *const simulate_index_names[SIMULATE_INDEXES];

enum { SIMULATE_KINDS = 16 }; /* of engines in a mixed fleet, at most */

/* simulate_defaults writes the defaults. Worker w is of kind w % kinds. */
struct simulate_options {
	enum simulate_policy policy;
	enum simulate_index index;
	uint32_t workers;
	uint64_t capacity_tokens; /* of each; 0: endless */
	uint32_t n_capacities;    /* above 0: these instead */
	uint64_t capacities[SIMULATE_KINDS];
	uint32_t n_speeds;        /* above 0: how fast engines are; else 1 */
	double speeds[SIMULATE_KINDS];
	uint32_t engine_block;    /* tokens of theirs; 0: ENGINE_BLOCK */
	enum engine_eviction eviction;
	bool told;                /* the index is told these two */
	bool common_rate;         /* balanced: one prefill rate for all */
	int64_t reset_ns;         /* each loses its cache so often; 0: never */
	struct engine_report_idea reports; /* what engines say at the end */
	const char *reports_text; /* the same to read; NULL: the truth */
	int64_t event_delay_ns;   /* the oracle sees the past */
	uint32_t replicas;        /* routers that share the requests; 0: 1 */
	bool exchange;            /* ... and tell each other at once */
	uint64_t seed;            /* of whatever falls by lot */
	int64_t sample_ns;        /* between samples, at least; 0: none */
	bool check;               /* after each step: KVR_ECORRUPT */
};
void simulate_defaults(struct simulate_options *o);
uint64_t simulate_capacity(const struct simulate_options *o, uint32_t worker);
double simulate_speed(const struct simulate_options *o, uint32_t worker);

struct simulate_totals {
	uint64_t requests;
	uint64_t refused;          /* of them: too large for an engine */
	uint64_t empty;            /* of them: without tokens, no engine's */
	uint64_t tokens;           /* of the prompts that were served */
	uint64_t hit_tokens;       /* of them, really */
	uint64_t predicted_tokens; /* of them, as the decisions said */
	uint64_t over_tokens;      /* predicted and not hit, ... */
	uint64_t under_tokens;     /* ... hit and not predicted, by request */
	uint64_t finished;
	uint64_t waited;           /* for memory, after they arrived */
	uint64_t steps;            /* of all engines */
	uint64_t resets;           /* of all engines */
	uint64_t token_ns;         /* from the first token to the last, ... */
	uint64_t later_tokens;     /* ... and the tokens made in that time */
	int64_t end;               /* when the last one finished */
};

struct simulation;

/* All of these give an enum kvr_error. */
int simulate_new(const struct simulate_options *options,
    const struct kvr_options *region, struct simulation **out);
void simulate_free(struct simulation *s);
/* `p` is the prompt of `q` already; `now` never goes back. */
int simulate_request(struct simulation *s, struct kvr_prompt *p,
    const struct trace_request *q, int64_t now);
/* No more requests: until the engines have nothing to do. */
int simulate_drain(struct simulation *s);
/* Nothing is lost: engines, requests, leases and loads say the same. */
int simulate_check(const struct simulation *s);

const struct simulate_options *simulate_options(const struct simulation *s);
const struct simulate_totals *simulate_totals(const struct simulation *s);
/* Sums over the regions of all routers; all 0 if the policy needs none. */
int simulate_index_stats(const struct simulation *s, struct kvr_stats *sum);
/*
 * Times to the first token in nanoseconds, ascending, of the totals' finished
 * requests; valid until the next call. NULL: no memory, or there are none.
 */
const int64_t *simulate_first_tokens(struct simulation *s);

enum { SIMULATE_SAMPLES_MAX = 4096 }; /* then the interval doubles */

/* A moment of the simulation. */
struct simulate_sample {
	int64_t at;
	const uint32_t *running; /* [workers] requests */
	const uint32_t *waiting; /* [workers] for memory */
	uint64_t index_entries;  /* of all routers, as all of these */
	uint64_t index_blocks;   /* (block, worker) pairs */
	uint64_t index_bytes;    /* in use, of the region's */
};
/* In the order of time; valid until more time passes. */
const struct simulate_sample *simulate_samples(const struct simulation *s,
    size_t *n);

/* A request that was served, in the order of arrival. */
struct simulate_ride {
	int64_t arrival;
	int64_t first; /* token; -1: not yet */
	uint64_t tokens;
	uint64_t predicted; /* of them, to be cached */
	uint64_t hit;       /* of them, really */
	uint32_t worker;
};
/* Valid until the next call; NULL: no memory. */
const struct simulate_ride *simulate_rides(struct simulation *s, size_t *n);

#endif
