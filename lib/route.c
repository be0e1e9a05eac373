/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route.c - which worker shall have this request.
 *
 * First who may be (eligible.c), then what each of those costs, then whom to
 * take: the least cost, or one drawn. Each is a pass over the slots that
 * touches the first line of a slot and what was found for it, nothing else.
 *
 * A policy is a line of the table `rules`: what a worker costs, and how one is
 * taken. The reference's has a file of its own, dynamo.c; who is better than
 * whom, and what breaks ties, is said in bid.h.
 *
 * Always true:
 *   - nothing is written but the caller's struct route and struct choice;
 *   - the answer depends on the region, the prompt, the request and what was
 *     found, on nothing else: sums are made in one order, in double, by
 *     operations that are exact to the bit on every machine (exp.h);
 *   - a cost is a number from 0 to COST_MAX, never NaN, whatever the loads and
 *     the policy, so that comparing costs orders the workers;
 *   - what is read from a slot may change between two passes without harm
 *     other than to the choice itself: no pass relies on another's numbers
 *     to stay inside its bounds.
 *
 * Costs are in blocks or in seconds, as the policy has it. Token counts are
 * summed as doubles: exact below 2^53.
 */
#include "internal.h"

#include "bid.h"
#include "exp.h"

/* What a worker costs if it has so many blocks of its overlap `o` cached. */
typedef double cost_fn(const struct route *t, uint32_t slot,
    const struct kvr_overlap *o, double held);

struct rule {
	cost_fn *cost;
	void (*take)(const struct route *t, struct choice *out);
};

/* ------------------------------------------------------- one question --- */

/* Units a token is estimated at. */
static uint32_t
token_units(const struct kvr_prompt *p)
{
	return p->rule.unit == KVR_UNIT_BYTES ? 4 : 1;
}

static void
measure(struct route *t)
{
	const struct kvr_prompt *p = t->p;
	uint64_t size = p->rule.block_size, units = token_units(p);
	uint64_t end = p->blocks == 0 ? p->root : p->sequence[p->blocks - 1];
	uint64_t whole = t->tokens * units / size;

	t->block = rule_block_tokens(&p->rule);
	t->per_token = (size & (size - 1)) == 0 ? 1 / t->block : 0;
	t->whole_blocks = whole;
	whole += whole * size < t->tokens * units;
	t->request_blocks = (double)whole;
	t->digest = mix(end ^ mix(p->units ^ p->tail_digest));
}

int
route_begin(struct route *t, const struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, const struct found_set *set, int64_t now)
{
	uint32_t slots = slots_used(k);
	int error;

	t->k = k;
	t->p = p;
	policy_read(k, &t->policy);
	t->request = *r;
	policy_resolve(&t->policy, &t->request);
	t->set = set;
	t->now = now;
	t->tokens = prompt_tokens(p);
	if (t->tokens == 0)
		return KVR_EEMPTY;
	measure(t);
	dynamo_simplify(t);
	error = eligible_find(t, slots);
	if (error == 0)
		t->usual = t->usual && !t->weighted &&
		    (!t->unsure || set->path.nodes == 0);
	if (t->policy.cost == KVR_COST_BALANCED)
		balanced_begin(t);
	return error;
}

enum kvr_verdict
route_verdict(const struct route *t, uint32_t slot)
{
	return slot / 64 < t->words ? eligible_verdict(t, slot)
	    : KVR_NOT_ALLOWED;
}

/* ------------------------------------------------------------- taking --- */

/* If it has what can be expected. */
static double
cost_expected(const struct route *t, uint32_t slot, cost_fn *cost)
{
	const struct kvr_overlap *o = found_of(t->set, slot);

	return cost(t, slot, o, expect_blocks(t, slot, o));
}

/*
 * Looking for all that may have been lost is dear. It only makes a worker cost
 * more, so it is done for those who would be the best without.
 */
INLINE void
take_least(const struct route *t, const uint64_t *among, cost_fn *cost,
    struct choice *out)
{
	struct set_walk w = set_walk(among, t->words);
	struct best best = best_none();
	struct bid bid;
	uint32_t slot;

