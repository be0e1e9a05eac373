/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate.c - see simulate.h.
 *
 * The only events are ends of steps, one to come for each engine that works:
 *
 *   next    [ 17.2 | never | 9.4 | 12.0 ]     by worker; the least is next
 *   ready   [ 1 ]                             have no step, but may have work
 *
 * At one time steps end first, then requests arrive, then steps begin: time
 * goes on only after every ready engine has begun, so all that arrives in one
 * instant is in the same step.
 *
 * The library hears of a request what a router in front of engines could tell
 * it: reserve and commit at arrival, first token, growing answer, end.
 */
#include "simulate_in.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* ----------------------------------------------------------- making it --- */

static int
make_tables(struct simulation *s)
{
	uint32_t n = s->options.workers, i;
	uint64_t blocks = s->options.capacity_tokens == 0 ? ENGINE_ENDLESS :
	    s->options.capacity_tokens / ENGINE_BLOCK;
	struct engine_idea idea = { blocks, ENGINE_BLOCK,
	    ENGINE_EVICT_RELEASED, 1, s->options.seed };

	s->engines = calloc(n, sizeof(struct engine *));
	s->next = calloc(n, sizeof(*s->next));
	s->ready = calloc(n, sizeof(*s->ready));
	s->is_ready = calloc(n, sizeof(*s->is_ready));
	s->booked = calloc(n, sizeof(*s->booked));
	s->seen = calloc(n, sizeof(*s->seen));
	s->used = calloc(n, sizeof(*s->used));
	if (s->engines == NULL || s->next == NULL || s->ready == NULL ||
	    s->is_ready == NULL || s->booked == NULL || s->seen == NULL ||
	    s->used == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < n; i++) {
		s->next[i] = INT64_MAX;
		s->engines[i] = engine_new(&idea);
		if (s->engines[i] == NULL)
			return KVR_ENOMEM;
	}
	return KVR_OK;
}

static int
make_region(struct simulation *s, const struct kvr_options *region)
{
	struct kvr_options o = *region;
	struct kvr_policy policy;
	int e;

	if (s->options.policy < SIMULATE_DYNAMO)
		return KVR_OK;
	if (s->options.index == SIMULATE_ORACLE)
		o.ttl_ns = 0;
	e = kvr_new(&o, &s->k);
	if (e == KVR_OK)
		e = fleet_new(s->k, s->options.workers, &s->fleet);
	if (e != KVR_OK)
		return e;
	kvr_policy_init(&policy, sizeof(policy));
	if (s->options.policy == SIMULATE_TWO_TIER)
		policy.cost = KVR_COST_TWO_TIER;
	return kvr_set_policy(s->k, &policy);
}

int
simulate_new(const struct simulate_options *options,
    const struct kvr_options *region, struct simulation **out)
{
	struct simulation *s = calloc(1, sizeof(*s));
	int e;

	if (s == NULL)
		return KVR_ENOMEM;
	s->options = *options;
	s->block_size = region->block_size;
	s->rng.state = options->seed;
	e = make_tables(s);
	if (e == KVR_OK)
		e = make_region(s, region);
	if (e != KVR_OK) {
		simulate_free(s);
		return e;
	}
	*out = s;
	return KVR_OK;
}

void
simulate_free(struct simulation *s)
{
	uint32_t i;

	if (s == NULL)
		return;
	kvr_free(s->k);
	fleet_free(s->fleet);
	for (i = 0; s->engines != NULL && i < s->options.workers; i++)
		engine_free(s->engines[i]);
	free(s->engines);
	free(s->next);
	free(s->ready);
	free(s->is_ready);
	free(s->booked);
	free(s->seen);
	free(s->used);
	free(s->rides);
	free(s->first_tokens);
	free(s->shown);
	free(s->samples);
	free(s->loads);
	free(s);
}

/* ------------------------------------ what engines did, to the library --- */

