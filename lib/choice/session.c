/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.c - what the affinity of a request changes in its choice.
 *
 *	pinned, not eligible  before all of this
 *	hard                  the bound worker, if it is eligible and below
 *	                      the bound of the balanced cost
 *	tie, or no such       of workers that cost little more than the best
 *	worker                the first one in the key's own order, if none
 *	                      has any of the prompt
 *
 * What is predicted, booked as load and compared with reports is what is on
 * record, whatever the binding is.
 *
 * The order of a key is that of rendezvous hashing (Thaler and Ravishankar,
 * 1998): lots of key and worker. A worker that leaves moves its own keys only.
 *
 * A request without a key has a session that is all zero: then nothing here
 * changes a choice.
 */
#include "session.h"

#include "affinity.h"
#include "load.h"
#include "mix.h"
#include "set.h"

#define LITTLE_MORE 1.05

/* 0 if the request has none, or none that counts. */
static uint64_t
digest_of(const struct kvr_request *r)
{
	if (r->stage == KVR_STAGE_DECODE)
		return 0;
	if ((r->flags & KVR_IGNORE_REUSE) != 0 &&
	    r->affinity_mode != KVR_AFFINITY_HARD)
		return 0;
	return r->affinity;
}

void
session_begin(struct question *q)
{
	struct session *s = &q->session;
	struct binding b;

	memset(s, 0, sizeof(*s));
	s->digest = digest_of(&q->request);
	if (s->digest == 0 || q->request.affinity_mode == KVR_AFFINITY_TIE ||
	    q->k->layout.bindings == 0)
		return;
	s->state = KVR_AFFINITY_NEW;
	s->binds = (q->request.flags & KVR_IGNORE_REUSE) == 0;
	if (!affinity_look(q->k, s->digest, q->now, &b))
		return;
	s->bound = worker_slot(q->k, b.worker, &s->slot) &&
	    s->slot / 64 < q->words;
	s->state = s->bound ? KVR_AFFINITY_MOVED : KVR_AFFINITY_GONE;
}

/* The workers among which the policy chooses. */
static const uint64_t *
candidates_of(const struct question *q)
{
	return q->policy.cost == KVR_COST_BALANCED ? q->below : q->take;
}

bool
session_pins(const struct question *q)
{
	return q->session.bound && set_has(candidates_of(q), q->session.slot);
}

/* Routers that know nothing of each other take the same one. */
static void
take_first(const struct question *q, session_cost_fn *cost, struct choice *c)
{
	struct set_walk w = set_walk(candidates_of(q), q->words);
	double least = c->cost, *costs = q->set->costs;
	uint64_t lot, lowest = UINT64_MAX;
	uint32_t slot, good = 0;

	while (set_next(&w, &slot)) {
		costs[slot] = cost(q, slot);
		least = costs[slot] < least ? costs[slot] : least;
	}
	w = set_walk(candidates_of(q), q->words);
	while (set_next(&w, &slot)) {
		if (costs[slot] > least * LITTLE_MORE)
			continue;
		good++;
		lot = mix(q->session.digest ^
		    read_once(q->k->loads.identity[slot]));
		if (lot <= lowest) {
			lowest = lot;
			c->slot = slot;
		}
	}
	c->cost = costs[c->slot];
	if (good > 1)
		c->reason = KVR_REASON_AFFINITY;
}

void
session_prefer(const struct question *q, session_cost_fn *cost,
    struct choice *c)
{
	if (q->session.digest != 0 && q->request.temperature <= 0 &&
	    (q->request.flags & KVR_IGNORE_REUSE) == 0 && q->set->count == 0)
		take_first(q, cost, c);
}

void
session_close(const struct question *q, struct choice *c)
{
	const struct session *s = &q->session;

	c->affinity = s->bound && c->slot == s->slot ? KVR_AFFINITY_HIT
	    : s->state;
	c->session = s->binds ? s->digest : 0;
}
