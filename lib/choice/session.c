/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session.c - what the affinity of a request changes in its choice.
 *
 *	pinned, not eligible  before all of this
 *	hard                  the bound worker, if it is eligible
 *	soft, by cost         it counts as holding what the session sent
 *	                      there, as far as that has survived
 *	soft, after that      it is taken if it costs little more than the
 *	                      best: returning to it costs nothing
 *	no live binding       of workers that cost little more than the best
 *	                      the first one in the key's own order, if none
 *	                      has any of the prompt
 *
 * A CREDIT is a belief, an overlap is on record. So where another worker has
 * more of this very prompt on record than the bound one, by more than a
 * sixteenth of the prompt, the session has been there since, by way of another
 * router or of a full table, and the binding does not count. Less than that is
 * what prompts have in common anyway: a system prompt, the first words of a
 * compacted history.
 *
 * The credit enters costs alone. What is predicted, booked as load and compared
 * with reports is what is on record.
 *
 * The order of a key is that of rendezvous hashing (Thaler and Ravishankar,
 * 1998): lots of key and worker. A worker that leaves moves its own keys only.
 *
 * A request without a key has a session that is all zero, but for `credited`:
 * then nothing here changes a choice.
 */
#include "session.h"

#include "affinity.h"
#include "expect.h"
#include "load.h"
#include "mix.h"
#include "set.h"

#define LITTLE_MORE 1.05
enum { EVIDENCE = 16 }; /* share of the prompt */

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

/* Whether another worker has more on record than the bound one. */
static bool
been_elsewhere(const struct question *q, uint32_t bound)
{
	double more = (double)q->p->blocks / EVIDENCE +
	    expect_recorded(q, bound, found_of(q->set, bound));
	const struct kvr_overlap *o = q->set->found;
	uint32_t i, slot;

	for (i = 0; i < q->set->count; i++) {
		slot = found_slot(&o[i]);
		if (slot / 64 < q->words && set_has(q->take, slot) &&
		    o[i].blocks > more &&
		    expect_recorded(q, slot, found_of(q->set, slot)) > more)
			return true;
	}
	return false;
}

/* Blocks that the bound worker counts as holding. */
static void
credit_find(struct question *q, const struct binding *b)
{
	uint64_t tokens = b->tokens < q->tokens ? b->tokens : q->tokens;
	double whole = (double)trust_usable(q->k, q->session.slot, q->tokens,
	    tokens) * affinity_survival(q->k, q->session.slot, b, q->now);

	q->session.promised = whole / (double)q->tokens;
	q->session.credit = whole * affinity_found(b) / q->block;
	if (q->session.credit > 0)
		q->session.credited = q->session.slot;
}

/* A binding that has not expired. */
static void
bound_find(struct question *q, const struct binding *b)
{
	struct session *s = &q->session;

	if (!worker_slot(q->k, b->worker, &s->slot) ||
	    s->slot / 64 >= q->words) {
		s->state = KVR_AFFINITY_GONE;
		return;
	}
	s->state = KVR_AFFINITY_MOVED;
	s->bound = true;
	s->eligible = set_has(q->take, s->slot);
	if (!s->eligible || (q->request.flags & KVR_IGNORE_REUSE) != 0)
		return;
	s->elsewhere = been_elsewhere(q, s->slot);
	if (!s->elsewhere)
		credit_find(q, b);
}

void
session_begin(struct question *q)
{
	struct session *s = &q->session;
	struct binding b;

	memset(s, 0, sizeof(*s));
	s->credited = NOT_CREDITED;
	s->digest = digest_of(&q->request);
	if (s->digest == 0 || q->request.affinity_mode == KVR_AFFINITY_TIE ||
	    q->k->layout.bindings == 0)
		return;
	s->state = KVR_AFFINITY_NEW;
	s->binds = (q->request.flags & KVR_IGNORE_REUSE) == 0;
	if (affinity_look(q->k, s->digest, q->now, &b))
		bound_find(q, &b);
}

bool
session_pins(const struct question *q)
{
	return q->session.eligible &&
	    q->request.affinity_mode == KVR_AFFINITY_HARD;
}

/* ----------------------------------------------------- after the costs --- */

/* The workers among which the policy chose. */
static const uint64_t *
candidates_of(const struct question *q)
{
	return q->policy.cost == KVR_COST_BALANCED ? q->below : q->take;
}

static void
return_to_bound(const struct question *q, session_cost_fn *cost,
    struct choice *c)
{
	const struct session *s = &q->session;
	double there;

	if (s->elsewhere)
		return;
	if (c->slot == s->slot) {
		if (s->credited == s->slot && s->credit >
		    expect_recorded(q, s->slot, found_of(q->set, s->slot)))
			c->reason = KVR_REASON_AFFINITY;
		return;
	}
	if (!set_has(candidates_of(q), s->slot))
		return;
	there = cost(q, s->slot);
	if (there > c->cost * LITTLE_MORE)
		return;
	c->slot = s->slot;
	c->cost = there;
	c->reason = KVR_REASON_AFFINITY;
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
	const struct session *s = &q->session;

	if (s->digest == 0 || q->request.temperature > 0 ||
	    (q->request.flags & KVR_IGNORE_REUSE) != 0)
		return;
	if (s->eligible)
		return_to_bound(q, cost, c);
	else if (q->set->count == 0)
		take_first(q, cost, c);
}

void
session_close(const struct question *q, struct choice *c)
{
	const struct session *s = &q->session;
	bool hit = s->bound && c->slot == s->slot;

	c->affinity = hit ? KVR_AFFINITY_HIT : s->state;
	c->session = s->binds ? s->digest : 0;
	c->promised = hit ? s->promised : 0;
}
