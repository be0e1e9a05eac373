/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route.c - which worker shall have this request.
 *
 * First who may be (eligible.c), then what each of those costs, then whom to
 * take: the least cost, or one drawn. Each is a pass over the slots that
 * touches the first line of a slot and what was found for it, nothing else.
 *
 * A policy is a line of the table `rules`: what a worker costs, and how one is
 * taken. Nothing else here knows of it but `simplify`, which finds out once
 * what the costs of the reference's policy need not ask for every worker.
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
 * Costs are in blocks. Token counts are summed as doubles: exact below 2^53.
 */
#include "internal.h"

#include "exp.h"

/* Small functions of inner loops, whatever a compiler thinks of their size. */
#define INLINE static inline __attribute__((always_inline))

struct rule {
	double (*cost)(const struct route *t, uint32_t slot);
	void (*take)(const struct route *t, struct choice *out);
};

/* ------------------------------------------------------- one question --- */

/* Units a token is estimated at. */
static uint32_t
token_units(const struct kvr_prompt *p)
{
	return p->rule.unit == KVR_UNIT_BYTES ? 4 : 1;
}

uint32_t
route_new_blocks(const struct kvr_prompt *p, const struct kvr_request *r,
    const struct kvr_overlap *o)
{
	if ((r->flags & KVR_IGNORE_REUSE) != 0)
		return p->blocks;
	return o->active_blocks < p->blocks ? p->blocks - o->active_blocks : 0;
}

/* Every bit of x goes into every bit of the result; one to one. */
static inline uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 32) * UINT64_C(0xbea225f9eb34556d);
	x = (x ^ x >> 29) * UINT64_C(0xbea225f9eb34556d);
	return x ^ x >> 32;
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

/* Which parts of a cost there are at all. */
static void
simplify(struct route *t)
{
	const uint32_t ignore = KVR_IGNORE_PREFILL | KVR_IGNORE_REUSE;
	const struct kvr_request *r = &t->request;

	t->decay = (r->flags & KVR_IGNORE_PREFILL) != 0 ? 0
	    : t->policy.overlap_decay;
	t->usual = (r->flags & ignore) == 0 && r->n_preferences == 0 &&
	    r->stage != KVR_STAGE_DECODE && !(t->decay > 0) &&
	    t->per_token != 0;
}

int
route_begin(struct route *t, const struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, const struct found_set *set)
{
	uint32_t slots = slots_used(k);
	int error;

	t->k = k;
	t->p = p;
	policy_read(k, &t->policy);
	t->request = *r;
	policy_resolve(&t->policy, &t->request);
	t->set = set;
	t->tokens = prompt_tokens(p);
	if (t->tokens == 0)
		return KVR_EEMPTY;
	measure(t);
	simplify(t);
	error = eligible_find(t, slots);
	if (error == 0)
		t->usual = t->usual && !t->weighted;
	return error;
}

enum kvr_verdict
route_verdict(const struct route *t, uint32_t slot)
{
	return slot / 64 < t->words ? eligible_verdict(t, slot)
	    : KVR_NOT_ALLOWED;
}

/* ------------------------------------------------------------- taking --- */

/* What a worker would cost, and what else may decide. */
struct bid {
	double cost, prefill, blocks;
	uint32_t requests, slot;
};

/* The best so far. */
struct best {
	struct bid bid;
	uint64_t lot;  /* its own, once it has had to draw one */
	bool shared;   /* by several, of the same cost */
	bool drawn;
};

static inline struct best
best_none(void)
{
	struct best best = { { 2 * COST_MAX, 0, 0, 0, 0 }, 0, false, false };

	return best;
}

/* Below 0: a is less loaded; above 0: b is. */
INLINE int
compare_load(const struct bid *a, const struct bid *b)
{
	if (a->requests != b->requests)
		return a->requests < b->requests ? -1 : 1;
	if (a->prefill != b->prefill)
		return a->prefill < b->prefill ? -1 : 1;
	return a->blocks < b->blocks ? -1 : a->blocks > b->blocks;
}

INLINE uint64_t
lot_of(const struct route *t, uint32_t slot)
{
	return mix(t->digest ^ look(t->k->loads.identity[slot]));
}

/*
 * Equal costs go to the least loaded, then to whom this prompt's hash falls
 * to: neither an order of workers nor a number that another router does not
 * know. The order of asking makes no difference.
 */
INLINE void
consider_equal(const struct route *t, struct best *best, struct bid bid)
{
	int order = compare_load(&bid, &best->bid);
	uint64_t lot;

	best->shared = true;
	if (order > 0)
		return;
	if (order == 0) {
		if (!best->drawn)
			best->lot = lot_of(t, best->bid.slot);
		best->drawn = true;
		lot = lot_of(t, bid.slot);
		if (lot >= best->lot)
			return;
		best->lot = lot;
	} else {
		best->drawn = false;
	}
	best->bid = bid;
}

INLINE void
consider(const struct route *t, struct best *best, struct bid bid)
{
	if (bid.cost < best->bid.cost) {
		best->bid = bid;
		best->shared = best->drawn = false;
	} else if (bid.cost == best->bid.cost) {
		consider_equal(t, best, bid);
	}
}

/* All of a bid but its cost. */
INLINE struct bid
bid_of(const struct loads *l, uint32_t slot)
{
	struct bid bid = { 0, look_double(&l->prefill[slot]),
	    look_double(&l->blocks[slot]), look(l->requests[slot]), slot };

	return bid;
}

