/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_router.c - the routers and their leases.
 *
 * Requests are distributed to the routers in turn, or a session keeps to one. A
 * router has its own requests, and messages of others about theirs:
 *
 *   request     0    1    2    3         nothing:   A holds 0, 2
 *   router      A    B    A    B                    B holds 1, 3
 *                                        all:       both hold 0, 1, 2, 3
 *
 * Each holds a request in a place of its own (struct held) with a lease of its
 * own, because messages may be late or lost. The predicted overlap is given
 * only with the oracle (its index cannot predict) and without prefixes. All
 * regions have the same secret and the same workers in the same order.
 */
#include "simulate_in.h"

#include <kvroute_events.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LATE_NS INT64_C(200000000)
#define LATE_REQUESTS 0.08 /* that a worker gets in the meantime */
#define PACE_S 10          /* over which requests are counted */

/* More than any trace has: the capacity of an endless cache. */
#define ENDLESS_TOKENS (UINT64_C(1) << 50)
enum {
	AFFINITY_ENTRIES = 16384,
	ENDLESS_EVENTS = 8 << 20, /* tokens of an endless cache that count */
	EVENT_BYTES = 44          /* for each block of an engine */
};

/* --------------------------------------------------------------- making --- */

static uint32_t
eviction_told(const struct simulate_options *o)
{
	return o->told && o->eviction == ENGINE_EVICT_LEAF ? KVR_EVICT_LEAF :
	    KVR_EVICT_RELEASED;
}

static void
tell_window(const struct simulate_options *o, struct kvr_worker *facts)
{
	static const uint32_t modes[ENGINE_WINDOW_MODES] = {
		[ENGINE_WINDOW_FULL] = KVR_WINDOW_FULL,
		[ENGINE_WINDOW_BOUNDARY] = KVR_WINDOW_BOUNDARY,
		[ENGINE_WINDOW_DENSE] = KVR_WINDOW_DENSE,
		[ENGINE_WINDOW_DUAL] = KVR_WINDOW_DUAL
	};
	const struct engine_window_idea *w = &o->window;

	if (o->unaware || w->tokens == 0)
		return;
	facts->window_mode = modes[w->mode];
	facts->window_tokens = (uint32_t)w->tokens;
	facts->window_align = (uint32_t)w->align;
	facts->window_interval = (uint32_t)w->interval;
	facts->window_layers = w->groups * 100;
	facts->window_capacity = w->capacity;
}

/* Sets a worker's facts, by the kind of index. */
static int
tell_facts(const struct simulation *s, struct router *router, uint32_t worker)
{
	const struct simulate_options *o = &s->options;
	uint64_t id = fleet_id(router->fleet, worker);
	uint64_t capacity = simulate_capacity(o, worker);
	struct kvr_worker facts;

	kvr_worker_init(&facts, sizeof(facts));
	facts.eviction = eviction_told(o);
	tell_window(o, &facts);
	facts.block_tokens = o->told ? o->engine_block : 0;
	if (o->index == SIMULATE_CAPACITY) {
		/* as by a caller: believed until reports contradict */
		facts.capacity_tokens = capacity == 0 ? ENDLESS_TOKENS :
		    capacity;
	} else if (o->index == SIMULATE_EVENTS) {
		facts.retain = KVR_RETAIN_EVENTS;
	} else if (o->index == SIMULATE_TTL || o->index == SIMULATE_ORACLE) {
		facts.retain = KVR_RETAIN_TTL;
	}
	return kvr_worker_set(router->k, id, &facts);
}

/* Rules of rivals.h do not ask for a cost. */
static int
router_set_policy(const struct simulate_options *o, struct kvr *k,
    uint32_t block)
{
	struct kvr_policy policy = o->weights;

	policy.cost = o->policy == SIMULATE_BALANCED ? KVR_COST_BALANCED
	    : KVR_COST_DYNAMO;
	policy.request_weight *= SIMULATE_WEIGHT_BLOCK / (double)block;
	return kvr_policy_set(k, &policy);
}

