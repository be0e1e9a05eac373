/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * histogram.h - how long things took, by buckets.
 *
 *   time --> histogram_bucket --> proxy's atomics --> struct histogram
 *                                                       (a copy)
 *                          JSON: count, sum, quantiles <--'--> Prometheus
 *
 * The bounds are fixed, so that counts of processes, of upstreams and of
 * machines can be added up. They are in steps of about 1, 2, 5 over the times
 * that occur with language models. A bucket counts what is at most its bound,
 * and the last one, which has none, the rest.
 */
#ifndef KVROUTE_HISTOGRAM_H
#define KVROUTE_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum histogram_kind {
	HISTOGRAM_FIRST,   /* from a request to its first token; of streams */
	HISTOGRAM_TOKEN,   /* for each further token */
	HISTOGRAM_REQUEST, /* until its response has passed */
	HISTOGRAM_QUEUE,   /* that it waited for a worker; of those that did */
	HISTOGRAM_MODULE,  /* spent on it by the proxy's module */
	HISTOGRAM_TURN,    /* that a turn of the proxy's loop spent in it */
	HISTOGRAMS         /* how many there are */
};

enum { HISTOGRAM_BUCKETS = 18 }; /* at most, with the last */

/* Of a kind; in nanoseconds. */
struct histogram {
	uint64_t sum;
	uint64_t count[HISTOGRAM_BUCKETS];
};

struct histogram_form {
	const char *name; /* of seconds, as in kvroute_nginx_NAME_seconds */
	const char *help;
	size_t bounds;    /* below HISTOGRAM_BUCKETS */
	uint64_t bound[HISTOGRAM_BUCKETS - 1]; /* nanoseconds, ascending */
};

extern const struct histogram_form histogram_forms[HISTOGRAMS];

size_t histogram_bucket(enum histogram_kind kind, uint64_t ns);
uint64_t histogram_count(const struct histogram *h);
/*
 * In seconds, as histogram_quantile of Prometheus estimates it: linear between
 * the bounds of a bucket, and the last bound for what is above it. 0 of none.
 */
double histogram_quantile(enum histogram_kind kind,
    const struct histogram *h, double share);

#endif