	while (set_next(&w, &slot)) {
		const struct kvr_overlap *o = found_of(t->set, slot);

		bid = bid_of(&t->k->loads, slot);
		bid.cost = cost(t, slot, o, expect_most(t, slot, o));
		if (bid.cost <= best.bid.cost && expect_doubtful(t, slot, o))
			bid.cost = cost(t, slot, o,
			    expect_blocks(t, slot, o));
		consider(t, &best, bid);
	}
	take_best(&best, out);
}

/* The likelihoods of some workers' costs: of the least cost it is 1. */
struct lottery {
	const struct route *t;
	cost_fn *cost;
	double least, scale;
};

static double
likelihood(const struct lottery *l, uint32_t slot)
{
	double above = cost_expected(l->t, slot, l->cost) - l->least;

	if (!(above > 0))
		return 1;
	return l->scale > 0 ? exp_of(-(above / l->scale)) : 0;
}

static void
lottery_begin(struct lottery *l)
{
	struct set_walk w = set_walk(l->t->take, l->t->words);
	double cost, most = 0;
	uint32_t slot;

	l->least = 2 * COST_MAX;
	while (set_next(&w, &slot)) {
		cost = cost_expected(l->t, slot, l->cost);
		l->least = cost < l->least ? cost : l->least;
		most = cost > most ? cost : most;
	}
	l->scale = (most - l->least) * l->t->request.temperature;
}

/* The worker at a place in the row of a word, the last one beyond its end. */
static uint32_t
lottery_find(const struct lottery *l, uint32_t word, double at)
{
	struct set_walk w = set_walk(l->t->take, l->t->words);
	uint32_t slot, last = 0;
	double width;

	w.word = word;
	while (set_next(&w, &slot) && slot / 64 == word) {
		width = likelihood(l, slot);
		if (width > 0)
			last = slot;
		if (at < width)
			break;
		at -= width;
	}
	return last;
}

/*
 * Draws one: each as likely as e^-(its cost above the least, as a share of
 * the spread of costs, over the temperature). The workers stand in a row, each
 * as wide as it is likely, and one number says where to look. There is no
 * memory to keep all widths: those of 64 at a time are summed, and when it is
 * known in which 64 to look, theirs are computed again.
 */
static void
take_sampled(const struct route *t, cost_fn *cost, struct choice *out)
{
	uint64_t bits = mix(mix(t->request.seed) ^ t->digest);
	struct set_walk w = set_walk(t->take, t->words);
	struct lottery l = { t, cost, 0, 0 };
	double width[ROUTE_WORDS], at = 0;
	uint32_t i, slot, word = 0;

	lottery_begin(&l);
	memset(width, 0, t->words * sizeof(width[0]));
	while (set_next(&w, &slot))
		width[slot / 64] += likelihood(&l, slot);
	for (i = 0; i < t->words; i++)
		at += width[i];
	at *= (double)(bits >> 11) * 0x1p-53;
	for (i = 0; i < t->words; i++) {
		if (width[i] > 0)
			word = i;
		if (at < width[i])
			break;
		at -= width[i];
	}
	out->slot = lottery_find(&l, word, at);
	out->cost = cost_expected(t, out->slot, cost);
	out->reason = KVR_REASON_SAMPLED;
}

static void
dynamo_take(const struct route *t, struct choice *out)
{
	if (t->request.temperature > 0)
		take_sampled(t, dynamo_cost, out);
	else if (t->usual)
		dynamo_take_usual(t, out);
	else
		take_least(t, t->take, dynamo_cost, out);
}

/* ------------------------- two-tier: overlap, unless loads differ much --- */

static inline double
two_tier_load(const struct route *t, uint32_t slot)
{
	double load = (double)look(t->k->loads.requests[slot]);

	if (t->weighted)
		load /= look_double(&t->k->slots[slot].weight);

	return load <= COST_MAX ? load : COST_MAX;
}

static double
two_tier_cost(const struct route *t, uint32_t slot,
    const struct kvr_overlap *o, double held)
{
	(void)o;
	(void)held;
	return two_tier_load(t, slot);
}

