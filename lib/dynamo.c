/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dynamo.c - what a worker costs by the reference's policy.
 *
 *   cost = scale * max(0, prefill - credit) + decode + weight * requests
 *
 *   prefill   tokens waiting there and this request's, in blocks
 *   credit    blocks of its prefix that are believed cached there; less when
 *             the worker has more waiting than others (decayed)
 *   decode    blocks in use there, and those this request adds
 *
 * For a decode stage: max(0, decode - credit). Then more for workers that the
 * request would rather avoid, and divided by the weight. The formula is
 * that of NVIDIA Dynamo's cost function; kvr_policy(3) has it in full.
 *
 * Nearly all requests need but the plain terms. For them the same sum is made
 * by fewer steps, and for most workers not at all; see usual_found. The result
 * is the same to the bit: tests compare the two.
 */
#include "bid.h"
#include "exp.h"

uint32_t
route_new_blocks(const struct kvr_prompt *p, const struct kvr_request *r,
    const struct kvr_overlap *o)
{
	if ((r->flags & KVR_IGNORE_REUSE) != 0)
		return p->blocks;
	return o->active_blocks < p->blocks ? p->blocks - o->active_blocks : 0;
}

INLINE double
above_zero(double x)
{
	return x > 0 ? x : 0;
}

static double
in_blocks(const struct route *t, double tokens)
{
	return t->per_token != 0 ? tokens * t->per_token : tokens / t->block;
}

/*
 * Overlap is worth less on a worker with more prefill waiting than the least
 * of the eligible has, measured by the length of this prompt.
 */
static double
decayed(const struct route *t, double prefill)
{
	double excess;

	if (!(t->decay > 0) || prefill <= t->least_prefill)
		return 1;
	excess = in_blocks(t, prefill - t->least_prefill);
	return 1 / (1 + t->decay * (excess / t->request_blocks));
}

/* Above 1: to be avoided. */
double
route_disliking(const struct kvr_request *r, uint64_t taints)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < r->n_preferences; i++)
		if ((taints & r->preferences[i].taints) != 0)
			sum += r->preferences[i].weight;
	return sum == 0 ? 1 : exp_of(-exp_tanh(sum));
}

/*
 * Prefill there would be, in blocks, this request's cached ones among them.
 * An overlap longer than the prompt, if there is one, counts as tokens too.
 */
static double
raw_prefill(const struct route *t, double prefill, uint32_t overlap)
{
	double tokens = prefill + (double)(overlap <= t->whole_blocks
	    ? t->tokens : prompt_blocks_tokens(t->p, overlap));

	return (t->request.flags & KVR_IGNORE_PREFILL) != 0 ? 0
	    : in_blocks(t, tokens);
}

double
dynamo_cost(const struct route *t, uint32_t slot,
    const struct kvr_overlap *o, double held)
{
	const struct loads *l = &t->k->loads;
	const struct kvr_request *r = &t->request;
	double prefill = look_double(&l->prefill[slot]), weight;
	double credit, decode, cost;

	credit = r->overlap_credit * decayed(t, prefill) * held;
	decode = look_double(&l->blocks[slot]) +
	    (double)route_new_blocks(t->p, r, o);
	if (r->stage == KVR_STAGE_DECODE)
		cost = above_zero(decode - credit);
	else
		cost = r->prefill_scale * above_zero(raw_prefill(t, prefill,
		    o->blocks) - credit) + decode;
	cost += t->policy.request_weight * (double)look(l->requests[slot]);
	if (r->n_preferences != 0)
		cost *= route_disliking(r, look(t->k->slots[slot].taints));
	if (t->weighted) {
		weight = look_double(&t->k->slots[slot].weight);
		if (weight != 1)
			cost /= weight;
	}
	return cost <= COST_MAX ? cost : COST_MAX;
}

/* ------------------------------------------------------ the usual case --- */

/*
 * The usual case, in which most parts of the sum are absent; what is left is
 * the same to the bit. Workers with the same overlap differ by their loads
 * alone, and none of them costs less than one without load would.
 */
