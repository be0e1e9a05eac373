/* SPDX-License-Identifier: BSD-2-Clause */
/* histogram.c - see histogram.h. The proxy's page defines each histogram. */
#include "histogram.h"

#define US(n) ((uint64_t)(n) * 1000)
#define MS(n) ((uint64_t)(n) * 1000000)
#define S(n) ((uint64_t)(n) * 1000000000)

const struct histogram_form histogram_forms[HISTOGRAMS] = {
	[HISTOGRAM_FIRST] = { "time_to_first_token", "Time from a request "
	    "to the first token of its answer, streams only.", 16,
	    { MS(1), MS(2), MS(5), MS(10), MS(20), MS(50), MS(100), MS(200),
	    MS(500), S(1), S(2), S(5), S(10), S(20), S(50), S(100) } },
	[HISTOGRAM_TOKEN] = { "time_per_output_token", "Mean time of the "
	    "further tokens of an answer, streams with usage only.", 17,
	    { MS(1), MS(2), MS(3), MS(5), MS(7), MS(10), MS(15), MS(20),
	    MS(30), MS(50), MS(70), MS(100), MS(150), MS(200), MS(300),
	    MS(500), S(1) } },
	[HISTOGRAM_REQUEST] = { "request", "Time from a request to the end of "
	    "its response.", 16,
	    { MS(10), MS(20), MS(50), MS(100), MS(200), MS(500), S(1), S(2),
	    S(5), S(10), S(20), S(50), S(100), S(200), S(500), S(1000) } },
	[HISTOGRAM_QUEUE] = { "queue", "Time that requests waited for a worker "
	    "that is not full, unless it is 0.", 16,
	    { MS(1), MS(2), MS(5), MS(10), MS(20), MS(50), MS(100), MS(200),
	    MS(500), S(1), S(2), S(5), S(10), S(20), S(50), S(100) } },
	[HISTOGRAM_MODULE] = { "module", "Time that kvroute's module spent on "
	    "a request.", 13,
	    { US(1), US(2), US(5), US(10), US(20), US(50), US(100), US(200),
	    US(500), MS(1), MS(2), MS(5), MS(10) } },
	[HISTOGRAM_TURN] = { "turn", "Time that one turn of a process's event "
	    "loop spent in kvroute's module, while all else waited.", 16,
	    { US(1), US(2), US(5), US(10), US(20), US(50), US(100), US(200),
	    US(500), MS(1), MS(2), MS(5), MS(10), MS(20), MS(50), MS(100) } }
};

size_t
histogram_bucket(enum histogram_kind kind, uint64_t ns)
{
	const struct histogram_form *f = &histogram_forms[kind];
	size_t i = 0;

	while (i < f->bounds && ns > f->bound[i])
		i++;
	return i;
}

uint64_t
histogram_count(const struct histogram *h)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < HISTOGRAM_BUCKETS; i++)
		n += h->count[i];
	return n;
}

double
histogram_quantile(enum histogram_kind kind, const struct histogram *h,
    double share)
{
	const struct histogram_form *f = &histogram_forms[kind];
	double left = share * (double)histogram_count(h), low = 0, high;
	size_t i;

	for (i = 0; i < f->bounds; i++) {
		high = (double)f->bound[i] / 1e9;
		if (h->count[i] > 0 && left <= (double)h->count[i])
			return low + (high - low) * left /
			    (double)h->count[i];
		left -= (double)h->count[i];
		low = high;
	}
	return histogram_count(h) > 0 ? low : 0;
}
