/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.c - the effect of a request's affinity on its choice.
 *
 *	pinned, not eligible  before all of this
 *	hard                  the bound worker, if it is eligible and below
 *	                      the bound of the balanced cost
 *	no such worker        of workers that cost little more than the best
 *	                      the first one in the key's own order, if none
 *	                      has any of the prompt
 *	hash                  the first one in the key's own order that is
 *	                      eligible and below the bound, whatever it costs
 *
 * The blocks on record are predicted, booked as load and compared with reports,
 * whatever the binding is.
 *
 * The order of a key is that of rendezvous hashing (Thaler and Ravishankar,
 * 1998): lots of key and worker. A worker that leaves moves its own keys only.
 * Routers that exchange nothing agree on it. With the mode hard each of them
 * binds a session to a worker of its own.
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
	return r->stage == KVR_STAGE_DECODE ? 0 : r->affinity;
}

void
session_begin(struct question *q)
{
	struct session *s = &q->session;
	struct binding b;

	memset(s, 0, sizeof(*s));
	s->digest = digest_of(&q->request);
	if (s->digest == 0 || q->request.affinity_mode == KVR_AFFINITY_HASH ||
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

static uint64_t
lot_of(const struct question *q, uint32_t slot)
{
	return mix(q->session.digest ^
	    read_once(q->k->loads.identity[slot]));
}

/* The candidate that comes first in the key's order. */
static uint32_t
first_of(const struct question *q)
{
	struct set_walk w = set_walk(question_candidates(q), q->words);
	uint64_t lot, lowest = UINT64_MAX;
	uint32_t slot, first = 0;

	while (set_next(&w, &slot)) {
		lot = lot_of(q, slot);
		if (lot <= lowest) {
			lowest = lot;
			first = slot;
		}
	}
	return first;
}

bool
session_pins(const struct question *q, uint32_t *slot)
{
	const struct session *s = &q->session;

	if (s->digest != 0 &&
	    q->request.affinity_mode == KVR_AFFINITY_HASH) {
		*slot = first_of(q);
		return true;
	}
	*slot = s->slot;
	return s->bound && set_has(question_candidates(q), s->slot);
}

/* The choice by balanced costs has left them: none has any of the prompt. */
static void
take_near(const struct question *q, session_cost_fn *cost, struct choice *c)
{
	struct set_walk w = set_walk(question_candidates(q), q->words);
	double least = c->cost, *costs = q->set->costs;
	uint64_t lot, lowest = UINT64_MAX;
	uint32_t slot, good = 0;

	while (set_next(&w, &slot)) {
		if (q->policy.cost != KVR_COST_BALANCED)
			costs[slot] = cost(q, slot);
		least = costs[slot] < least ? costs[slot] : least;
	}
	w = set_walk(question_candidates(q), q->words);
	while (set_next(&w, &slot)) {
		if (costs[slot] > least * LITTLE_MORE)
			continue;
		good++;
		lot = lot_of(q, slot);
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
		take_near(q, cost, c);
}

void
session_close(const struct question *q, struct choice *c)
{
	const struct session *s = &q->session;

	c->affinity = s->bound && c->slot == s->slot ? KVR_AFFINITY_HIT
	    : s->state;
	c->session = s->binds ? s->digest : 0;
}
