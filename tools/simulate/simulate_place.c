/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_place.c - the choice of a worker: see simulate.h.
 *
 *   round-robin, random  use nothing
 *   least-loaded         uses its router's bookings: requests, prefill
 *   the rules of rivals.h
 *                        use the knowledge of their authors' routers
 *   the others, with :ttl :capacity :feedback
 *                        use the library's index of requests
 *   with :counts :events use events of engines, too
 *   with :oracle         use the engines' caches
 *
 * The oracle's region has a TTL of 0, so it records only running requests, and
 * a match finds their blocks, which the costs count as active. The overlap
 * comes from the engines, or from their past, and is passed to the lease, so
 * that the library books prefill by it.
 */
#include "simulate_in.h"

#include <string.h>

const char *const simulate_policy_names[SIMULATE_POLICIES] = {
	[SIMULATE_ROUND_ROBIN] = "round-robin",
	[SIMULATE_RANDOM] = "random",
	[SIMULATE_LEAST_LOADED] = "least-loaded",
	[SIMULATE_LEAST_BACKLOG] = "least-backlog",
	[SIMULATE_STICKY] = "sticky",
	[SIMULATE_CHBL] = "chbl",
	[SIMULATE_CACHE_AWARE] = "cache-aware",
	[SIMULATE_DYNAMO] = "dynamo",
	[SIMULATE_BALANCED] = "balanced",
	[SIMULATE_LMETRIC] = "lmetric",
	[SIMULATE_RAMJET] = "ramjet",
	[SIMULATE_TWO_TIER] = "two-tier"
};
const char *const simulate_index_names[SIMULATE_INDEXES] = {
	[SIMULATE_TTL] = "ttl",
	[SIMULATE_CAPACITY] = "capacity",
	[SIMULATE_FEEDBACK] = "feedback",
	[SIMULATE_COUNTS] = "counts",
	[SIMULATE_EVENTS] = "events",
	[SIMULATE_ORACLE] = "oracle"
};

/* Fewest requests, then least to prefill, then at random. */
static uint32_t
least_loaded(struct simulation *s, const struct booked *b)
{
	uint32_t best = worker_of_up(s, 0), ties = 1, i;

	for (i = best + 1; i < s->options.workers; i++) {
		if (!worker_up(s, i) || b[i].requests > b[best].requests ||
		    (b[i].requests == b[best].requests &&
		    b[i].prefill_tokens > b[best].prefill_tokens))
			continue;
		if (b[i].requests < b[best].requests ||
		    b[i].prefill_tokens < b[best].prefill_tokens)
			ties = 0;
		if (rng_between(&s->lots, 0, ties++) == 0)
			best = i;
	}
	return best;
}

static uint32_t
place_plain(struct simulation *s, const struct router *router)
{
	uint32_t n = s->n_up;

	if (s->options.policy == SIMULATE_ROUND_ROBIN)
		return worker_of_up(s, router->turn % n);
	if (s->options.policy == SIMULATE_RANDOM)
		return worker_of_up(s, (uint32_t)rng_between(&s->lots, 0,
		    n - 1));
	return least_loaded(s, router->booked);
}

/* NULL: out of memory. */
static const struct engine *
engine_seen(const struct simulation *s, uint32_t worker)
{
	return s->past == NULL ? s->engines[worker] :
	    past_at(s->past[worker], s->now - s->options.event_delay_ns);
}

/* Removes the workers that are absent; returns how many are left. */
static size_t
only_present(struct simulation *s)
{
	size_t n = 0;
	uint32_t w;

	for (w = 0; w < s->options.workers; w++)
		if (!s->absent[w])
			s->seen[n++] = s->seen[w];
	return n;
}

/*
 * Fills s->seen: overlap from the engines, active blocks from the region. Sets
 * *count, the number of workers that are not absent.
 */
static int
see_caches(struct simulation *s, const struct router *router,
    struct kvr_prompt *p, const struct engine_request *q, size_t *count)
{
	const struct engine *engine;
	struct kvr_overlap *o;
	size_t n, i;
	uint32_t w;
	int e = kvr_match(router->k, p, s->now, s->used, sizeof(*s->used),
	    s->options.workers, &n);

	for (w = 0; e == KVR_OK && w < s->options.workers; w++) {
		engine = engine_seen(s, w);
		if (engine == NULL)
			return KVR_ENOMEM;
		o = &s->seen[w];
		memset(o, 0, sizeof(*o));
		o->worker = fleet_id(router->fleet, w);
		o->blocks = (uint32_t)(engine_cached(engine, q) /
		    s->block_size);
		o->tokens = o->blocks * s->block_size;
	}
	for (i = 0; e == KVR_OK && i < n; i++) {
		w = fleet_number(router->fleet, s->used[i].worker);
		s->seen[w].active_blocks = s->used[i].active_blocks;
	}
	*count = only_present(s);
	return e;
}

