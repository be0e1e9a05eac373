/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_check.c - consistency checks, for tests.
 *
 * A request is recorded in four places: its ride, its engine, its router's
 * bookings, and the library's lease. Each is counted separately, and all must
 * agree. The cost is linear in the number of requests so far.
 *
 * The invariants of the library's index are another matter: kvr_check reads all
 * of its memory, which takes far longer than all else here. It is needed only
 * after the library was called; most steps just generate a token for each
 * sequence.
 */
#include "simulate_in.h"

/* The load that the requests imply for a worker. */
struct expected {
	uint64_t waiting;
	uint64_t running;
	uint64_t prefill_tokens;
	uint64_t output_blocks;
	bool unseen; /* some prompts, in part */
};

/* The load of an engine. */
static struct expected
expect_of_engine(const struct simulation *s, uint32_t worker)
{
	struct expected x = { 0, 0, 0, 0, false };
	size_t i;

	for (i = 0; i < s->n_rides; i++) {
		const struct ride *r = &s->rides[i];

		if (r->worker != worker || r->finished || r->lost)
			continue;
		x.waiting += !r->admitted;
		x.running += r->admitted;
		x.unseen = x.unseen || r->seen != r->tokens || r->bypass;
	}
	return x;
}

/* The load in a router: of the requests it holds, and by others. */
static struct expected
expect_held(const struct simulation *s, uint32_t worker, uint32_t router)
{
	const struct sums *others = s->routers[router].others;
	struct expected x = { 0, 0, 0, 0, false };
	size_t i;

	/* Routers may still hold the last one that was refused. */
	for (i = 0; i <= s->n_rides && i < s->ride_capacity; i++) {
		const struct held *h = held_by(s, router, i);

		if (!h->open || h->worker != worker)
			continue;
		x.running++;
		x.output_blocks += h->output_blocks;
		x.prefill_tokens += h->prefill_tokens;
	}
	if (others != NULL) {
		x.running += others[worker].requests;
		x.prefill_tokens += others[worker].prefill_tokens;
	}
	return x;
}

/* A router holds its own requests as they are. */
static bool
same_own(const struct simulation *s)
{
	size_t i;

	for (i = 0; i < s->n_rides; i++) {
		const struct ride *r = &s->rides[i];
		const struct held *h = held_by(s, r->router, i);
		bool open = !r->finished && !r->lost && !r->bypass;

		if (h->open != open || (open && (h->worker != r->worker ||
		    h->output_blocks != r->output_blocks ||
		    h->prefill_tokens != (r->first >= 0 ? 0 :
		    r->seen - r->predicted))))
			return false;
	}
	return true;
}

/*
 * If index and engine blocks have the same size and the router sees all
 * requests, whole and now, both have the same blocks in use.
 */
static bool
same_in_use(const struct simulation *s, const struct kvr_worker_stats *w,
    const struct engine_state *state, bool unseen)
{
	const struct simulate_options *o = &s->options;

	if (s->block_size != ENGINE_BLOCK || unseen || state->waiting > 0 ||
	    o->engine_block != ENGINE_BLOCK || (o->replicas > 1 &&
	    (o->exchange != SIMULATE_ALL || o->exchange_delay_ns > 0 ||
	    o->exchange_loss > 0)))
		return true;
	return w->active_blocks == state->pinned;
}

static int
check_router(const struct simulation *s, uint32_t number, uint32_t worker,
    const struct engine_state *state, bool unseen)
{
	const struct router *router = &s->routers[number];
	struct expected x = expect_held(s, worker, number);
	struct kvr_worker_stats w = { .size = sizeof(w) };
	int e;

	if (router->booked[worker].requests != x.waiting + x.running ||
	    router->booked[worker].prefill_tokens != x.prefill_tokens)
		return KVR_ECORRUPT;
	if (router->k == NULL || s->absent[worker])
		return KVR_OK;
	e = kvr_worker_stats_get(router->k, fleet_id(router->fleet, worker),
	    &w);
	if (e != KVR_OK)
		return e;
	if (w.requests != x.waiting + x.running ||
	    w.prefill_tokens != x.prefill_tokens ||
	    w.output_blocks != x.output_blocks ||
	    !same_in_use(s, &w, state, unseen))
		return KVR_ECORRUPT;
	return KVR_OK;
}

static int
check_worker(const struct simulation *s, uint32_t worker, uint64_t *open)
{
	struct expected x = expect_of_engine(s, worker);
	struct engine_state state;
	uint32_t i;
	int e = KVR_OK;

	engine_state(s->engines[worker], &state);
	if (!engine_check(s->engines[worker]) ||
	    state.waiting != x.waiting || state.running != x.running)
		return KVR_ECORRUPT;
	if (s->flights[worker].requests != x.waiting + x.running)
		return KVR_ECORRUPT;
	*open += x.waiting + x.running;
	for (i = 0; e == KVR_OK && i < s->options.replicas; i++)
		e = check_router(s, i, worker, &state, x.unseen);
	return e;
}

int
simulate_check_books(const struct simulation *s)
{
	uint64_t open = 0;
	uint32_t i;
	int e = same_own(s) ? KVR_OK : KVR_ECORRUPT;

	for (i = 0; e == KVR_OK && i < s->options.workers; i++)
		e = check_worker(s, i, &open);
	if (e == KVR_OK && (open + s->totals.finished +
	    s->totals.lost != s->n_rides ||
	    s->n_rides + s->totals.refused + s->totals.empty !=
	    s->totals.requests))
		return KVR_ECORRUPT;
	return e;
}

int
simulate_check(const struct simulation *s)
{
	int e = simulate_check_books(s);
	uint32_t i;

	for (i = 0; e == KVR_OK && i < s->options.replicas; i++)
		if (s->routers[i].k != NULL)
			e = kvr_check(s->routers[i].k);
	return e;
}
