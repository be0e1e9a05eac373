/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_change.c - workers that change in mid-run.
 *
 *   absent --join--> up --drain--> draining
 *     ^               ^----join------'
 *     '----kill----- up or draining
 *
 * Routers see them as a gateway with health checks does, at once: a worker is
 * added, set to draining or up, or removed. Nothing tells them that a worker is
 * slow. An engine that drains ends its requests and keeps its cache.
 *
 * The requests of a worker that is killed are sent again at once, those that
 * had begun to answer too: the client starts over. All leave their routers
 * first, so that each is routed by the load that is left. Times count from the
 * first arrival to the tokens of the last attempt.
 */
#include "simulate_in.h"
#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- schedule --- */

/* Of one time, a spell's end comes first; the others stay in their order. */
bool
simulate_add_change(struct simulate_options *o,
    const struct simulate_change *change)
{
	struct simulate_change *c = o->changes;
	uint32_t i = o->n_changes;

	if (i == SIMULATE_CHANGES_MAX)
		return false;
	for (; i > 0 && (c[i - 1].at > change->at ||
	    (c[i - 1].at == change->at && change->kind == SIMULATE_SLOW_END &&
	    c[i - 1].kind != SIMULATE_SLOW_END)); i--)
		c[i] = c[i - 1];
	c[i] = *change;
	o->n_changes++;
	return true;
}

bool
simulate_is_slowness(const struct simulate_change *c)
{
	return c->kind == SIMULATE_SLOW || c->kind == SIMULATE_SLOW_END;
}

bool
simulate_joins_first(const struct simulate_options *o, uint32_t worker)
{
	uint32_t i;

	for (i = 0; i < o->n_changes; i++)
		if (o->changes[i].worker == worker &&
		    !simulate_is_slowness(&o->changes[i]))
			return o->changes[i].kind == SIMULATE_JOIN;
	return false;
}

struct schedule {
	bool up[KVR_WORKERS_MAX];
	bool absent[KVR_WORKERS_MAX];
	bool slow[KVR_WORKERS_MAX];
	uint32_t n_up;
};

/* NULL, or why this change cannot follow those before it. */
static const char *
follow(struct schedule *t, const struct simulate_change *c)
{
	bool slow = c->kind == SIMULATE_SLOW, up = c->kind == SIMULATE_JOIN;
	uint32_t w = c->worker;

	if (simulate_is_slowness(c)) {
		if (slow && t->slow[w])
			return "the worker is slow already";
		t->slow[w] = slow;
		return NULL;
	}
	if (up && t->up[w])
		return "the worker is up already";
	if (!up && t->absent[w])
		return "the worker is not there then";
	if (!up && !t->up[w] && c->kind == SIMULATE_DRAIN)
		return "the worker drains already";
	t->n_up += (uint32_t)(up - t->up[w]);
	t->up[w] = up;
	t->absent[w] = c->kind == SIMULATE_KILL;
	return t->n_up == 0 ? "no worker is left" : NULL;
}

static const char *
in_range(const struct simulate_options *o, const struct simulate_change *c)
{
	if (c->worker >= o->workers)
		return "there is no such worker; they are numbered from 0";
	if (c->at < 0 || (c->kind == SIMULATE_SLOW && !(c->factor > 0)))
		return "out of range";
	return NULL;
}

static const char *
replay(struct schedule *t, const struct simulate_options *o, uint32_t *which)
{
	const char *problem = NULL;
	uint32_t i, w;

	for (i = 0; problem == NULL && i < o->n_changes; i++) {
		problem = in_range(o, &o->changes[i]);
		*which = i;
	}
	if (problem != NULL)
		return problem;
	for (w = 0; w < o->workers; w++) {
		t->absent[w] = simulate_joins_first(o, w);
		t->up[w] = !t->absent[w];
		t->n_up += t->up[w];
	}
	*which = 0;
	if (t->n_up == 0)
		return "no worker is there from the beginning";
	for (i = 0; problem == NULL && i < o->n_changes; i++) {
		problem = follow(t, &o->changes[i]);
		*which = i;
	}
	return problem;
}

const char *
simulate_changes_problem(const struct simulate_options *o, uint32_t *which)
{
	struct schedule t;

	if (o->n_changes == 0)
		return NULL;
	memset(&t, 0, sizeof(t));
	return replay(&t, o, which);
}

/* -------------------------------------------------------------- workers --- */

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

static void
set_up(struct simulation *s, uint32_t worker, bool up)
{
	s->n_up += (uint32_t)(up - worker_up(s, worker));
	flight_up(s, worker, up);
}

/* -------------------------------------------------------- what is known --- */

int
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

/* The prompt is of a router's region, if there is one. */
static int
make_prompt(struct simulation *s, const struct kvr_options *region)
{
	struct kvr *k = s->routers[0].k;
	int e = KVR_OK;

	if (k == NULL) {
		e = kvr_new(region, &s->again_k);
		k = s->again_k;
	}
	return e == KVR_OK ? kvr_prompt_new(k, &s->again) : e;
}

