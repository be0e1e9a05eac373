/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_serve.c - a request from its arrival to its end: its worker, the
 * report of its engine, and its effect on routers and totals.
 */
#include "simulate_in.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------- engine events, to routers --- */

static int
on_admitted(struct simulation *s, struct ride *r, uint64_t hit)
{
	struct simulate_totals *t = &s->totals;

	r->admitted = r->counted = true;
	r->hit = hit;
	r->waited = s->now > r->arrival;
	t->waited += r->waited;
	t->tokens += r->tokens;
	t->hit_tokens += hit;
	t->predicted_tokens += r->predicted;
	if (r->bypass)
		return KVR_OK;
	if (r->predicted > hit)
		t->over_tokens += r->predicted - hit;
	else
		t->under_tokens += hit - r->predicted;
	return KVR_OK;
}

void
serve_undo(struct simulation *s, struct ride *r)
{
	struct simulate_totals *t = &s->totals;

	if (!r->counted)
		return;
	r->counted = false;
	t->waited -= r->waited;
	t->tokens -= r->tokens;
	t->hit_tokens -= r->hit;
	t->predicted_tokens -= r->predicted;
	if (r->bypass)
		return;
	if (r->predicted > r->hit)
		t->over_tokens -= r->predicted - r->hit;
	else
		t->under_tokens -= r->hit - r->predicted;
}

static int
on_first_token(struct simulation *s, struct ride *r)
{
	r->first = s->now;
	return routers_first_token(s, r);
}

static uint64_t
index_blocks(const struct simulation *s, uint64_t tokens)
{
	return (tokens + s->block_size - 1) / s->block_size;
}

/* Blocks of the output, beyond those that the prompt began. */
static int
on_generated(struct simulation *s, struct ride *r, uint64_t generated)
{
	uint64_t n = index_blocks(s, r->tokens + generated) -
	    index_blocks(s, r->tokens) - r->output_blocks;

	if (n == 0)
		return KVR_OK;
	r->output_blocks += (uint32_t)n;
	return routers_generated(s, r, (uint32_t)n);
}

/* Remembers that the response to a request has ended. */
int
serve_done(struct simulation *s, uint64_t number)
{
	size_t want = s->done_capacity == 0 ? 64 : s->done_capacity * 2;
	uint64_t *p;

	if (!s->options.closed)
		return KVR_OK;
	if (s->next_done == s->n_done)
		s->next_done = s->n_done = 0;
	if (s->n_done == s->done_capacity) {
		p = realloc(s->done, want * sizeof(*p));
		if (p == NULL)
			return KVR_ENOMEM;
		s->done = p;
		s->done_capacity = want;
	}
	s->done[s->n_done++] = number;
	return KVR_OK;
}

static int
on_finished(struct simulation *s, struct ride *r, uint64_t generated)
{
	struct engine_answer truth = { r->tokens, r->hit, generated,
	    s->options.engine_block };
	struct kvr_report report;

	engine_report(&s->options.reports, &truth, &s->reports, &report);
	if (serve_done(s, r->number) != KVR_OK)
		return KVR_ENOMEM;
	if (s->options.silent > 0 &&
	    (r->worker + 1) % s->options.silent == 0)
		report = (struct kvr_report){ .size = sizeof(report),
		    .flags = report.flags };
	r->finished = true;
	r->end = s->now;
	r->output = generated;
	ride_drop(r);
	flight_end(s, r->worker);
	s->totals.finished++;
	s->totals.bypassed += r->bypass;
	s->totals.end = s->now;
	s->totals.later_tokens += generated - 1;
	s->totals.token_ns += (uint64_t)(s->now - r->first);
	return routers_finished(s, r, &report);
}

/* Routers do not see it. */
static int
on_preempted(struct simulation *s, struct ride *r, bool preempted)
{
	s->totals.preempted += preempted;
	r->admitted = !preempted;
	return KVR_OK;
}

/* Handles all events of an engine. */
int
serve_listen(struct simulation *s, uint32_t worker)
{
	struct engine_event event;
	int e = news_publish(s, worker);

	while (e == KVR_OK && engine_next(s->engines[worker], &event)) {
		struct ride *r = &s->rides[event.request];

		s->changed = true;
		if (event.kind == ENGINE_ADMITTED)
			e = on_admitted(s, r, event.tokens);
		else if (event.kind == ENGINE_FIRST_TOKEN)
			e = on_first_token(s, r);
		else if (event.kind == ENGINE_GENERATED)
			e = on_generated(s, r, event.tokens);
		else if (event.kind != ENGINE_FINISHED)
			e = on_preempted(s, r,
			    event.kind == ENGINE_PREEMPTED);
		else
			e = on_finished(s, r, event.tokens);
	}
	return e;
}

