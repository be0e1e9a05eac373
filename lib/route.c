/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route.c - which worker shall have this request.
 *
 * Three steps, each a pass over the slots that touches the first line of a
 * slot and what was found for it, and nothing else:
 *
 *   request   open: all slots, or the allowed ones; less those excluded;
 *             the pinned one alone, if one is pinned
 *      |
 *   slot      take: of the open ones those of the right role, up, with the
 *             required taints, not overloaded
 *      |
 *   policy    the cost of each, and which of them: least, or drawn
 *
 * open and take are sets of bits, so a long list of allowed workers is read
 * once and not once for each worker.
 *
 * A policy is a line of the table `rules`: what a worker costs, and how one is
 * taken. Nothing outside its two functions knows of it.
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

#define COST_MAX 1e300

struct rule {
	double (*cost)(const struct route *t, uint32_t slot);
	void (*take)(const struct route *t, struct choice *out);
};

/* ------------------------------------------------------- sets of slots --- */

static inline bool
set_has(const uint64_t *set, uint32_t slot)
{
	return (set[slot / 64] >> slot % 64 & 1) != 0;
}

static inline void
set_add(uint64_t *set, uint32_t slot)
{
	set[slot / 64] |= UINT64_C(1) << slot % 64;
}

/* The slots of a set, upwards. */
struct walk {
	const uint64_t *set;
	uint64_t left; /* of the word before `word` */
	uint32_t word, words;
};

static inline struct walk
walk_over(const struct route *t, const uint64_t *set)
{
	struct walk w = { set, 0, 0, t->words };

	return w;
}

static inline bool
walk_next(struct walk *w, uint32_t *slot)
{
	while (w->left == 0) {
		if (w->word == w->words)
			return false;
		w->left = w->set[w->word++];
	}
	*slot = (w->word - 1) * 64 + (uint32_t)__builtin_ctzll(w->left);
	w->left &= w->left - 1;
	return true;
}

/* ---------------------------------------------------------- who may be --- */

static void
open_all(struct route *t, uint32_t slots)
{
	memset(t->open, 0xff, t->words * sizeof(t->open[0]));
	if (slots % 64 != 0)
		t->open[t->words - 1] = (UINT64_C(1) << slots % 64) - 1;
}

/* Ids that are no longer valid are of nobody. */
static void
open_allowed(struct route *t)
{
	uint32_t slot;
	size_t i;

	memset(t->open, 0, t->words * sizeof(t->open[0]));
	for (i = 0; i < t->p->n_allowed; i++)
		if (worker_slot(t->k, t->p->allowed[i], &slot) &&
		    slot / 64 < t->words)
			set_add(t->open, slot);
}

static void
close_excluded(struct route *t)
{
	uint32_t i, slot;

	for (i = 0; i < t->r->n_excluded; i++)
		if (worker_slot(t->k, t->r->excluded[i], &slot) &&
		    slot / 64 < t->words)
			t->open[slot / 64] &= ~(UINT64_C(1) << slot % 64);
}

static int
open_pinned(struct route *t)
{
	bool open;

	if (!worker_slot(t->k, t->r->pinned, &t->pinned) ||
	    t->pinned / 64 >= t->words)
		return KVR_EWORKER;
	open = set_has(t->open, t->pinned);
	memset(t->open, 0, t->words * sizeof(t->open[0]));
	if (open)
		set_add(t->open, t->pinned);
	return KVR_OK;
}

static inline bool
role_fits(uint32_t stage, uint32_t role)
{
	return role == KVR_ROLE_BOTH ||
	    (stage == KVR_STAGE_PREFILL && role == KVR_ROLE_PREFILL) ||
	    (stage == KVR_STAGE_DECODE && role == KVR_ROLE_DECODE);
}

static inline enum kvr_verdict
verdict_of(const struct route *t, uint32_t slot)
{
	const struct slot *s = &t->k->slots[slot];
	const struct kvr_request *r = t->r;

	if (!set_has(t->open, slot))
		return KVR_NOT_ALLOWED;
	if (!role_fits(r->stage, s->role))
		return KVR_WRONG_ROLE;
	if (s->state != KVR_STATE_UP &&
	    (s->state != KVR_STATE_DRAINING || r->pinned == 0))
		return KVR_NOT_UP;
	if ((s->taints & r->required_taints) != r->required_taints)
		return KVR_LACKS_TAINT;
	/* The far question only where the near answer leaves it open. */
	if ((s->busy | s->latch) != 0 && worker_overloaded(t->k, slot))
		return KVR_OVERLOADED;
	return KVR_ELIGIBLE;
}

