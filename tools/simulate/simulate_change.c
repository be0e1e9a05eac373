/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_change.c - workers that change in mid-run.
 *
 *   absent --join--> up --drain--> draining
 *     ^               ^----join------'
 *     '----kill----- up or draining
 *
 * Routers see them as a gateway with health checks does, at once: a worker is
 * added, set to draining or up, or removed. They do not learn that a worker is
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

/* -------------------------------------------------------------- workers --- */

static void
set_up(struct simulation *s, uint32_t worker, bool up)
{
	s->n_up += (uint32_t)(up - worker_up(s, worker));
	flight_up(s, worker, up);
}

/* ------------------------------------------------------------ knowledge --- */

/* Routers forget it, and its load by others. */
static int
remove_worker(struct simulation *s, uint32_t worker)
{
	int e = routers_leave(s, worker);

	sums_leave(s, worker);
	return e;
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
			e = remove_worker(s, i);
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

	serve_undo(s, r);
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
	return e == KVR_OK ? serve_again(s, s->again, &request, r) : e;
}

static int
kill_worker(struct simulation *s, uint32_t worker)
{
	size_t i;
	int e = remove_worker(s, worker);

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
join_worker(struct simulation *s, uint32_t worker)
{
	int e = s->absent[worker] ? routers_join(s, worker) :
	    routers_drain(s, worker, false);

	s->absent[worker] = false;
	set_up(s, worker, true);
	return e;
}

static int
drain_worker(struct simulation *s, uint32_t worker)
{
	set_up(s, worker, false);
	return routers_drain(s, worker, true);
}

static int
slow_worker(struct simulation *s, uint32_t worker, double factor)
{
	engine_slow(s->engines[worker], factor);
	return s->past == NULL ? KVR_OK : past_slow(s->past[worker], factor,
	    s->now);
}

static int
change_worker(struct simulation *s, const struct simulate_change *c)
{
	switch (c->kind) {
	case SIMULATE_JOIN:
		return join_worker(s, c->worker);
	case SIMULATE_DRAIN:
		return drain_worker(s, c->worker);
	case SIMULATE_KILL:
		return kill_worker(s, c->worker);
	case SIMULATE_SLOW:
		return slow_worker(s, c->worker, c->factor);
	case SIMULATE_SLOW_END:
		return slow_worker(s, c->worker, 1);
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
		e = change_worker(s, &s->options.changes[s->next_change++]);
	}
	return e;
}