/* Room for the hashes of all blocks that engines can hold, beside the rest. */
static void
add_event_blocks(const struct simulate_options *o, struct kvr_options *region)
{
	uint64_t blocks = 0, tokens;
	uint32_t w;

	for (w = 0; w < o->workers; w++) {
		tokens = simulate_capacity(o, w);
		tokens = tokens == 0 ? ENDLESS_EVENTS : tokens;
		blocks += tokens / o->engine_block + 1;
	}
	blocks += blocks / 4;
	if (blocks > KVR_EVENT_BLOCKS_MAX)
		blocks = KVR_EVENT_BLOCKS_MAX;
	region->event_blocks = blocks;
	region->region_bytes += blocks * EVENT_BYTES;
}

static int
router_make_region(struct simulation *s, const struct kvr_options *region,
    struct router *router)
{
	struct kvr_options o = *region;
	uint32_t w;
	int e;

	if (s->options.index == SIMULATE_ORACLE)
		o.ttl_ns = 0;
	if (s->options.affinity != 0)
		o.affinity_entries = AFFINITY_ENTRIES;
	if (s->options.index == SIMULATE_EVENTS)
		add_event_blocks(&s->options, &o);
	e = kvr_new(&o, &router->k);
	if (e == KVR_OK)
		e = fleet_new(router->k, s->options.workers, &router->fleet);
	for (w = 0; e == KVR_OK && w < s->options.workers; w++)
		e = tell_facts(s, router, w);
	return e == KVR_OK ? router_set_policy(&s->options, router->k,
	    region->block_size) : e;
}

int
routers_make(struct simulation *s, const struct kvr_options *region)
{
	uint32_t i;
	int e = KVR_OK;

	s->routers = calloc(s->options.replicas, sizeof(*s->routers));
	if (s->routers == NULL)
		return KVR_ENOMEM;
	for (i = 0; e == KVR_OK && i < s->options.replicas; i++) {
		struct router *router = &s->routers[i];

		router->booked = calloc(s->options.workers,
		    sizeof(*router->booked));
		router->late = calloc(s->options.replicas,
		    sizeof(*router->late));
		if (router->booked == NULL || router->late == NULL)
			e = KVR_ENOMEM;
		else if (s->options.policy >= SIMULATE_DYNAMO)
			e = router_make_region(s, region, router);
	}
	return e;
}

void
routers_free(struct simulation *s)
{
	uint32_t i;

	for (i = 0; s->routers != NULL && i < s->options.replicas; i++) {
		kvr_free(s->routers[i].k);
		fleet_free(s->routers[i].fleet);
		free(s->routers[i].booked);
		free(s->routers[i].late);
	}
	free(s->routers);
}

int
routers_join(struct simulation *s, uint32_t worker)
{
	uint32_t i;
	int e = KVR_OK;

	for (i = 0; e == KVR_OK && i < s->options.replicas; i++) {
		struct router *router = &s->routers[i];

		if (router->k == NULL)
			continue;
		e = fleet_join(router->fleet, router->k, worker);
		if (e == KVR_OK)
			e = tell_facts(s, router, worker);
	}
	return e;
}

int
routers_leave(struct simulation *s, uint32_t worker)
{
	uint32_t i;
	int e = KVR_OK;

	for (i = 0; e == KVR_OK && i < s->options.replicas; i++)
		if (s->routers[i].k != NULL)
			e = fleet_leave(s->routers[i].fleet, s->routers[i].k,
			    worker);
	return e;
}

int
routers_drain(struct simulation *s, uint32_t worker, bool drain)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint32_t i;
	int e = KVR_OK;

	for (i = 0; e == KVR_OK && i < s->options.replicas; i++) {
		struct router *router = &s->routers[i];
		uint64_t id;

		if (router->k == NULL)
			continue;
		id = fleet_id(router->fleet, worker);
		e = kvr_worker_get(router->k, id, &facts);
		facts.state = drain ? KVR_STATE_DRAINING : KVR_STATE_UP;
		if (e == KVR_OK)
			e = kvr_worker_set(router->k, id, &facts);
	}
	return e;
}

