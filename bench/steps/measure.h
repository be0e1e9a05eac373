/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * measure.h - what each step of a request costs, in nanoseconds.
 *
 * A load is replayed four times in each trial: twice with only the cost
 * function timed, which also maps the memory; once by leases (lives.h); and
 * once like this:
 *
 *   make tokens | expire | hash | match | choose | observe | floor
 *   not timed     `----- timed ------'  not timed  `-- timed --'
 *
 * Making tokens and the floor leave the prompt, not the index, in the cache, as
 * in a router with other work to do between two requests. The cost of reading
 * the clock is measured and subtracted.
 *
 * Every replay does the same, so any extra time of a request in one trial came
 * from outside: for each step of each request the least of the trials counts.
 *
 * Workers that go by TTL begin each replay empty; 120 s later that makes no
 * difference. Those that go by capacity or by feedback would take an hour to
 * fill up. So for these a trial begins with one more replay, not timed, by
 * leases that end with reports, and the others forget nothing of the ones
 * before:
 *
 *   ttl       | choose     | choose, busy     | step by step     | lives
 *   others    | lives choose choose, busy step by step lives
 *             ` empty, forgetting all
 */
#ifndef KVROUTE_MEASURE_H
#define KVROUTE_MEASURE_H

#include "bench_index.h"

#include <kvroute.h>

#include <stdint.h>

enum { MEASURE_P50, MEASURE_P99, MEASURE_P999, MEASURE_RANKS };

struct measure {
	/* Means over the requests: */
	double floor_ns;
	double hash_ns;
	double match_ns;
	double observe_ns;
	double expire_ns;
	double route_ns; /* the cost function over all workers, alone */
	double route_busy_ns; /* the same with a load on each of them */
	double decide_ns; /* match and choice at once, before leases */
	double lease_ns;  /* open_on, commit, first_token, finish */
	double index_ns;  /* expire, match and observe */
	/* Percentiles over requests, each in its best trial: */
	double total[MEASURE_RANKS];
	double index[MEASURE_RANKS]; /* without hashing */
	/* In one replay, step by step: */
	uint64_t evicted_region; /* for lack of room */
	uint64_t truncated;
	uint64_t expired;
	uint64_t evicted_capacity;
};

struct measuring;

/* A region of its own; several may be measured in turns. */
struct measuring *measure_new(const struct load *l,
    const struct world_options *options);
void measure_trial(struct measuring *m);
/* The results of all trials; frees. */
void measure_end(struct measuring *m, struct measure *out);

/* The cost of reading the clock: the median time between two readings. */
int64_t measure_clock_ns(void);
/* Sorts; percentiles: the least value not below the given share of them. */
void measure_ranks(uint32_t *values, size_t n, double *out);

#endif
