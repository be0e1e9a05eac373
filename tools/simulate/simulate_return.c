/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_return.c - the share of a worker that has joined or is no longer
 * slow in the requests that arrive in a window of 60 s:
 *
 *   joins, comes back   at                at + 60 s
 *                       |----- counted -----|
 *   slow until `at`     at                at + 60 s           at + 120 s
 *                                           |----- counted -----|
 *
 * A router can know at once that a worker has joined; that one is no longer
 * slow it has to find out.
 *
 * A fair share is that of the worker's speed in the speeds of all that were up
 * after the change. Sessions that begin count apart: those that run already
 * have their caches elsewhere.
 */
#include "simulate_in.h"

#include <stdlib.h>
#include <string.h>

#define WINDOW_NS INT64_C(60000000000)
enum { FEW = 5 }; /* requests; a fair share of fewer is noise */

/* The speed over those of all that are up, after change `last`. */
static double
fair_share(const struct simulation *s, uint32_t last)
{
	const struct simulate_options *o = &s->options;
	double all = 0, own = simulate_speed(o, o->changes[last].worker);
	uint32_t w, i;

	for (w = 0; w < o->workers; w++) {
		bool up = !simulate_joins_first(o, w);

		for (i = 0; i <= last; i++)
			if (o->changes[i].worker == w &&
			    !simulate_is_slowness(&o->changes[i]))
				up = o->changes[i].kind == SIMULATE_JOIN;
		if (up)
			all += simulate_speed(o, w);
	}
	return own / all;
}

struct count {
	uint64_t all;
	uint64_t own;
};

static void
count_one(struct count *c, bool own)
{
	c->all++;
	c->own += own;
}

/* -1: too few. */
static double
share_of(const struct count *c, double fair)
{
	double expected = (double)c->all * fair;

	return expected < FEW ? -1 : (double)c->own / expected;
}

struct named {
	uint64_t session;
	size_t ride;
};

static int
named_order(const void *a, const void *b)
{
	struct named x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	if (x.session != y.session)
		return x.session < y.session ? -1 : 1;
	return x.ride < y.ride ? -1 : x.ride > y.ride;
}

/* Which rides are the first of a session? To be freed; NULL: no memory. */
static bool *
find_first(const struct simulation *s)
{
	struct named *list = calloc(s->n_rides + 1, sizeof(*list));
	bool *first = calloc(s->n_rides + 1, sizeof(*first));
	size_t i;

	if (list == NULL || first == NULL) {
		free(list);
		free(first);
		return NULL;
	}
	for (i = 0; i < s->n_rides; i++)
		list[i] = (struct named){ s->rides[i].session, i };
	qsort(list, s->n_rides, sizeof(*list), named_order);
	for (i = 0; i < s->n_rides; i++)
		first[list[i].ride] = list[i].session != 0 &&
		    (i == 0 || list[i - 1].session != list[i].session);
	free(list);
	return first;
}

static void
measure_return(const struct simulation *s, uint32_t n, const bool *first,
    struct simulate_return *out)
{
	const struct simulate_change *c = &s->options.changes[n];
	double fair = fair_share(s, n);
	struct count requests = { 0, 0 }, sessions = { 0, 0 };
	int64_t from = c->at;
	size_t i;

	if (c->kind == SIMULATE_SLOW_END)
		from += WINDOW_NS;
	for (i = 0; i < s->n_rides; i++) {
		const struct ride *r = &s->rides[i];

		if (r->arrival < from || r->arrival - from >= WINDOW_NS)
			continue;
		count_one(&requests, r->worker == c->worker);
		if (first[i])
			count_one(&sessions, r->worker == c->worker);
	}
	out->change = *c;
	out->requests = requests.own;
	out->share = share_of(&requests, fair);
	out->session_share = share_of(&sessions, fair);
}

static bool
is_return(const struct simulate_change *c)
{
	return c->at > 0 && (c->kind == SIMULATE_JOIN ||
	    c->kind == SIMULATE_SLOW_END);
}

int
simulate_returns(const struct simulation *s, struct simulate_return *out,
    size_t *n)
{
	const struct simulate_options *o = &s->options;
	bool *first = find_first(s);
	uint32_t i;

	*n = 0;
	if (first == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < o->n_changes; i++)
		if (is_return(&o->changes[i]))
			measure_return(s, i, first, &out[(*n)++]);
	free(first);
	return KVR_OK;
}