static void
find_eligible(struct route *t)
{
	struct walk w = walk_over(t, t->open);
	uint64_t least = UINT64_MAX;
	uint32_t slot, eligible = 0, overloaded = 0;

	memset(t->take, 0, t->words * sizeof(t->take[0]));
	while (walk_next(&w, &slot)) {
		const struct slot *s = &t->k->slots[slot];
		enum kvr_verdict v;

		if (!slot_in_use(t->k, slot))
			continue;
		v = verdict_of(t, slot);
		overloaded += v == KVR_OVERLOADED;
		if (v != KVR_ELIGIBLE)
			continue;
		set_add(t->take, slot);
		eligible++;
		if (s->prefill < least)
			least = s->prefill;
	}
	t->least_prefill = least;
	t->eligible = eligible;
	t->overloaded = overloaded;
}

enum kvr_verdict
route_verdict(const struct route *t, uint32_t slot)
{
	return slot / 64 < t->words ? verdict_of(t, slot) : KVR_NOT_ALLOWED;
}

static int
why_none(const struct route *t)
{
	if (t->r->pinned != 0)
		return t->overloaded != 0 ? KVR_EPINNEDBUSY : KVR_ENOTALLOWED;
	return t->overloaded != 0 ? KVR_EALLBUSY : KVR_ENOWORKER;
}

/* ------------------------------------------------------- one question --- */

/* Units a token is estimated at. */
static uint32_t
token_units(const struct kvr_prompt *p)
{
	return p->rule.unit == KVR_UNIT_BYTES ? 4 : 1;
}

uint64_t
route_tokens(const struct kvr_prompt *p, uint32_t blocks)
{
	uint32_t units = token_units(p);

	return ((uint64_t)blocks * p->rule.block_size + units / 2) / units;
}

uint32_t
route_new_blocks(const struct kvr_prompt *p, const struct kvr_request *r,
    const struct found *f)
{
	if ((r->flags & KVR_IGNORE_REUSE) != 0)
		return p->blocks;
	return f->active < p->blocks ? p->blocks - f->active : 0;
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
	t->digest = mix(end ^ mix(p->units));
}

int
route_begin(struct route *t, const struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, const struct found_set *set)
{
	uint32_t slots = k->region->slots_used;
	int error = KVR_OK;

	if (slots > k->layout.slots)
		slots = k->layout.slots;
	t->k = k;
	t->policy = &k->region->policy;
	t->p = p;
	t->r = r;
	t->set = set;
	t->tokens = prompt_tokens(p);
	t->pinned = 0;
	t->words = (slots + 63) / 64;
	if (t->tokens == 0)
		return KVR_EEMPTY;
	measure(t);
	if (p->n_allowed == 0)
		open_all(t, slots);
	else
		open_allowed(t);
	close_excluded(t);
	if (r->pinned != 0)
		error = open_pinned(t);
	if (error == KVR_OK)
		find_eligible(t);
	return error;
}

/* ------------------------------------------------------------- taking --- */

static inline bool
less_loaded(const struct route *t, const struct slot *a, const struct slot *b)
{
	if (a->requests != b->requests)
		return a->requests < b->requests;
	if (a->prefill != b->prefill)
		return a->prefill < b->prefill;
	if (a->blocks != b->blocks)
		return a->blocks < b->blocks;
	return mix(t->digest ^ a->identity) < mix(t->digest ^ b->identity);
}

/*
 * The least cost among some; equal costs go to the least loaded, then to
 * whom this prompt's hash falls to: neither an order of workers nor a number
 * that another router does not know.
 */
static inline void
take_least(const struct route *t, const uint64_t *among,
    double (*cost_of)(const struct route *, uint32_t), struct choice *out)
{
	struct walk w = walk_over(t, among);
	const struct slot *slots = t->k->slots;
	uint32_t slot, best = 0;
	double cost, least = 2 * COST_MAX;
	bool shared = false;

	while (walk_next(&w, &slot)) {
		cost = cost_of(t, slot);
		if (cost > least)
			continue;
		if (cost == least) {
			shared = true;
			if (!less_loaded(t, &slots[slot], &slots[best]))
				continue;
		} else {
			shared = false;
		}
		least = cost;
		best = slot;
	}
	out->slot = best;
	out->cost = least;
	out->reason = shared ? KVR_REASON_TIE : KVR_REASON_COST;
}

/* How likely a cost is against the least one, which is 1. */
static inline double
likelihood(double cost, double least, double scale)
{
	double above = cost - least;

	if (!(above > 0))
		return 1;
	return scale > 0 ? exp_of(-(above / scale)) : 0;
}

/*
 * Draws one: each as likely as e^-(its cost above the least, as a share of
 * the spread of costs, over the temperature). Costs are computed anew for
 * each of the three passes rather than kept: there is no memory to keep them.
 */
