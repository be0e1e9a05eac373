/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cost_dynamo.c - the cost of a worker under the reference's policy.
 *
 *   cost = scale * max(0, prefill - credit) + decode + weight * requests
 *
 *   prefill   tokens waiting there and this request's, in blocks
 *   credit    blocks of its prefix believed to be cached there; less when
 *             the worker has more waiting than others (decayed)
 *   decode    blocks in use there, and those this request adds
 *
 * For a decode stage: max(0, decode - credit). The result is multiplied by the
 * factor of the request's preferences (question_dislike) and divided by the
 * weight of the worker. The formula is that of NVIDIA Dynamo's cost function;
 * kvr_policy(3) has it in full.
 *
 * Nearly all requests need only the plain terms. For them the same sum takes
 * fewer steps, and for most workers none; see usual_found. The result is the
 * same to the bit: tests compare the two.
 */
#include "cost_dynamo.h"

#include "best.h"
#include "set.h"

INLINE double
above_zero(double x)
{
	return x > 0 ? x : 0;
}

static double
in_blocks(const struct question *q, double tokens)
{
	return q->per_token != 0 ? tokens * q->per_token : tokens / q->block;
}

/*
 * Overlap is worth less on a worker with more prefill waiting than the eligible
 * worker with the least, relative to the length of this prompt.
 */
static double
decay_of(const struct question *q, double prefill)
{
	double excess;

	if (!(q->decay > 0) || prefill <= q->least_prefill)
		return 1;
	excess = in_blocks(q, prefill - q->least_prefill);
	return 1 / (1 + q->decay * (excess / q->request_blocks));
}

/*
 * The total prefill in blocks, including the cached blocks of this request. An
 * overlap longer than the prompt counts as tokens too.
 */
static double
raw_prefill(const struct question *q, double prefill, uint32_t overlap)
{
	double tokens = prefill + (double)(overlap <= q->whole_blocks
	    ? q->tokens : prompt_blocks_tokens(q->p, overlap));

	return (q->request.flags & KVR_IGNORE_PREFILL) != 0 ? 0
	    : in_blocks(q, tokens);
}

INLINE double
cost_of(const struct question *q, uint32_t slot, const struct kvr_overlap *o,
    double held)
{
	const struct loads *l = &q->k->loads;
	const struct kvr_request *r = &q->request;
	double prefill = read_once_double(&l->prefill[slot]), weight;
	double credit, decode, cost;

	credit = r->overlap_credit * decay_of(q, prefill) * held;
	decode = read_once_double(&l->blocks[slot]) +
	    (double)question_new_blocks(q->p, r, o);
	if (r->stage == KVR_STAGE_DECODE)
		cost = above_zero(decode - credit);
	else
		cost = r->prefill_scale * above_zero(raw_prefill(q, prefill,
		    o->blocks) - credit) + decode;
	cost += q->policy.request_weight * (double)read_once(l->requests[slot]);
	if (r->n_preferences != 0)
		cost *=
		    question_dislike(r, read_once(q->k->slots[slot].taints));
	if (q->weighted) {
		weight = read_once_double(&q->k->slots[slot].weight);
		if (weight != 1)
			cost /= weight;
	}
	return cost_within(cost);
}

double
dynamo_cost(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, double held)
{
	return cost_of(q, slot, o, held);
}

double
dynamo_find(struct question *q)
{
	struct set_walk w = set_walk(q->take, q->words);
	double *costs = q->set->costs, lowest = 2 * COST_MAX, cost;
	const struct kvr_overlap *o;
	struct set_run run;

	while (set_next_run(&w, &run)) {
		for (; run.from < run.to; run.from++) {
			o = found_of(q->set, run.from);
			cost = cost_of(q, run.from, o, o->blocks);
			costs[run.from] = cost;
			lowest = cost < lowest ? cost : lowest;
		}
	}
	return lowest;
}

/* ------------------------------------------------------ the usual case --- */

/*
 * The usual case, in which most terms are absent; the rest is the same to the
 * bit. Workers with the same overlap differ only in their loads, and none of
 * them costs less than an idle one would.
 */
struct share {
	double tokens; /* prefill tokens that the request brings */
	double credit; /* prefill blocks that the overlap saves */
	double decode; /* decode blocks that the request brings */
	double own;    /* the cost of its own prefill */
	double least;  /* the lowest cost of a worker */
};

struct usual {
	double scale, per_token, per_request;
};