struct share {
	double tokens; /* of prefill that the request brings */
	double credit; /* blocks of prefill that the overlap saves */
	double decode; /* blocks of decode that the request brings */
	double own;    /* what its own prefill costs */
	double least;  /* that a worker can cost */
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

	/* many have no load, in many fleets */
	if ((look_bits(&l->prefill[slot]) | look_bits(&l->blocks[slot]) |
	    look(l->requests[slot])) != 0) {
		bid = bid_of(l, slot);
		bid.cost = usual_sum(u, s, bid.prefill, bid.blocks,
		    (double)bid.requests);
	}
	return bid;
}

static struct share
share_of(const struct route *t, struct usual u, const struct kvr_overlap *o)
{
	struct share s;

	s.tokens = (double)(o->blocks <= t->whole_blocks ? t->tokens
	    : prompt_blocks_tokens(t->p, o->blocks));
	s.credit = t->request.overlap_credit * (double)o->blocks;
	s.decode = (double)route_new_blocks(t->p, &t->request, o);
	s.own = u.scale * above_zero(s.tokens * u.per_token - s.credit);
	s.least = usual_sum(u, s, 0, 0, 0);
	return s;
}

/*
 * Would he cost more with the blocks he has, had he no prefill waiting? All
 * steps of the sum only rise with what goes in, so then he does cost more.
 */
INLINE bool
usual_hopeless(const struct loads *l, struct share s, uint32_t slot,
    const struct best *best)
{
	double least = s.own + (look_double(&l->blocks[slot]) + s.decode);

	return (least < COST_MAX ? least : COST_MAX) > best->bid.cost;
}

/* Those with an overlap. The deepest come first, so most others are passed. */
INLINE void
usual_found(const struct route *t, struct usual u, struct best *best)
{
	const struct kvr_overlap *o = t->set->found;
	const uint32_t *places = t->set->places, base = t->set->base;
	const uint32_t count = t->set->count, slots = t->slots;
	const struct loads l = t->k->loads;
	struct share s = { 0, 0, 0, 0, 0 };
	uint32_t i, slot;

	for (i = 0; i < count; i++, o++) {
		if (i == 0 || o->blocks != o[-1].blocks ||
		    o->active_blocks != o[-1].active_blocks)
			s = share_of(t, u, o);
		slot = found_slot(o);
		if (s.least > best->bid.cost || slot >= slots ||
		    usual_hopeless(&l, s, slot, best))
			continue;
		if (set_has(t->take, slot) && places[slot] - base == i)
			consider(t, best, usual_bid(&l, u, s, slot));
	}
}

/*
 * And those without. Who has an overlap costs hardly ever more with it, so it
 * is looked for only if he would be the best without.
 */
INLINE void
usual_rest(const struct route *t, struct usual u, struct best *best)
{
	static const struct kvr_overlap none;
	const struct share s = share_of(t, u, &none);
	const struct loads l = t->k->loads;
	struct set_walk w = set_walk(t->take, t->words);
	struct bid bid;
	uint32_t slot;

	if (s.least > best->bid.cost)
		return;
	while (set_next(&w, &slot)) {
		if (usual_hopeless(&l, s, slot, best))
			continue;
		bid = usual_bid(&l, u, s, slot);
		if (bid.cost <= best->bid.cost && !found_has(t->set, slot))
			consider(t, best, bid);
	}
}

void
dynamo_take_usual(const struct route *t, struct choice *out)
{
	const struct usual u = { t->request.prefill_scale, t->per_token,
	    t->policy.request_weight };
	struct best best = best_none();

	usual_found(t, u, &best);
	usual_rest(t, u, &best);
	take_best(&best, out);
}

/* Which parts of a cost there are at all. */
void
dynamo_simplify(struct route *t)
{
	const uint32_t ignore = KVR_IGNORE_PREFILL | KVR_IGNORE_REUSE;
	const struct kvr_request *r = &t->request;

	t->decay = (r->flags & KVR_IGNORE_PREFILL) != 0 ? 0
	    : t->policy.overlap_decay;
	t->usual = (r->flags & ignore) == 0 && r->n_preferences == 0 &&
	    r->stage != KVR_STAGE_DECODE && !(t->decay > 0) &&
	    t->per_token != 0;
}