static inline void
take_sampled(const struct route *t,
    double (*cost_of)(const struct route *, uint32_t), struct choice *out)
{
	uint64_t bits = mix(mix(t->r->seed) ^ t->digest);
	struct walk w = walk_over(t, t->take);
	double cost, scale, least = 2 * COST_MAX, most = 0, sum = 0;
	uint32_t slot;

	while (walk_next(&w, &slot)) {
		cost = cost_of(t, slot);
		least = cost < least ? cost : least;
		most = cost > most ? cost : most;
	}
	scale = (most - least) * t->r->temperature;
	for (w = walk_over(t, t->take); walk_next(&w, &slot);)
		sum += likelihood(cost_of(t, slot), least, scale);
	sum *= (double)(bits >> 11) * 0x1p-53;
	for (w = walk_over(t, t->take); walk_next(&w, &slot);) {
		out->slot = slot;
		out->cost = cost_of(t, slot);
		sum -= likelihood(out->cost, least, scale);
		if (sum < 0)
			break;
	}
	out->reason = KVR_REASON_SAMPLED;
}

/* ------------------------------------------- the reference's cost: sum --- */

static inline double
in_blocks(const struct route *t, double tokens)
{
	return t->per_token != 0 ? tokens * t->per_token : tokens / t->block;
}

static inline double
above_zero(double x)
{
	return x > 0 ? x : 0;
}

/*
 * Overlap is worth less on a worker with more prefill waiting than the least
 * of the eligible has, measured by the length of this prompt.
 */
static inline double
decayed(const struct route *t, const struct slot *s)
{
	double decay = t->policy->overlap_decay, excess;

	if (!(decay > 0) || (t->r->flags & KVR_IGNORE_PREFILL) != 0 ||
	    s->prefill <= t->least_prefill)
		return 1;
	excess = in_blocks(t, (double)(s->prefill - t->least_prefill));
	return 1 / (1 + decay * (excess / t->request_blocks));
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
 * Prefill tokens there would be, this request's cached ones among them. An
 * overlap longer than the prompt, if somebody gives one, counts as tokens.
 */
static inline double
raw_prefill(const struct route *t, const struct slot *s, const struct found *f)
{
	if ((t->r->flags & KVR_IGNORE_PREFILL) != 0)
		return 0;
	return (double)s->prefill + (double)(f->blocks <= t->whole_blocks
	    ? t->tokens : route_tokens(t->p, f->blocks));
}

static inline double
dynamo_cost(const struct route *t, uint32_t slot)
{
	const struct slot *s = &t->k->slots[slot];
	const struct found *f = found_of(t->set, slot);
	const struct kvr_request *r = t->r;
	double credit, decode, cost;

	credit = r->overlap_credit * decayed(t, s) * (double)f->blocks;
	decode = (double)s->blocks + (double)route_new_blocks(t->p, r, f);
	if (r->stage == KVR_STAGE_DECODE && r->overlap_credit > 0)
		cost = above_zero(decode - credit);
	else
		cost = r->prefill_scale * above_zero(in_blocks(t,
		    raw_prefill(t, s, f)) - credit) + decode;
	cost += t->policy->request_weight * (double)s->requests;
	if (r->n_preferences != 0)
		cost *= disliking(r, s->taints);
	if (s->weight != 1)
		cost /= s->weight;
	return cost <= COST_MAX ? cost : COST_MAX;
}

static void
dynamo_take(const struct route *t, struct choice *out)
{
	if (t->r->temperature > 0)
		take_sampled(t, dynamo_cost, out);
	else
		take_least(t, t->take, dynamo_cost, out);
}

/* ------------------------- two-tier: overlap, unless loads differ much --- */

static inline double
two_tier_cost(const struct route *t, uint32_t slot)
{
	const struct slot *s = &t->k->slots[slot];
	double load = (double)s->requests / s->weight;

	return load <= COST_MAX ? load : COST_MAX;
}

/* Without credit for overlap there is none. */
static inline uint32_t
two_tier_overlap(const struct route *t, uint32_t slot)
{
	return t->r->overlap_credit > 0 ? found_of(t->set, slot)->blocks : 0;
}

/* The longest overlap; 0 if it is too short, or the loads too unequal. */
static uint32_t
two_tier_longest(const struct route *t)
{
	const struct kvr_policy *policy = t->policy;
	struct walk w = walk_over(t, t->take);
	double load, least = 2 * COST_MAX, most = 0;
	uint32_t slot, longest = 0, blocks;

	while (walk_next(&w, &slot)) {
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
	struct walk w = walk_over(t, t->take);
	uint64_t among[ROUTE_WORDS];

	if (longest == 0) {
		take_least(t, t->take, two_tier_cost, out);
		out->reason = KVR_REASON_LOAD;
		return;
	}
	memset(among, 0, t->words * sizeof(among[0]));
	while (walk_next(&w, &slot))
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
	uint32_t i = t->policy->cost;

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
		return why_none(t);
	if (t->r->pinned != 0) {
		c.slot = t->pinned;
		c.cost = route_cost(t, c.slot);
		c.reason = KVR_REASON_PINNED;
	} else {
		rule_of(t)->take(t, &c);
	}
	c.eligible = t->eligible;
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