static int
place_by_oracle(struct simulation *s, const struct router *router,
    struct kvr_prompt *p, const struct engine_request *q,
    struct kvr_decision *d)
{
	struct kvr_decision chosen = { .size = sizeof(chosen) };
	struct kvr_request request;
	size_t n;
	int e = see_caches(s, router, p, q, &n);

	if (e == KVR_OK)
		e = kvr_choose(router->k, p, NULL, s->seen, sizeof(*s->seen),
		    n, s->now, &chosen);
	if (e != KVR_OK)
		return e;
	kvr_request_init(&request, sizeof(request));
	request.overlap_blocks = chosen.overlap_blocks;
	return kvr_lease_open_on(router->k, p, &request, chosen.worker, s->now,
	    d);
}

/*
 * Fills the overlaps for rules by an index: from the engines, or as expected.
 */
static int
see_for_rivals(struct simulation *s, const struct router *router,
    struct kvr_prompt *p, const struct engine_request *q)
{
	uint64_t *seen = rivals_seen(s);
	uint32_t w;
	size_t n, i;
	int e;

	memset(seen, 0, s->options.workers * sizeof(*seen));
	if (s->options.index == SIMULATE_ORACLE) {
		e = see_caches(s, router, p, q, &n);
		for (i = 0; e == KVR_OK && i < n; i++) {
			w = fleet_number(router->fleet, s->seen[i].worker);
			seen[w] = s->seen[i].tokens;
		}
		return e;
	}
	e = kvr_candidates(router->k, p, NULL, s->now, s->candidates,
	    sizeof(*s->candidates), s->options.workers, &n);
	for (i = 0; e == KVR_OK && i < n; i++) {
		w = fleet_number(router->fleet, s->candidates[i].worker);
		seen[w] = s->candidates[i].overlap_tokens;
	}
	return e;
}

/* With the oracle, the lease gets the overlap that decided. */
static int
place_by_rival(struct simulation *s, const struct router *router,
    struct kvr_prompt *p, const struct engine_request *q, struct ride *r,
    struct kvr_decision *d)
{
	struct kvr_request request;
	int e = see_for_rivals(s, router, p, q);

	if (e == KVR_OK)
		e = rivals_place_seen(s, q->tokens, r);
	if (e != KVR_OK)
		return e;
	kvr_request_init(&request, sizeof(request));
	if (s->options.index == SIMULATE_ORACLE)
		request.overlap_blocks = (uint32_t)(rivals_seen(s)[r->worker] /
		    s->block_size);
	return kvr_lease_open_on(router->k, p, &request,
	    fleet_id(router->fleet, r->worker), s->now, d);
}

static int
place_by_library(struct simulation *s, const struct router *router,
    struct kvr_prompt *p, const struct engine_request *q,
    struct ride *r, struct kvr_decision *d)
{
	struct kvr_request request;
	int e;

	if (rivals_by_index(s))
		return place_by_rival(s, router, p, q, r, d);
	if (s->options.index == SIMULATE_ORACLE)
		return place_by_oracle(s, router, p, q, d);
	e = router_request(s, router, r->session, &request);
	return e == KVR_OK ? kvr_lease_open(router->k, p, &request, s->now, d)
	    : e;
}

/* As by another balancer, which deals them in turn. */
static void
place_aside(struct simulation *s, struct ride *r)
{
	r->bypass = true;
	r->worker = worker_of_up(s, s->byway++ % s->n_up);
}

int
place_request(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, struct ride *r)
{
	const struct router *router = &s->routers[r->router];
	struct kvr_decision d = { .size = sizeof(d) };
	int e;

	if (r->bypass || (s->options.bypass > 0 && (double)(rng_next(&s->byways)
	    >> 11) * 0x1p-53 < s->options.bypass)) {
		place_aside(s, r);
		return KVR_OK;
	}
	if (rivals_plain(s)) {
		e = rivals_place(s, q, r);
		return e == KVR_OK ? routers_book(s, p, q, r, &d) : e;
	}
	if (router->k == NULL) {
		r->worker = place_plain(s, router);
		return routers_book(s, p, q, r, &d);
	}
	e = place_by_library(s, router, p, q, r, &d);
	if (e != KVR_OK)
		return e;
	r->worker = fleet_number(router->fleet, d.worker);
	r->predicted = d.overlap_tokens;
	return routers_book(s, p, q, r, &d);
}
