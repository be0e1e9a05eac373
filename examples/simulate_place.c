/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_place.c - who gets a request: see simulate.h.
 *
 *   round-robin, random     nothing is known
 *   least-loaded            what this router booked: requests, prefill
 *   dynamo, two-tier :ttl   the library, with an index of what was sent where
 *   dynamo, two-tier :oracle the library's cost, with what the engines hold
 *
 * The oracle's region has a TTL of 0. It remembers what is running and nothing
 * else, so its matches are the blocks in use by running requests, which the
 * cost counts. How much of a prompt is cached is asked of the engines, and the
 * prefill that waits follows from that: the leases book none, set_load does.
 */
#include "simulate_in.h"

#include <string.h>

const char *const simulate_policy_names[SIMULATE_POLICIES] = {
	[SIMULATE_ROUND_ROBIN] = "round-robin",
	[SIMULATE_RANDOM] = "random",
	[SIMULATE_LEAST_LOADED] = "least-loaded",
	[SIMULATE_DYNAMO] = "dynamo",
	[SIMULATE_TWO_TIER] = "two-tier"
};

static bool
is_oracle(const struct simulation *s)
{
	return s->k != NULL && s->options.index == SIMULATE_ORACLE;
}

/* The oracle's bookings of prefill are its own. */
int
place_load(struct simulation *s, uint32_t worker)
{
	struct kvr_load load;

	if (!is_oracle(s))
		return KVR_OK;
	memset(&load, 0, sizeof(load));
	load.size = sizeof(load);
	load.prefill_tokens = s->booked[worker].prefill_tokens;
	return kvr_worker_set_load(s->k, fleet_id(s->fleet, worker), &load);
}

/* Fewer requests, then less to prefill, then by lot. */
static uint32_t
least_loaded(struct simulation *s)
{
	const struct booked *b = s->booked;
	uint32_t best = 0, ties = 1, i;

	for (i = 1; i < s->options.workers; i++) {
		if (b[i].requests > b[best].requests ||
		    (b[i].requests == b[best].requests &&
		    b[i].prefill_tokens > b[best].prefill_tokens))
			continue;
		if (b[i].requests < b[best].requests ||
		    b[i].prefill_tokens < b[best].prefill_tokens)
			ties = 0;
		if (rng_between(&s->rng, 0, ties++) == 0)
			best = i;
	}
	return best;
}

static int
place_plain(struct simulation *s, struct ride *r)
{
	uint32_t n = s->options.workers;

	if (s->options.policy == SIMULATE_ROUND_ROBIN)
		r->worker = s->turn++ % n;
	else if (s->options.policy == SIMULATE_RANDOM)
		r->worker = (uint32_t)rng_between(&s->rng, 0, n - 1);
	else
		r->worker = least_loaded(s);
	return KVR_OK;
}

static int
place_by_index(struct simulation *s, struct kvr_prompt *p, struct ride *r)
{
	struct kvr_decision d = { .size = sizeof(d) };
	int e = kvr_reserve(s->k, p, NULL, s->now, &d);

	if (e != KVR_OK)
		return e;
	r->worker = fleet_number(s->fleet, d.worker);
	r->lease = d.lease;
	r->predicted = d.overlap_tokens;
	return KVR_OK;
}

/*
 * What the engines hold, and what of it is in use: of the oracle's region a
 * match finds nothing else.
 */
static int
see(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q)
{
	struct kvr_overlap *o;
	size_t n, i;
	uint32_t w;
	int e = kvr_match(s->k, p, s->now, s->used, sizeof(*s->used),
	    s->options.workers, &n);

	if (e != KVR_OK)
		return e;
	for (w = 0; w < s->options.workers; w++) {
		o = &s->seen[w];
		memset(o, 0, sizeof(*o));
		o->worker = fleet_id(s->fleet, w);
		o->tokens = (uint32_t)engine_cached(s->engines[w], q);
		o->blocks = o->tokens / s->block_size;
	}
	for (i = 0; i < n; i++) {
		w = fleet_number(s->fleet, s->used[i].worker);
		s->seen[w].active_blocks = s->used[i].active_blocks;
	}
	return KVR_OK;
}

static int
place_by_oracle(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, struct ride *r)
{
	struct kvr_decision d = { .size = sizeof(d) }, booked = d;
	struct kvr_request request;
	int e = see(s, p, q);

	if (e == KVR_OK)
		e = kvr_choose(s->k, p, NULL, s->seen, sizeof(*s->seen),
		    s->options.workers, s->now, &d);
	if (e != KVR_OK)
		return e;
	kvr_request_init(&request, sizeof(request));
	request.flags = KVR_IGNORE_PREFILL;
	e = kvr_reserve_on(s->k, p, &request, d.worker, s->now, &booked);
	if (e != KVR_OK)
		return e;
	r->worker = fleet_number(s->fleet, d.worker);
	r->lease = booked.lease;
	r->predicted = d.overlap_tokens;
	return KVR_OK;
}

int
place_request(struct simulation *s, struct kvr_prompt *p,
    const struct engine_request *q, struct ride *r)
{
	int e;

	if (s->k == NULL)
		e = place_plain(s, r);
	else if (is_oracle(s))
		e = place_by_oracle(s, p, q, r);
	else
		e = place_by_index(s, p, r);
	if (e != KVR_OK)
		return e;
	s->booked[r->worker].requests++;
	s->booked[r->worker].prefill_tokens += r->tokens - r->predicted;
	e = place_load(s, r->worker);
	return e != KVR_OK || s->k == NULL ? e :
	    kvr_commit(s->k, r->lease, s->now, 0);
}
