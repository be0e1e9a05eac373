/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * histogram.h - counts times by buckets.
 *
 *   time --> histogram_bucket --> proxy's atomics --> struct histogram
 *                                                       (a copy)
 *                          JSON: count, sum, quantiles <--'--> Prometheus
 *
 * The bounds are fixed, so that counts of processes, of upstreams and of
 * machines can be added up. They are in steps of about 1, 2, 5 over the times
 * that occur with language models. A bucket counts times above the bound before
 * it, up to its own; the last one has no bound.
 */
#ifndef KVROUTE_HISTOGRAM_H
#define KVROUTE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum histogram_kind {
	HISTOGRAM_FIRST,   /* from a request to its first token, streams only */
	HISTOGRAM_TOKEN,   /* for each further token */
	HISTOGRAM_REQUEST, /* from a request to the end of its response */
	HISTOGRAM_QUEUE,   /* a request's wait for a worker, unless it is 0 */
	HISTOGRAM_MODULE,  /* the module's time on a request */
	HISTOGRAM_TURN,    /* the module's time in a turn of the proxy's loop */
	HISTOGRAMS
};

enum { HISTOGRAM_BUCKETS = 18 }; /* at most, with the last one */

/* A copy of one kind; the sum is in nanoseconds. */
struct histogram {
	uint64_t sum;
	uint64_t count[HISTOGRAM_BUCKETS];
};

struct histogram_form {
	const char *name; /* as in kvroute_PROXY_NAME_seconds */
	const char *help;
	size_t bounds;    /* below HISTOGRAM_BUCKETS */
	uint64_t bound[HISTOGRAM_BUCKETS - 1]; /* nanoseconds, ascending */
};

extern const struct histogram_form histogram_forms[HISTOGRAMS];

size_t histogram_bucket(enum histogram_kind kind, uint64_t ns);
uint64_t histogram_count(const struct histogram *h);
/*
 * Estimates a quantile in seconds, as histogram_quantile of Prometheus does:
 * linear between the bounds of a bucket; the last bound for all times above it.
 * Returns 0 if the histogram is empty.
 */
double histogram_quantile(enum histogram_kind kind,
    const struct histogram *h, double share);

#endif
