/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_router.c - the routers and their leases.
 *
 * Requests are distributed to the routers in turn. A router knows its own
 * requests; routers that exchange know all requests:
 *
 *   request     0    1    2    3         alone:     A knows 0, 2
 *   router      A    B    A    B                    B knows 1, 3
 *                                        exchange:  both know 0, 1, 2, 3
 *
 * They exchange which worker got which prompt, then every lease call, without
 * delay. The predicted overlap is included only with the oracle, because its
 * index cannot predict. All regions have the same secret and the same workers
 * in the same order.
 */
#include "simulate_in.h"

#include <stdlib.h>
#include <string.h>

/* More than any trace has: the capacity of an endless cache. */
#define ENDLESS_TOKENS (UINT64_C(1) << 50)

/* --------------------------------------------------------------- making --- */

static uint32_t
eviction_told(const struct simulate_options *o)
{
	return o->told && o->eviction == ENGINE_EVICT_LEAF ? KVR_EVICT_LEAF :
	    KVR_EVICT_RELEASED;
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
	facts.block_tokens = o->told ? o->engine_block : 0;
	if (o->told && o->n_sequences > 0)
		facts.sequences = o->sequences[worker % o->n_sequences];
	if (o->index == SIMULATE_CAPACITY) {
		/* as it would be told: believed until reports contradict */
		facts.capacity_tokens = capacity == 0 ? ENDLESS_TOKENS :
		    capacity;
	} else if (o->index != SIMULATE_FEEDBACK) {
		facts.retain = KVR_RETAIN_TTL;
	}
	return kvr_worker_set(router->k, id, &facts);
}

static int
router_set_policy(const struct simulate_options *o, struct kvr *k)
{
	static const uint32_t costs[SIMULATE_POLICIES] = {
		[SIMULATE_DYNAMO] = KVR_COST_DYNAMO,
		[SIMULATE_TWO_TIER] = KVR_COST_TWO_TIER,
		[SIMULATE_BALANCED] = KVR_COST_BALANCED,
		[SIMULATE_LMETRIC] = KVR_COST_DYNAMO /* not asked */
	};
	struct kvr_policy policy;

	kvr_policy_init(&policy, sizeof(policy));
	policy.cost = costs[o->policy];
	if (o->common_rate)
		policy.balanced_prior = 1e9; /* s: always the fleet's rate */
	return kvr_policy_set(k, &policy);
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
	e = kvr_new(&o, &router->k);
	if (e == KVR_OK)
		e = fleet_new(router->k, s->options.workers, &router->fleet);
	for (w = 0; e == KVR_OK && w < s->options.workers; w++)
		e = tell_facts(s, router, w);
	return e == KVR_OK ? router_set_policy(&s->options, router->k) : e;
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
		if (router->booked == NULL)
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

/* Adds what simulate_index_stats reports. */
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
	sum->calibration.purges += t->calibration.purges;
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
		e = kvr_stats(s->routers[i].k, &t);
		if (e == KVR_OK)
			add_stats(sum, &t);
	}
	return e;
}

/* ----------------------------------------------------- a ride's leases --- */

bool
router_knows(const struct simulation *s, uint32_t router,
    const struct ride *r)
{
	return s->options.exchange || router == r->router;
}

static uint64_t *
lease_of(const struct simulation *s, uint32_t router, const struct ride *r)
{
	return &s->leases[(size_t)(r - s->rides) * s->options.replicas +
	    router];
}

static struct booked *
booking(const struct simulation *s, uint32_t router, const struct ride *r)
{
	return &s->routers[router].booked[r->worker];
}

/* Repeats another router's decision. */
static int
follow(const struct simulation *s, uint32_t router, struct kvr_prompt *p,
    const struct ride *r)
{
	struct router *told = &s->routers[router];
	struct kvr_decision own = { .size = sizeof(own) };
	struct kvr_request request;
	int e;

	kvr_request_init(&request, sizeof(request));
	if (s->options.index == SIMULATE_ORACLE)
		request.overlap_blocks = (uint32_t)(r->predicted /
		    s->block_size);
	e = kvr_lease_open_on(told->k, p, &request, fleet_id(told->fleet,
	    r->worker), s->now, &own);
	if (e == KVR_OK)
		*lease_of(s, router, r) = own.lease;
	return e;
}

static int
book(struct simulation *s, uint32_t router, struct kvr_prompt *p,
    const struct ride *r, const struct kvr_decision *d)
{
	struct kvr *k = s->routers[router].k;
	struct booked *b = booking(s, router, r);
	int e = KVR_OK;

	b->requests++;
	b->prefill_tokens += r->tokens - r->predicted;
	s->routers[router].turn++;
	if (k == NULL)
		return KVR_OK;
	if (router == r->router)
		*lease_of(s, router, r) = d->lease;
	else
		e = follow(s, router, p, r);
	return e == KVR_OK
	    ? kvr_lease_commit(k, *lease_of(s, router, r), s->now, 0)
	    : e;
}

int
routers_book(struct simulation *s, struct kvr_prompt *p,
    const struct ride *r, const struct kvr_decision *d)
{
	uint32_t i;
	int e = KVR_OK;

	for (i = 0; e == KVR_OK && i < s->options.replicas; i++)
		if (router_knows(s, i, r))
			e = book(s, i, p, r, d);
	return e;
}

int
routers_first_token(struct simulation *s, const struct ride *r)
{
	uint32_t i;
	int e = KVR_OK;

	for (i = 0; e == KVR_OK && i < s->options.replicas; i++) {
		if (!router_knows(s, i, r))
			continue;
		booking(s, i, r)->prefill_tokens -= r->tokens - r->predicted;
		if (s->routers[i].k != NULL)
			e = kvr_lease_first_token(s->routers[i].k,
			    *lease_of(s, i, r), s->now, 0);
	}
	return e;
}

int
routers_generated(struct simulation *s, const struct ride *r,
    uint32_t blocks)
{
	uint32_t i;
	int e = KVR_OK;

	for (i = 0; e == KVR_OK && i < s->options.replicas; i++)
		if (s->routers[i].k != NULL && router_knows(s, i, r))
			e = kvr_lease_output(s->routers[i].k,
			    *lease_of(s, i, r), blocks, s->now, 0);
	return e;
}

int
routers_finished(struct simulation *s, const struct ride *r,
    const struct kvr_report *report)
{
	uint32_t i;
	int e = KVR_OK;

	for (i = 0; e == KVR_OK && i < s->options.replicas; i++) {
		if (!router_knows(s, i, r))
			continue;
		booking(s, i, r)->requests--;
		if (s->routers[i].k != NULL)
			e = kvr_lease_finish(s->routers[i].k,
			    *lease_of(s, i, r), report, s->now, 0);
	}
	return e;
}

int
routers_refused(struct simulation *s, const struct ride *r)
{
	uint32_t i;
	int e = KVR_OK;

	for (i = 0; e == KVR_OK && i < s->options.replicas; i++) {
		if (!router_knows(s, i, r))
			continue;
		booking(s, i, r)->requests--;
		if (r->first < 0)
			booking(s, i, r)->prefill_tokens -=
			    r->tokens - r->predicted;
		if (s->routers[i].k != NULL)
			e = kvr_lease_abort(s->routers[i].k, *lease_of(s, i, r),
			    s->now, 0);
	}
	return e;
}