/* Adds the counters of simulate_index_stats. */
static void
add_stats(struct kvr_stats *sum, const struct kvr_stats *t)
{
	sum->region_bytes += t->region_bytes;
	sum->cells += t->cells;
	sum->cells_free += t->cells_free;
	sum->entries += t->entries;
	sum->held_blocks += t->held_blocks;
	sum->calibration.reports += t->calibration.reports;
	sum->calibration.unreported += t->calibration.unreported;
	sum->expired += t->expired;
	sum->evicted_capacity += t->evicted_capacity;
	sum->evicted_region += t->evicted_region;
	sum->truncated += t->truncated;
}

int
simulate_index_stats(const struct simulation *s, struct kvr_stats *sum)
{
	struct kvr_stats t = { .size = sizeof(t) };
	uint32_t i;
	int e = KVR_OK;

	memset(sum, 0, sizeof(*sum));
	for (i = 0; e == KVR_OK && i < s->options.replicas; i++) {
		if (s->routers[i].k == NULL)
			continue;
		e = kvr_stats_get(s->routers[i].k, &t);
		if (e == KVR_OK)
			add_stats(sum, &t);
	}
	return e;
}

/* --------------------------------------------------- requests it holds --- */

struct held *
held_by(const struct simulation *s, uint32_t router, size_t ride)
{
	return &s->held[ride * s->options.replicas + router];
}

/* With the session of the request, if it names one. */
int
router_request(const struct simulation *s, const struct router *router,
    uint64_t session, struct kvr_request *request)
{
	kvr_request_init(request, sizeof(*request));
	if (s->options.affinity == 0 || session == 0)
		return KVR_OK;
	request->affinity_mode = s->options.affinity - 1;
	return kvr_affinity_key(router->k, NULL, 0, &session, sizeof(session),
	    &request->affinity);
}

/* The owner of leases of another router's requests: unlike its own, 0. */
static uint64_t
owner_of(uint32_t origin)
{
	return UINT64_C(0xffffffff) << 32 | origin;
}

/*
 * Repeats another router's decision, by its own belief of the worker. If it has
 * the worker's blocks as of now, the request's own blocks may be there already:
 * then by the other one's prediction.
 */
static int
follow_decision(const struct simulation *s, const struct router *router,
    struct kvr_prompt *p, const struct notice *n, struct held *h)
{
	bool alone = s->options.exchange == SIMULATE_BOOKINGS;
	struct kvr_decision own = { .size = sizeof(own) };
	struct kvr_request request;
	int e = router_request(s, router, n->session, &request);

	if (e != KVR_OK)
		return e;
	request.owner = owner_of(n->origin);
	if (alone)
		request.flags = KVR_IGNORE_REUSE;
	if (alone || s->options.index >= SIMULATE_EVENTS)
		request.overlap_blocks = (uint32_t)(n->predicted /
		    s->block_size);
	e = kvr_lease_open_on(router->k, p, &request, fleet_id(router->fleet,
	    n->worker), s->now, &own);
	h->lease = own.lease;
	h->prefill_tokens = n->tokens - own.overlap_tokens;
	return e;
}

static int
hear_open(struct simulation *s, uint32_t number, struct kvr_prompt *p,
    const struct notice *n)
{
	struct router *router = &s->routers[number];
	struct held *h = held_by(s, number, n->ride);
	int e = router_let_go(s, number, n->ride);

	*h = (struct held){ .lease = n->lease, .since = n->sent,
	    .prefill_tokens = n->tokens - n->predicted, .worker = n->worker,
	    .origin = n->origin };
	if (s->options.exchange == SIMULATE_BOOKINGS && number != n->origin)
		h->output_blocks = (uint32_t)(n->tokens / s->block_size);
	if (e == KVR_OK && router->k != NULL && number != n->origin)
		e = follow_decision(s, router, p, n, h);
	if (e == KVR_OK && router->k != NULL)
		e = kvr_lease_commit(router->k, h->lease, s->now, 0);
	if (e == KVR_OK && s->options.exchange != SIMULATE_BOOKINGS)
		e = rivals_hear(s, number, n->worker, n->list, n->n_list);
	if (e != KVR_OK)
		return e;
	h->open = true;
	router->turn++;
	router->booked[n->worker].requests++;
	router->booked[n->worker].prefill_tokens += h->prefill_tokens;
	return KVR_OK;
}

