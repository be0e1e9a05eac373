/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate.h - one policy before a fleet of modelled engines.
 *
 * Requests are given one by one in the order of their arrival; before each,
 * everything that the engines do until then happens. What the policy may know
 * is what a router knows: its own decisions, and that a first token came, that
 * the answer grew, that it ended. Only the oracle sees into the engines.
 *
 * Several simulations can be fed the same prompts side by side.
 */
#ifndef KVROUTE_SIMULATE_H
#define KVROUTE_SIMULATE_H

#include <kvroute.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct trace_request;

enum simulate_policy {
	SIMULATE_ROUND_ROBIN,  /* worker after worker */
	SIMULATE_RANDOM,
	SIMULATE_LEAST_LOADED, /* fewest requests, then least to prefill */
	SIMULATE_DYNAMO,       /* KVR_COST_DYNAMO */
	SIMULATE_TWO_TIER,     /* KVR_COST_TWO_TIER */
	SIMULATE_POLICIES
};
extern const char *const simulate_policy_names[SIMULATE_POLICIES];

/* What the last two know of prefixes. */
enum simulate_index {
	SIMULATE_TTL,   /* the library's index, with the region's TTL */
	SIMULATE_ORACLE /* what the engines hold, without delay */
};

struct simulate_options {
	enum simulate_policy policy;
	enum simulate_index index;
	uint32_t workers;
	uint64_t capacity_tokens; /* of each; 0: endless */
	uint64_t seed;            /* of random, and of ties by load */
	int64_t sample_ns;        /* between samples; 0: none */
	bool check;               /* after each step: KVR_ECORRUPT */
};

struct simulate_totals {
	uint64_t requests;
	uint64_t refused;          /* of them: too large for an engine */
	uint64_t empty;            /* of them: without tokens, no engine's */
	uint64_t tokens;           /* of the prompts that were served */
	uint64_t hit_tokens;       /* of them, really */
	uint64_t predicted_tokens; /* of them, as the decisions said */
	uint64_t error_tokens;     /* sum of |predicted - hit| */
	uint64_t finished;
	uint64_t waited;           /* for memory, after they arrived */
	uint64_t steps;            /* of all engines */
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
/*
 * Times to the first token in nanoseconds, ascending, of the totals' finished
 * requests; valid until the next call. NULL: no memory, or there are none.
 */
const int64_t *simulate_first_tokens(struct simulation *s);

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