int
changes_make(struct simulation *s, const struct kvr_options *region)
{
	const struct simulate_options *o = &s->options;
	uint32_t i;
	int e = KVR_OK;

	if (simulate_changes_problem(o, &i) != NULL)
		return KVR_EINVAL;
	for (i = 0; i < o->n_changes; i++)
		s->keeps = s->keeps || o->changes[i].kind == SIMULATE_KILL;
	if (s->keeps)
		e = make_prompt(s, region);
	for (i = 0; e == KVR_OK && i < o->workers; i++) {
		s->absent[i] = simulate_joins_first(o, i);
		if (s->absent[i])
			e = routers_leave(s, i);
		else
			set_up(s, i, true);
	}
	return e == KVR_OK ? changes_do(s) : e;
}

void
changes_free(struct simulation *s)
{
	size_t i;

	for (i = 0; i < s->n_rides; i++)
		ride_drop(&s->rides[i]);
	kvr_prompt_free(s->again);
	kvr_free(s->again_k);
	tokens_free(&s->tokens);
}

/* --------------------------------------------------------------- death --- */

/* Routers and totals forget the attempt. */
static int
leave_worker(struct simulation *s, struct ride *r)
{
	int e = routers_refused(s, r);

	simulate_undo(s, r);
	flight_end(s, r->worker);
	r->first = -1;
	r->admitted = false;
	r->again = true;
	r->hit = r->predicted = 0;
	r->output_blocks = 0;
	return e;
}

static int
route_again(struct simulation *s, struct ride *r)
{
	struct engine_request request = {
	    .number = (uint64_t)(r - s->rides), .tokens = r->tokens,
	    .output = r->wanted, .ids = r->ids, .known = r->known };
	struct trace_request q = { .tokens = (size_t)r->tokens,
	    .n_ids = (size_t)((r->tokens + ENGINE_BLOCK - 1) / ENGINE_BLOCK),
	    .ids = r->ids };
	int e;

	r->again = false;
	if (tokens_make(&s->tokens, &q) != 0)
		return KVR_ENOMEM;
	e = kvr_prompt_set_tokens(s->again, NULL, s->tokens.tokens, q.tokens);
	return e == KVR_OK ? simulate_again(s, s->again, &request, r) : e;
}

static int
kill_worker(struct simulation *s, uint32_t worker)
{
	size_t i;
	int e = routers_leave(s, worker);

	engine_kill(s->engines[worker]);
	times_set(&s->next, worker, TIMES_NEVER);
	set_up(s, worker, false);
	s->absent[worker] = true;
	rivals_leave(s, worker);
	news_leave(s, worker);
	if (e == KVR_OK && s->past != NULL)
		e = past_kill(s->past[worker], s->now);
	for (i = 0; e == KVR_OK && i < s->n_rides; i++)
		if (s->rides[i].worker == worker && !s->rides[i].finished &&
		    !s->rides[i].lost)
			e = leave_worker(s, &s->rides[i]);
	for (i = 0; e == KVR_OK && i < s->n_rides; i++)
		if (s->rides[i].again)
			e = route_again(s, &s->rides[i]);
	return e;
}

/* -------------------------------------------------------------- changes --- */

static int
join(struct simulation *s, uint32_t worker)
{
	int e = s->absent[worker] ? routers_join(s, worker) :
	    routers_drain(s, worker, false);

	s->absent[worker] = false;
	set_up(s, worker, true);
	return e;
}

static int
drain(struct simulation *s, uint32_t worker)
{
	set_up(s, worker, false);
	return routers_drain(s, worker, true);
}

static int
slow(struct simulation *s, uint32_t worker, double factor)
{
	engine_slow(s->engines[worker], factor);
	return s->past == NULL ? KVR_OK : past_slow(s->past[worker], factor,
	    s->now);
}

static int
change(struct simulation *s, const struct simulate_change *c)
{
	switch (c->kind) {
	case SIMULATE_JOIN:
		return join(s, c->worker);
	case SIMULATE_DRAIN:
		return drain(s, c->worker);
	case SIMULATE_KILL:
		return kill_worker(s, c->worker);
	case SIMULATE_SLOW:
		return slow(s, c->worker, c->factor);
	case SIMULATE_SLOW_END:
		return slow(s, c->worker, 1);
	}
	return KVR_EINVAL;
}

int64_t
changes_next(const struct simulation *s)
{
	return s->next_change == s->options.n_changes ? TIMES_NEVER :
	    s->options.changes[s->next_change].at;
}

int
changes_do(struct simulation *s)
{
	int e = KVR_OK;

	while (e == KVR_OK && changes_next(s) <= s->now) {
		s->changed = true;
		e = change(s, &s->options.changes[s->next_change++]);
	}
	return e;
}