static void
take_best(const struct best *best, struct choice *out)
{
	out->slot = best->bid.slot;
	out->cost = best->bid.cost;
	out->reason = best->shared ? KVR_REASON_TIE : KVR_REASON_COST;
}

INLINE void
take_least(const struct route *t, const uint64_t *among,
    double (*cost_of)(const struct route *, uint32_t), struct choice *out)
{
	struct set_walk w = set_walk(among, t->words);
	struct best best = best_none();
	struct bid bid;
	uint32_t slot;

	while (set_next(&w, &slot)) {
		bid = bid_of(&t->k->loads, slot);
		bid.cost = cost_of(t, slot);
		consider(t, &best, bid);
	}
	take_best(&best, out);
}

/* The likelihoods of some workers' costs: of the least cost it is 1. */
struct lottery {
	const struct route *t;
	double (*cost_of)(const struct route *t, uint32_t slot);
	double least, scale;
};

static double
likelihood(const struct lottery *l, uint32_t slot)
{
	double above = l->cost_of(l->t, slot) - l->least;

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
		cost = l->cost_of(l->t, slot);
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
take_sampled(const struct route *t,
    double (*cost_of)(const struct route *, uint32_t), struct choice *out)
{
	uint64_t bits = mix(mix(t->request.seed) ^ t->digest);
	struct set_walk w = set_walk(t->take, t->words);
	struct lottery l = { t, cost_of, 0, 0 };
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
	out->cost = cost_of(t, out->slot);
	out->reason = KVR_REASON_SAMPLED;
}

/* ------------------------------------------- the reference's cost: sum --- */

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
static double
disliking(const struct kvr_request *r, uint64_t taints)
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

static double
dynamo_cost(const struct route *t, uint32_t slot)
{
	const struct loads *l = &t->k->loads;
	const struct kvr_request *r = &t->request;
	const struct kvr_overlap *o = found_of(t->set, slot);
	double prefill = look_double(&l->prefill[slot]), weight;
	double credit, decode, cost;

	credit = r->overlap_credit * decayed(t, prefill) * (double)o->blocks;
	decode = look_double(&l->blocks[slot]) +
	    (double)route_new_blocks(t->p, r, o);
	if (r->stage == KVR_STAGE_DECODE)
		cost = above_zero(decode - credit);
	else
		cost = r->prefill_scale * above_zero(raw_prefill(t, prefill,
		    o->blocks) - credit) + decode;
	cost += t->policy.request_weight * (double)look(l->requests[slot]);
	if (r->n_preferences != 0)
		cost *= disliking(r, look(t->k->slots[slot].taints));
	if (t->weighted) {
		weight = look_double(&t->k->slots[slot].weight);
		if (weight != 1)
			cost /= weight;
	}
	return cost <= COST_MAX ? cost : COST_MAX;
}

/*
 * The usual case, in which most parts of the sum are absent; what is left is
 * the same to the bit. Workers with the same overlap differ by their loads
 * alone, and none of them costs less than one without load would.
 */
struct share {
	double tokens; /* of prefill that the request brings */
	double credit; /* blocks of prefill that the overlap saves */
	double decode; /* blocks of decode that the request brings */
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
	s.least = usual_sum(u, s, 0, 0, 0);
	return s;
}

/* Those with an overlap. The deepest come first, so most others are passed. */
INLINE void
usual_found(const struct route *t, struct usual u, struct best *best)
{
	const struct kvr_overlap *o = t->set->found;
	const uint32_t *places = t->set->places, base = t->set->base;
	const uint32_t count = t->set->count, slots = t->slots;
	const struct loads l = t->k->loads;
	struct share s = { 0, 0, 0, 0 };
	uint32_t i, slot;

	for (i = 0; i < count; i++, o++) {
		if (i == 0 || o->blocks != o[-1].blocks ||
		    o->active_blocks != o[-1].active_blocks)
			s = share_of(t, u, o);
		slot = found_slot(o);
		if (s.least <= best->bid.cost && slot < slots &&
		    set_has(t->take, slot) && places[slot] - base == i)
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
		bid = usual_bid(&l, u, s, slot);
		if (bid.cost <= best->bid.cost && !found_has(t->set, slot))
			consider(t, best, bid);
	}
}

static void
dynamo_take_usual(const struct route *t, struct choice *out)
{
	const struct usual u = { t->request.prefill_scale, t->per_token,
	    t->policy.request_weight };
	struct best best = best_none();

	usual_found(t, u, &best);
	usual_rest(t, u, &best);
	take_best(&best, out);
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
two_tier_cost(const struct route *t, uint32_t slot)
{
	double load = (double)look(t->k->loads.requests[slot]);

	if (t->weighted)
		load /= look_double(&t->k->slots[slot].weight);

	return load <= COST_MAX ? load : COST_MAX;
}

/* Without credit for overlap there is none. */
static inline uint32_t
two_tier_overlap(const struct route *t, uint32_t slot)
{
	return t->request.overlap_credit > 0 ? found_of(t->set, slot)->blocks
	    : 0;
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
		load = two_tier_cost(t, slot);
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

/* ----------------------------------------------------------- policies --- */

static const struct rule rules[] = {
	[KVR_COST_DYNAMO] = { dynamo_cost, dynamo_take },
	[KVR_COST_TWO_TIER] = { two_tier_cost, two_tier_take }
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
	return rule_of(t)->cost(t, slot);
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
	*out = c;
	return KVR_OK;
}

int
route_choose(const struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, const struct found_set *set,
    struct choice *out)
{
	struct route t;
	int error = route_begin(&t, k, p, r, set);

	return error == KVR_OK ? route_take(&t, out) : error;
}
