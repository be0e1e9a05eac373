/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * measure.h - what each step of a request costs, in nanoseconds.
 *
 * A load is replayed twice in each trial: once with the cost function alone
 * timed, which also maps the memory, and once like this:
 *
 *   make tokens | expire | hash | match | choose | observe | floor
 *   not timed     `----- timed ------'  not timed  `-- timed --'
 *
 * Making tokens and the floor leave the prompt, not the index, in the cache:
 * what a router with other work to do between two requests also finds. What
 * reading the clock costs is measured and taken off.
 *
 * Every replay does the same, so whatever a request took longer in one trial
 * than in another came from outside: for each step of each request the least
 * of the trials counts.
 */
#ifndef KVROUTE_MEASURE_H
#define KVROUTE_MEASURE_H

#include "load.h"

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
	double route_ns; /* the cost function over all workers, apart */
	double route_busy_ns; /* the same with a load on each of them */
	/* Percentiles of what requests took, each in its best trial: */
	double total[MEASURE_RANKS];
	double index[MEASURE_RANKS]; /* without hashing */
	uint64_t evicted;   /* for lack of room, in one replay */
	uint64_t truncated;
};

void measure_load(const struct load *l, const struct kvr_options *options,
    uint32_t workers, uint32_t trials, struct measure *out);

/* What reading the clock takes: the median of the time between two readings. */
int64_t measure_clock_ns(void);
/* Sorts; percentiles: the least value not below the given share of them. */
void measure_ranks(uint32_t *values, size_t n, double *out);

#endif