static uint64_t
absolute(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static int
on_admitted(struct simulation *s, struct ride *r, uint64_t hit)
{
	r->admitted = true;
	r->hit = hit;
	s->totals.waited += s->now > r->arrival;
	s->totals.tokens += r->tokens;
	s->totals.hit_tokens += hit;
	s->totals.predicted_tokens += r->predicted;
	s->totals.error_tokens += absolute(r->predicted, hit);
	return KVR_OK;
}

static int
on_first_token(struct simulation *s, struct ride *r)
{
	int e;

	r->first = s->now;
	s->booked[r->worker].prefill_tokens -= r->tokens - r->predicted;
	if (s->k == NULL)
		return KVR_OK;
	e = kvr_first_token(s->k, r->lease, s->now, 0);
	return e == KVR_OK ? place_load(s, r->worker) : e;
}

static uint64_t
index_blocks(const struct simulation *s, uint64_t tokens)
{
	return (tokens + s->block_size - 1) / s->block_size;
}

/* Blocks of the answer, beyond those that the prompt began. */
static int
on_generated(struct simulation *s, struct ride *r, uint64_t generated)
{
	uint64_t n = index_blocks(s, r->tokens + generated) -
	    index_blocks(s, r->tokens) - r->output_blocks;

	if (s->k == NULL || n == 0)
		return KVR_OK;
	r->output_blocks += (uint32_t)n;
	return kvr_output_blocks(s->k, r->lease, (uint32_t)n, s->now, 0);
}

static int
on_finished(struct simulation *s, struct ride *r, uint64_t generated)
{
	r->finished = true;
	s->booked[r->worker].requests--;
	s->totals.finished++;
	s->totals.end = s->now;
	s->totals.later_tokens += generated - 1;
	s->totals.token_ns += (uint64_t)(s->now - r->first);
	return s->k == NULL ? KVR_OK : kvr_finish(s->k, r->lease, NULL, s->now,
	    0);
}

/* All that an engine has to say. */
static int
listen(struct simulation *s, uint32_t worker)
{
	struct engine_event event;
	int e = KVR_OK;

	while (e == KVR_OK && engine_next(s->engines[worker], &event)) {
		struct ride *r = &s->rides[event.request];

		if (event.kind == ENGINE_ADMITTED)
			e = on_admitted(s, r, event.tokens);
		else if (event.kind == ENGINE_FIRST_TOKEN)
			e = on_first_token(s, r);
		else if (event.kind == ENGINE_GENERATED)
			e = on_generated(s, r, event.tokens);
		else
			e = on_finished(s, r, event.tokens);
	}
	return e;
}

/* ---------------------------------------------------------------- time --- */

static void
make_ready(struct simulation *s, uint32_t worker)
{
	if (s->is_ready[worker] || s->next[worker] != INT64_MAX)
		return;
	s->is_ready[worker] = true;
	s->ready[s->n_ready++] = worker;
}

static void
begin_ready(struct simulation *s)
{
	while (s->n_ready > 0) {
		uint32_t w = s->ready[--s->n_ready];

		s->is_ready[w] = false;
		s->next[w] = engine_begin(s->engines[w], s->now);
	}
}

static int64_t
earliest(const struct simulation *s)
{
	int64_t least = INT64_MAX;
	uint32_t i;

	for (i = 0; i < s->options.workers; i++)
		least = s->next[i] < least ? s->next[i] : least;
	return least;
}

static int
end_due(struct simulation *s)
{
	int e = KVR_OK;
	uint32_t i;

	for (i = 0; e == KVR_OK && i < s->options.workers; i++) {
		if (s->next[i] != s->now)
			continue;
		s->next[i] = INT64_MAX;
		s->totals.steps++;
		make_ready(s, i);
		if (engine_end(s->engines[i]) != ENGINE_OK)
			return KVR_ENOMEM;
		e = listen(s, i);
		if (e == KVR_OK && s->options.check)
			e = simulate_check(s);
	}
	return e;
}

/* INT64_MAX: until nothing is left to do. */
static int
advance(struct simulation *s, int64_t to)
{
	int64_t next;
	int e = KVR_OK;

	while (e == KVR_OK && s->now < to) {
		begin_ready(s);
		next = earliest(s);
		if (next == INT64_MAX && to == INT64_MAX)
			break;
		next = next < to ? next : to;
		e = sample_until(s, next);
		s->now = next;
		if (e == KVR_OK)
			e = end_due(s);
	}
	return e;
}

int
simulate_drain(struct simulation *s)
{
	return advance(s, INT64_MAX);
}

/* ------------------------------------------------------------ requests --- */

static struct ride *
ride_new(struct simulation *s)
{
	size_t want = s->ride_capacity == 0 ? 1024 : s->ride_capacity * 2;
	struct ride *p;

	if (s->n_rides == s->ride_capacity) {
		p = realloc(s->rides, want * sizeof(*p));
		if (p == NULL)
			return NULL;
		s->rides = p;
		s->ride_capacity = want;
	}
	p = &s->rides[s->n_rides];
	memset(p, 0, sizeof(*p));
	p->arrival = s->now;
	p->first = -1;
	return p;
}

/* No engine can take it: as if it had never been dispatched. */
static int
refuse(struct simulation *s, struct ride *r)
{
	int e;

	s->totals.refused++;
	s->n_rides--;
	s->booked[r->worker].requests--;
	s->booked[r->worker].prefill_tokens -= r->tokens - r->predicted;
	e = place_load(s, r->worker);
	return e != KVR_OK || s->k == NULL ? e :
	    kvr_abort(s->k, r->lease, s->now, 0);
}

static int
serve(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q)
{
	struct ride *r = ride_new(s);
	enum engine_result result;
	int e;

	if (r == NULL)
		return KVR_ENOMEM;
	r->tokens = q->tokens;
	e = place_request(s, p, q, r);
	if (e != KVR_OK)
		return e;
	s->n_rides++;
	result = engine_submit(s->engines[r->worker], q);
	if (result == ENGINE_TOO_LARGE)
		return refuse(s, r);
	if (result == ENGINE_NO_MEMORY)
		return KVR_ENOMEM;
	make_ready(s, r->worker);
	return listen(s, r->worker);
}

int
simulate_request(struct simulation *s, struct kvr_prompt *p,
    const struct trace_request *q, int64_t now)
{
	struct engine_request request = { s->n_rides, q->tokens,
	    q->output_length, q->ids };
	int e = advance(s, now);

	if (e != KVR_OK)
		return e;
	s->totals.requests++;
	if (q->tokens > 0)
		return serve(s, p, &request);
	s->totals.empty++;
	return KVR_OK;
}

/* ------------------------------------------------------- looking at it --- */

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

static int
ascending(const void *a, const void *b)
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
	qsort(s->first_tokens, n, sizeof(*s->first_tokens), ascending);
	return s->first_tokens;
}

