/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_measure.c - times of whole requests, the load of workers, and how
 * much of the fleet is in use.
 *
 * A request is in flight from the time it is sent to a worker to its end
 * there, whether it runs or waits. A worker's load is the mean of its requests
 * in flight over the time in which it is up:
 *
 *   requests   2   .---.                  request_ns: the area below the line
 *              1 --'   '----.             up_ns:      the length of the axis
 *              0            '-----        since:      the last corner
 *
 * A fleet has three things that may be scarce: time to compute prompts, slots,
 * memory. The utilisation is the share of the scarcest that is in use until the
 * last request arrives, so that the end of a run does not dilute it. Near 1 the
 * fleet is overloaded: waiting depends on the length of the run.
 */
#include "simulate_in.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------ flights --- */

static struct flight *
flight_now(struct simulation *s, uint32_t worker)
{
	struct flight *f = &s->flights[worker];

	if (f->up) {
		f->request_ns += f->requests * (uint64_t)(s->now - f->since);
		f->up_ns += s->now - f->since;
	}
	f->since = s->now;
	return f;
}

bool
worker_up(const struct simulation *s, uint32_t worker)
{
	return s->flights[worker].up;
}

uint32_t
worker_of_up(const struct simulation *s, uint32_t n)
{
	uint32_t w;

	if (s->n_up == s->options.workers)
		return n;
	for (w = 0; !worker_up(s, w) || n-- > 0; w++)
		;
	return w;
}

void
flight_begin(struct simulation *s, uint32_t worker)
{
	flight_now(s, worker)->requests++;
}

void
flight_end(struct simulation *s, uint32_t worker)
{
	flight_now(s, worker)->requests--;
}

void
flight_up(struct simulation *s, uint32_t worker, bool up)
{
	flight_now(s, worker)->up = up;
}

/* -------------------------------------------------------------- usage --- */

static double
as_seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

void
usage_step(struct simulation *s, uint32_t worker, int64_t end)
{
	const struct simulate_options *o = &s->options;
	uint64_t capacity = simulate_capacity(o, worker);
	uint64_t slots = o->n_sequences == 0 ? 0 :
	    o->sequences[worker % o->n_sequences];
	struct engine_state e;

	if (end == INT64_MAX)
		return;
	engine_state(s->engines[worker], &e);
	s->usage.prefill += as_seconds(engine_computing(s->engines[worker]));
	s->usage.slots += as_seconds(end - s->now) * (double)e.running /
	    (double)(slots == 0 ? ENGINE_SEQUENCES : slots);
	if (capacity > 0)
		s->usage.memory += as_seconds(end - s->now) *
		    (double)((e.pinned + e.own) * o->engine_block) /
		    (double)capacity;
}

void
usage_time(struct simulation *s, int64_t to)
{
	s->usage.up += as_seconds(to - s->now) * s->n_up;
}

static double
work_out_use(const struct simulation *s)
{
	const struct usage *u = &s->used_then;
	double most = u->prefill;

	most = u->slots > most ? u->slots : most;
	most = u->memory > most ? u->memory : most;
	return u->up > 0 ? most / u->up : 0;
}

/* After the last request has ended. */
static double
worst_share(const struct simulation *s)
{
	double area = 0, time = 0, most = 0;
	uint32_t w;

	for (w = 0; w < s->options.workers; w++) {
		const struct flight *f = &s->flights[w];
		double up = (double)f->up_ns, own = (double)f->request_ns;

		if (f->up && s->totals.end > f->since)
			up += (double)(s->totals.end - f->since);
		area += own;
		time += up;
		if (up > 0 && own / up > most)
			most = own / up;
	}
	return area > 0 ? most * time / area : 0;
}

/* ----------------------------------------------------------- requests --- */

static int
compare_durations(const void *a, const void *b)
{
	int64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

/* Tokens after the first, on average, and the first one were in time. */
static bool
in_time(const struct simulate_options *o, const struct ride *r)
{
	uint64_t later = r->output > 1 ? r->output - 1 : 0;

	return r->first - r->arrival <= o->slo_first_ns &&
	    (double)(r->end - r->first) <=
	    (double)o->slo_token_ns * (double)later;
}

/* The least of n sorted values that `percent` of them do not exceed. */
static double
find_percentile(const int64_t *sorted, size_t n, size_t percent)
{
	return (double)sorted[(n * percent + 99) / 100 - 1] / 1e9;
}

int
simulate_served(const struct simulation *s, struct simulate_served *out)
{
	int64_t *times = calloc(s->n_rides + 1, sizeof(*times));
	size_t n = 0, good = 0, i;
	double sum = 0;

	memset(out, 0, sizeof(*out));
	if (times == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < s->n_rides; i++) {
		const struct ride *r = &s->rides[i];

		if (!r->finished)
			continue;
		times[n++] = r->end - r->arrival;
		sum += (double)(r->end - r->arrival);
		good += in_time(&s->options, r);
	}
	if (n > 0) {
		qsort(times, n, sizeof(*times), compare_durations);
		out->mean = sum / (double)n / 1e9;
		out->p90 = find_percentile(times, n, 90);
		out->p99 = find_percentile(times, n, 99);
		out->goodput = (double)good / (double)(n + s->totals.lost);
		out->worst_share = worst_share(s);
		out->utilisation = work_out_use(s);
	}
	free(times);
	return KVR_OK;
}