/* Without credit for overlap there is none. */
static inline uint32_t
two_tier_overlap(const struct route *t, uint32_t slot)
{
	return t->request.overlap_credit > 0 ? (uint32_t)expect_blocks(t,
	    slot, found_of(t->set, slot)) : 0;
}

/* The longest overlap; 0 if it is too short, or the loads too unequal. */
static uint32_t
two_tier_longest(const struct route *t)
{
	const struct kvr_policy *policy = &t->policy;
	struct set_walk w = set_walk(t->take, t->words);
	double load, least = 2 * COST_MAX, most = 0;
	uint32_t slot, longest = 0, blocks;

	while (set_next(&w, &slot)) {
		load = two_tier_load(t, slot);
		blocks = two_tier_overlap(t, slot);
		least = load < least ? load : least;
		most = load > most ? load : most;
		longest = blocks > longest ? blocks : longest;
	}
	if (most - least > policy->two_tier_load_gap &&
	    most > policy->two_tier_load_ratio * least)
		return 0;
	return (double)longest / t->request_blocks > policy->two_tier_overlap
	    ? longest : 0;
}

static void
two_tier_take(const struct route *t, struct choice *out)
{
	uint32_t slot, longest = two_tier_longest(t);
	struct set_walk w = set_walk(t->take, t->words);
	uint64_t among[ROUTE_WORDS];

	if (longest == 0) {
		take_least(t, t->take, two_tier_cost, out);
		out->reason = KVR_REASON_LOAD;
		return;
	}
	memset(among, 0, t->words * sizeof(among[0]));
	while (set_next(&w, &slot))
		if (two_tier_overlap(t, slot) == longest)
			set_add(among, slot);
	take_least(t, among, two_tier_cost, out);
	out->reason = KVR_REASON_OVERLAP;
}

/* ------------------------------------ balanced: seconds, of everybody --- */

static void
balanced_take(const struct route *t, struct choice *out)
{
	if (t->request.temperature > 0)
		take_sampled(t, balanced_cost, out);
	else
		take_least(t, t->take, balanced_cost, out);
}

/* ----------------------------------------------------------- policies --- */

static const struct rule rules[] = {
	[KVR_COST_DYNAMO] = { dynamo_cost, dynamo_take },
	[KVR_COST_TWO_TIER] = { two_tier_cost, two_tier_take },
	[KVR_COST_BALANCED] = { balanced_cost, balanced_take }
};

static const struct rule *
rule_of(const struct route *t)
{
	uint32_t i = t->policy.cost;

	return &rules[i < sizeof(rules) / sizeof(rules[0]) ? i : 0];
}

double
route_cost(const struct route *t, uint32_t slot)
{
	return cost_expected(t, slot, rule_of(t)->cost);
}

/* Tokens of the prompt that the worker can be expected to have cached. */
uint64_t
route_expected(const struct route *t, uint32_t slot)
{
	const struct kvr_overlap *o = found_of(t->set, slot);

	if (expect_sure(t, slot))
		return prompt_blocks_tokens(t->p, o->blocks);
	return (uint64_t)(expect_blocks(t, slot, o) * t->block + 0.5);
}

int
route_take(const struct route *t, struct choice *out)
{
	struct choice c;

	if (t->eligible == 0)
		return eligible_none(t);
	if (t->request.pinned != 0) {
		c.slot = t->pinned;
		c.cost = route_cost(t, c.slot);
		c.reason = KVR_REASON_PINNED;
	} else {
		rule_of(t)->take(t, &c);
	}
	c.eligible = t->eligible;
	c.worker = worker_id(t->k, c.slot);
	c.flags = t->request.flags;
	c.blocks = found_of(t->set, c.slot)->blocks;
	c.active = found_of(t->set, c.slot)->active_blocks;
	c.tokens = route_expected(t, c.slot);
	*out = c;
	return KVR_OK;
}

int
route_choose(const struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, const struct found_set *set, int64_t now,
    struct choice *out)
{
	struct route t;
	int error = route_begin(&t, k, p, r, set, now);

	return error == KVR_OK ? route_take(&t, out) : error;
}
