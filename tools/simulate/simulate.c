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
 * The library is told what a real router could tell it: lease open and commit
 * at arrival, first token, growing output, and the end with the engine's
 * report.
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
simulate_undo(struct simulation *s, struct ride *r)
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
static int
done_push(struct simulation *s, uint64_t number)
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
	if (done_push(s, r->number) != KVR_OK)
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
static int
listen(struct simulation *s, uint32_t worker)
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

/* ---------------------------------------------------------------- time --- */

static void
make_ready(struct simulation *s, uint32_t worker)
{
	if (s->is_ready[worker] ||
	    times_get(&s->next, worker) != TIMES_NEVER)
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
	make_ready(s, worker);
	if (engine_end(s->engines[worker]) != ENGINE_OK)
		return KVR_ENOMEM;
	e = listen(s, worker);
	if (e != KVR_OK || !s->options.check)
		return e;
	e = s->changed ? simulate_check(s) : simulate_check_books(s);
	s->changed = false;
	return e;
}

/* Routers are not told, except by events. */
static int
reset(struct simulation *s, uint32_t worker)
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
		e = reset(s, times_first(&s->next_reset));
	if (e == KVR_OK)
		e = changes_do(s);
	if (e == KVR_OK)
		e = news_do(s);
	return e == KVR_OK ? exchange_do(s) : e;
}

/*
 * TIMES_NEVER: until no step is left; resets never end. Stops when a response
 * to be told of has ended.
 */
static int
advance(struct simulation *s, int64_t to)
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
	int e = advance(s, to);

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
	return advance(s, TIMES_NEVER);
}

/* ------------------------------------------------------------ requests --- */

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
refuse(struct simulation *s, struct ride *r)
{
	s->totals.refused++;
	s->n_rides--;
	ride_drop(r);
	if (done_push(s, r->number) != KVR_OK)
		return KVR_ENOMEM;
	return routers_refused(s, r);
}

/* To the worker that was chosen. *refused: it is too large for it. */
static int
simulate_send(struct simulation *s, const struct engine_request *q,
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
	make_ready(s, r->worker);
	if (s->past != NULL)
		e = past_submit(s->past[r->worker], q, s->now);
	return e == KVR_OK ? listen(s, r->worker) : e;
}

int
simulate_again(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, struct ride *r)
{
	bool refused = false;
	int e;

	r->seen = q->tokens;
	e = place_request(s, p, q, r);

	s->totals.retried++;
	if (e == KVR_OK)
		e = simulate_send(s, q, r, &refused);
	if (e != KVR_OK || !refused)
		return e;
	s->totals.lost++;
	r->lost = true;
	r->end = s->now;
	ride_drop(r);
	if (done_push(s, r->number) != KVR_OK)
		return KVR_ENOMEM;
	return routers_refused(s, r);
}

static int
simulate_serve(struct simulation *s, struct kvr_prompt *p,
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
		e = simulate_send(s, q, r, &refused);
	return e == KVR_OK && refused ? refuse(s, r) : e;
}

int
simulate_request(struct simulation *s, struct kvr_prompt *p,
    const struct trace_request *q, int64_t now)
{
	struct engine_request request = { .number = s->n_rides,
	    .tokens = q->tokens, .output = q->output_length, .ids = q->ids,
	    .known = q->known_output };
	int e = advance(s, now);

	if (e != KVR_OK)
		return e;
	s->totals.requests++;
	s->used_then = s->usage;
	if (q->tokens > 0)
		return simulate_serve(s, p, &request, q);
	s->totals.empty++;
	return done_push(s, q->number);
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
