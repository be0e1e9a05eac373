/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate.c - see simulate.h.
 *
 * The only events are resets and ends of steps, at most one per engine:
 *
 *   next    [ 17.2 | never | 9.4 | 12.0 ]     by worker: see simulate_times.h
 *   ready   [ 1 ]                             have no step, but may have work
 *
 * At one time, steps end first, then caches are reset, then workers change,
 * then routers hear of caches and of each other, then requests arrive, then
 * steps begin. Time advances only after every ready engine has begun a step, so
 * requests that arrive at the same time are in the same step.
 *
 * The library gets the calls that a real router could make: lease open and
 * commit at arrival, first token, growing output, and the end with the engine's
 * report.
 */
#include "simulate_in.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- time --- */

static void
begin_ready(struct simulation *s)
{
	while (s->n_ready > 0) {
		uint32_t w = s->ready[--s->n_ready];

		s->is_ready[w] = false;
		times_set(&s->next, w, engine_begin(s->engines[w], s->now));
		usage_step(s, w, times_get(&s->next, w));
	}
}

static int
end_step(struct simulation *s, uint32_t worker)
{
	int e;

	times_set(&s->next, worker, TIMES_NEVER);
	s->totals.steps++;
	serve_ready(s, worker);
	if (engine_end(s->engines[worker]) != ENGINE_OK)
		return KVR_ENOMEM;
	e = serve_listen(s, worker);
	if (e != KVR_OK || !s->options.check)
		return e;
	e = s->changed ? simulate_check(s) : simulate_check_books(s);
	s->changed = false;
	return e;
}

/* Routers learn of it only by events. */
static int
reset_engine(struct simulation *s, uint32_t worker)
{
	times_set(&s->next_reset, worker, s->now + s->options.reset_ns);
	s->totals.resets++;
	engine_reset(s->engines[worker]);
	if (s->past != NULL)
		return past_reset(s->past[worker], s->now);
	return news_reset(s, worker);
}

static int
do_due(struct simulation *s)
{
	int e = KVR_OK;

	while (e == KVR_OK && times_least(&s->next) == s->now)
		e = end_step(s, times_first(&s->next));
	while (e == KVR_OK && times_least(&s->next_reset) == s->now)
		e = reset_engine(s, times_first(&s->next_reset));
	if (e == KVR_OK)
		e = changes_do(s);
	if (e == KVR_OK)
		e = news_do(s);
	return e == KVR_OK ? exchange_do(s) : e;
}

/*
 * TIMES_NEVER: until no step is left; resets never end. Stops when a response
 * that the caller waits for has ended.
 */
static int
advance_time(struct simulation *s, int64_t to)
{
	int64_t next;
	int e = KVR_OK;

	while (e == KVR_OK && s->now < to && s->next_done == s->n_done) {
		begin_ready(s);
		next = times_least(&s->next);
		if (next == TIMES_NEVER && to == TIMES_NEVER)
			break;
		if (times_least(&s->next_reset) < next)
			next = times_least(&s->next_reset);
		if (changes_next(s) < next)
			next = changes_next(s);
		if (exchange_next(s) < next)
			next = exchange_next(s);
		if (news_next(s) < next)
			next = news_next(s);
		next = next < to ? next : to;
		e = sample_until(s, next);
		usage_time(s, next);
		s->now = next;
		if (e == KVR_OK)
			e = do_due(s);
	}
	return e;
}

int
simulate_until(struct simulation *s, int64_t to, int64_t *now)
{
	int e = advance_time(s, to);

	*now = s->now;
	return e;
}

bool
simulate_next_done(struct simulation *s, uint64_t *number)
{
	if (s->next_done == s->n_done)
		return false;
	*number = s->done[s->next_done++];
	return true;
}

int
simulate_drain(struct simulation *s)
{
	return advance_time(s, TIMES_NEVER);
}

/* ------------------------------------------------------------ requests --- */

int
simulate_request(struct simulation *s, struct kvr_prompt *p,
    const struct trace_request *q, int64_t now)
{
	struct engine_request request = { .number = s->n_rides,
	    .tokens = q->tokens, .output = q->output_length, .ids = q->ids,
	    .known = q->known_output };
	int e = advance_time(s, now);

	if (e != KVR_OK)
		return e;
	s->totals.requests++;
	s->used_then = s->usage;
	if (q->tokens > 0)
		return serve_request(s, p, &request, q);
	s->totals.empty++;
	return serve_done(s, q->number);
}

/* ----------------------------------------------------------- accessors --- */

const struct simulate_options *
simulate_options(const struct simulation *s)
{
	return &s->options;
}

const struct simulate_totals *
simulate_totals(const struct simulation *s)
{
	return &s->totals;
}

const struct simulate_exchanged *
simulate_exchanged(const struct simulation *s)
{
	return &s->exchanged;
}

static int
compare_times(const void *a, const void *b)
{
	int64_t x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return (x > y) - (x < y);
}

const int64_t *
simulate_first_tokens(struct simulation *s)
{
	size_t n = 0, i;

	free(s->first_tokens);
	s->first_tokens = calloc(s->n_rides, sizeof(*s->first_tokens));
	if (s->first_tokens == NULL || s->totals.finished == 0)
		return NULL;
	for (i = 0; i < s->n_rides; i++)
		if (s->rides[i].finished)
			s->first_tokens[n++] = s->rides[i].first -
			    s->rides[i].arrival;
	qsort(s->first_tokens, n, sizeof(*s->first_tokens), compare_times);
	return s->first_tokens;
}