INLINE double
usual_sum(struct usual u, struct share s, double prefill, double blocks,
    double requests)
{
	double cost = u.scale * above_zero((prefill + s.tokens) *
	    u.per_token - s.credit) + (blocks + s.decode);

	cost += u.per_request * requests;
	return cost < COST_MAX ? cost : COST_MAX;
}

INLINE struct bid
usual_bid(const struct loads *l, struct usual u, struct share s,
    uint32_t slot)
{
	struct bid bid = { s.least, 0, 0, 0, slot };

	/* idle workers are common */
	if ((read_once_bits(&l->prefill[slot]) |
		read_once_bits(&l->blocks[slot]) |
		read_once(l->requests[slot])) != 0) {
		bid = bid_of(l, slot);
		bid.cost = cost_within(usual_sum(u, s, bid.prefill,
		    bid.blocks, (double)bid.requests));
	}
	return bid;
}

static struct share
share_of(const struct question *q, struct usual u, const struct kvr_overlap *o)
{
	struct share s;

	s.tokens = (double)(o->blocks <= q->whole_blocks ? q->tokens
	    : prompt_blocks_tokens(q->p, o->blocks));
	s.credit = q->request.overlap_credit * (double)o->blocks;
	s.decode = (double)question_new_blocks(q->p, &q->request, o);
	s.own = u.scale * above_zero(s.tokens * u.per_token - s.credit);
	s.least = usual_sum(u, s, 0, 0, 0);
	return s;
}

/*
 * Whether a worker would cost more than the best even if no prefill were
 * waiting there. Every step of the sum is monotonic, so then it does cost more.
 */
INLINE bool
usual_hopeless(const struct loads *l, struct share s, uint32_t slot,
    const struct best *best)
{
	double least = s.own + (read_once_double(&l->blocks[slot]) + s.decode);

	return (least < COST_MAX ? least : COST_MAX) > best->bid.cost;
}

/* Workers with an overlap. The deepest come first, so most are skipped. */
INLINE void
usual_found(const struct question *q, struct usual u, struct best *best)
{
	const struct kvr_overlap *o = q->set->found;
	const uint32_t *places = q->set->places, base = q->set->base;
	const uint32_t count = q->set->count, slots = q->slots;
	const struct loads l = q->k->loads;
	struct share s = { 0, 0, 0, 0, 0 };
	uint32_t i, slot;

	for (i = 0; i < count; i++, o++) {
		if (i == 0 || o->blocks != o[-1].blocks ||
		    o->active_blocks != o[-1].active_blocks)
			s = share_of(q, u, o);
		slot = found_slot(o);
		if (s.least > best->bid.cost || slot >= slots ||
		    usual_hopeless(&l, s, slot, best))
			continue;
		if (set_has(q->take, slot) && places[slot] - base == i)
			consider(q, best, usual_bid(&l, u, s, slot));
	}
}

/*
 * Workers without an overlap. A worker with one hardly ever costs more because
 * of it, so the overlap is looked up only if the worker would be the best
 * without.
 */
INLINE void
usual_rest(const struct question *q, struct usual u, struct best *best)
{
	static const struct kvr_overlap none;
	const struct share s = share_of(q, u, &none);
	const struct loads l = q->k->loads;
	struct set_walk w = set_walk(q->take, q->words);
	struct bid bid;
	uint32_t slot;

	if (s.least > best->bid.cost)
		return;
	while (set_next(&w, &slot)) {
		if (usual_hopeless(&l, s, slot, best))
			continue;
		bid = usual_bid(&l, u, s, slot);
		if (bid.cost <= best->bid.cost && !found_has(q->set, slot))
			consider(q, best, bid);
	}
}

void
dynamo_take_usual(const struct question *q, struct choice *out)
{
	const struct usual u = { q->request.prefill_scale, q->per_token,
	    q->policy.request_weight };
	struct best best = best_none();

	usual_found(q, u, &best);
	usual_rest(q, u, &best);
	take_best(&best, out);
}

/*
 * Determines which terms of the cost are present. Weights below 0, of a damaged
 * policy, are not usual, so there only loads can make a sum negative.
 */
void
dynamo_simplify(struct question *q)
{
	const uint32_t ignore = KVR_IGNORE_PREFILL | KVR_IGNORE_REUSE;
	const struct kvr_request *r = &q->request;

	q->decay = (r->flags & KVR_IGNORE_PREFILL) != 0 ? 0
	    : q->policy.overlap_decay;
	q->usual = (r->flags & ignore) == 0 && r->n_preferences == 0 &&
	    r->stage != KVR_STAGE_DECODE && !(q->decay > 0) &&
	    q->per_token != 0 && r->prefill_scale >= 0 &&
	    q->policy.request_weight >= 0;
}