static void
end_prefill(struct router *router, struct held *h)
{
	router->booked[h->worker].prefill_tokens -= h->prefill_tokens;
	h->prefill_tokens = 0;
}

/* Without the lease. */
static void
close_held(struct router *router, struct held *h)
{
	end_prefill(router, h);
	router->booked[h->worker].requests--;
	h->open = false;
}

int
router_hear(struct simulation *s, uint32_t number, struct kvr_prompt *p,
    const struct notice *n)
{
	struct router *router = &s->routers[number];
	struct held *h = held_by(s, number, n->ride);

	if (n->kind == NOTICE_OPEN)
		return hear_open(s, number, p, n);
	if (!h->open)
		return KVR_OK; /* it did not hear of the beginning */
	if (n->kind == NOTICE_FIRST_TOKEN)
		end_prefill(router, h);
	else if (n->kind == NOTICE_OUTPUT)
		h->output_blocks += n->blocks;
	else
		close_held(router, h);
	if (router->k == NULL)
		return KVR_OK;
	if (n->kind == NOTICE_FIRST_TOKEN)
		return kvr_lease_first_token(router->k, h->lease, s->now, 0);
	if (n->kind == NOTICE_OUTPUT)
		return kvr_lease_output(router->k, h->lease, n->blocks, s->now,
		    0);
	if (n->kind == NOTICE_FINISH)
		return kvr_lease_finish(router->k, h->lease, &n->report,
		    s->now, 0);
	return kvr_lease_abort(router->k, h->lease, s->now, 0);
}

int
router_learn(struct simulation *s, uint32_t number, struct kvr_prompt *p,
    const struct notice *n)
{
	struct router *router = &s->routers[number];

	if (router->k != NULL)
		return kvr_observe(router->k, p, fleet_id(router->fleet,
		    n->worker), s->now,
		    s->options.exchange == SIMULATE_PREFIXES_LOADS
		    ? KVR_ENDED : 0, NULL); /* its load comes separately */
	return rivals_hear(s, number, n->worker, n->list, n->n_list);
}

int
router_let_go(struct simulation *s, uint32_t number, size_t ride)
{
	struct router *router = &s->routers[number];
	struct held *h = held_by(s, number, ride);

	if (!h->open)
		return KVR_OK;
	close_held(router, h);
	return router->k == NULL ? KVR_OK : kvr_lease_finish(router->k,
	    h->lease, NULL, s->now, 0);
}

int
router_drop(struct simulation *s, uint32_t number, uint32_t origin)
{
	struct router *router = &s->routers[number];
	uint64_t cursor = 0;
	size_t i;
	int e = KVR_OK;

	for (i = s->oldest; i < s->n_rides; i++) {
		struct held *h = held_by(s, number, i);

		if (h->open && h->origin == origin)
			close_held(router, h);
	}
	if (router->k != NULL)
		do {
			e = kvr_owner_reap(router->k, owner_of(origin), s->now,
			    &cursor, NULL);
		} while (e == KVR_OK && cursor != 0);
	return e;
}

/* ------------------------------------------------------------ lateness --- */

/* The pace is a mean over PACE_S that fades. */
void
router_count(struct simulation *s, uint32_t number)
{
	struct router *router = &s->routers[number];
	double passed = (double)(s->now - router->pace_at) / 1e9;

	router->pace = router->pace * exp(-passed / PACE_S) + 1.0 / PACE_S;
	router->pace_at = s->now;
}

bool
router_late(const struct simulation *s, uint32_t router, int64_t sent)
{
	double each = s->routers[router].pace / (s->n_up > 0 ? s->n_up : 1);
	double limit = LATE_REQUESTS * 1e9;

	if (!s->options.degrade)
		return false;
	limit = each * (double)LATE_NS > limit ? limit / each : (double)LATE_NS;
	return (double)(s->now - sent) > limit;
}