/* ------------------------------------------------------------ requests --- */

/* Keeps a copy to route a request again. */
static int
ride_keep(const struct simulation *s, struct ride *r,
    const struct engine_request *q)
{
	size_t n = (size_t)((q->tokens + q->known + ENGINE_BLOCK - 1) /
	    ENGINE_BLOCK);

	r->wanted = q->output;
	r->known = q->known;
	if (!s->keeps)
		return KVR_OK;
	r->ids = malloc(n * sizeof(*r->ids));
	if (r->ids == NULL)
		return KVR_ENOMEM;
	memcpy(r->ids, q->ids, n * sizeof(*r->ids));
	return KVR_OK;
}

void
ride_drop(struct ride *r)
{
	free(r->ids);
	r->ids = NULL;
}

void
serve_ready(struct simulation *s, uint32_t worker)
{
	if (s->is_ready[worker] ||
	    times_get(&s->next, worker) != TIMES_NEVER)
		return;
	s->is_ready[worker] = true;
	s->ready[s->n_ready++] = worker;
}

static int
rides_grow(struct simulation *s)
{
	size_t had = s->ride_capacity, want = had == 0 ? 1024 : had * 2;
	size_t each = s->options.replicas;
	struct ride *rides;
	struct held *held;

	if (s->n_rides < s->ride_capacity)
		return KVR_OK;
	rides = realloc(s->rides, want * sizeof(*rides));
	if (rides == NULL)
		return KVR_ENOMEM;
	s->rides = rides;
	held = realloc(s->held, want * each * sizeof(*held));
	if (held == NULL)
		return KVR_ENOMEM;
	memset(&held[had * each], 0, (want - had) * each * sizeof(*held));
	s->held = held;
	s->ride_capacity = want;
	return KVR_OK;
}

/* NULL: out of memory. */
static struct ride *
ride_new(struct simulation *s)
{
	struct ride *r;

	if (rides_grow(s) != KVR_OK)
		return NULL;
	r = &s->rides[s->n_rides];
	memset(r, 0, sizeof(*r));
	r->arrival = s->now;
	r->first = -1;
	return r;
}

static int
refuse_request(struct simulation *s, struct ride *r)
{
	s->totals.refused++;
	s->n_rides--;
	ride_drop(r);
	if (serve_done(s, r->number) != KVR_OK)
		return KVR_ENOMEM;
	return routers_refused(s, r);
}

/* To the worker that was chosen. *refused: it is too large for it. */
static int
serve_send(struct simulation *s, const struct engine_request *q,
    const struct ride *r, bool *refused)
{
	enum engine_result result = engine_submit(s->engines[r->worker], q);
	int e = KVR_OK;

	*refused = result == ENGINE_TOO_LARGE;
	if (result == ENGINE_NO_MEMORY)
		return KVR_ENOMEM;
	if (*refused)
		return KVR_OK;
	flight_begin(s, r->worker);
	serve_ready(s, r->worker);
	if (s->past != NULL)
		e = past_submit(s->past[r->worker], q, s->now);
	return e == KVR_OK ? serve_listen(s, r->worker) : e;
}

int
serve_again(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, struct ride *r)
{
	bool refused = false;
	int e;

	r->seen = q->tokens;
	e = place_request(s, p, q, r);

	s->totals.retried++;
	if (e == KVR_OK)
		e = serve_send(s, q, r, &refused);
	if (e != KVR_OK || !refused)
		return e;
	s->totals.lost++;
	r->lost = true;
	r->end = s->now;
	ride_drop(r);
	if (serve_done(s, r->number) != KVR_OK)
		return KVR_ENOMEM;
	return routers_refused(s, r);
}

int
serve_request(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, const struct trace_request *from)
{
	struct trace_request seen = trace_seen(from);
	struct engine_request told = { .number = q->number,
	    .tokens = seen.tokens, .output = q->output, .ids = seen.ids,
	    .known = q->known };
	struct ride *r = ride_new(s);
	bool refused = false;
	int e;

	if (r == NULL)
		return KVR_ENOMEM;
	r->tokens = q->tokens;
	r->seen = seen.tokens;
	r->number = from->number;
	r->session = from->session;
	r->router = exchange_deal(s, r->session, q);
	s->changed = true;
	e = place_request(s, p, &told, r);
	if (e != KVR_OK)
		return e;
	s->n_rides++;
	e = ride_keep(s, r, q);
	if (e == KVR_OK)
		e = serve_send(s, q, r, &refused);
	return e == KVR_OK && refused ? refuse_request(s, r) : e;
}
