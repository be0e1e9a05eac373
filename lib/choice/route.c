/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route.c - chooses the worker for a request.
 *
 * First the eligible workers (eligible.c), then the cost of each, then the
 * choice: the lowest cost, or one sampled. Each is a pass over the slots that
 * reads the rows of struct loads and the overlap of a slot; only the less
 * usual terms of a cost read the slot itself.
 *
 * A policy is a line of the table `rules`: the cost of a worker, and how one is
 * chosen. The cost of the reference is in cost_dynamo.c; the order of workers
 * and the breaking of ties are in best.h.
 *
 * Guarantees:
 *   - only the caller's struct question and struct choice are written;
 *   - the result depends only on the region, the prompt, the request and the
 *     overlaps: sums are made in one order, in double, by operations that are
 *     exact to the bit on every machine (exp.h);
 *   - a cost is a number from 0 to COST_MAX, never NaN, whatever the loads and
 *     the policy, so that comparing costs orders the workers;
 *   - fields of a slot may change between two passes and affect only the
 *     choice itself: no pass relies on another's numbers to stay within
 *     its bounds.
 *
 * Costs are in blocks or in seconds, depending on the policy. Token counts are
 * summed as doubles: exact below 2^53.
 */
#include "route.h"

#include "best.h"
#include "cost_balanced.h"
#include "cost_dynamo.h"
#include "eligible.h"
#include "exp.h"
#include "expect.h"
#include "load.h"
#include "longest.h"
#include "mix.h"
#include "policy.h"
#include "session.h"
#include "set.h"
#include "settle.h"
#include "window_mode.h"

struct rule {
	settle_cost_fn *cost;
	double (*find)(struct question *q); /* costs if nothing is lost */
	void (*take)(struct question *q, struct choice *out);
};

/* ------------------------------------------------------- one question --- */

/* Whatever other parts of a question took, a part may take as many: expect.c */
enum { CHOICE_STEPS = 512, PART_STEPS = 256 };

static void
allow_steps(const struct question *q, uint32_t steps)
{
	if (q->set->most < q->set->steps + steps)
		q->set->most = q->set->steps + steps;
}

/* Fills q->held: the eligible workers that have an overlap. */
static void
find_holders(struct question *q)
{
	const struct found_set *set = q->set;
	uint32_t i, slot;

	memset(q->held, 0, q->words * sizeof(q->held[0]));
	for (i = 0; i < set->count; i++) {
		slot = found_slot(&set->found[i]);
		/* rows of a caller may name one that is no more */
		if (slot < q->slots)
			set_add(q->held, slot);
	}
	for (i = 0; i < q->words; i++)
		q->held[i] &= q->take[i];
}

int
route_begin(struct question *q, const struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, struct found_set *set, int64_t now)
{
	uint32_t slots = slots_used(k);
	int error;

	q->k = k;
	q->p = p;
	policy_read(k, &q->policy);
	if (q->policy.cost > KVR_COST_DYNAMO) /* damaged */
		q->policy.cost = KVR_COST_BALANCED;
	q->request = *r;
	policy_resolve(&q->policy, &q->request);
	q->set = set;
	q->now = now;
	q->tokens = prompt_tokens(p);
	if (q->tokens == 0)
		return KVR_EEMPTY;
	q->wait = 0;
	question_measure(q);
	dynamo_simplify(q);
	error = eligible_find(q, slots);
	if (error != KVR_OK)
		return error;
	q->unsure = q->unsure && set->path.nodes > 0;
	q->usual = q->usual && !q->weighted && !q->unsure;
	if (q->unsure || q->policy.cost == KVR_COST_BALANCED)
		find_holders(q);
	allow_steps(q, PART_STEPS);
	session_begin(q);
	allow_steps(q, CHOICE_STEPS);
	if (q->policy.cost == KVR_COST_BALANCED)
		balanced_begin(q);
	return KVR_OK;
}

enum kvr_verdict
route_verdict(const struct question *q, uint32_t slot)
{
	enum kvr_verdict v = slot / 64 < q->words ? eligible_verdict(q, slot)
	    : KVR_NOT_ALLOWED;

	if (v == KVR_ELIGIBLE && q->policy.cost == KVR_COST_BALANCED &&
	    q->request.pinned == 0 && !set_has(q->below, slot))
		v = KVR_ABOVE_BOUND;
	return v;
}

/* ----------------------------------------------------------- choosing --- */

static void
take_least(struct question *q, struct choice *out)
{
	static const struct settle settle = { dynamo_cost, 0, false };
	struct set_walk w = set_walk(q->take, q->words);
	struct best best = best_none();
	struct bid bid;
	uint32_t slot;

	(void)dynamo_find(q);
	if (q->unsure)
		(void)settle_costs(q, q->take, &settle);
	while (set_next(&w, &slot)) {
		bid.cost = q->set->costs[slot];
		if (bid.cost > best.bid.cost)
			continue;
		bid = bid_of(&q->k->loads, slot);
		bid.cost = q->set->costs[slot];
		consider(q, &best, bid);
	}
	take_best(&best, out);
}

/* The likelihoods of workers by their costs: for the lowest cost it is 1. */
struct lottery {
	const struct question *q;
	const uint64_t *among;
	double least, scale;
};

static double
likelihood_of(const struct lottery *l, uint32_t slot)
{
	double above = l->q->set->costs[slot] - l->least;

	if (!(above > 0))
		return 1;
	return l->scale > 0 ? exp_of(-(above / l->scale)) : 0;
}

static void
lottery_begin(struct lottery *l, struct question *q, const struct rule *rule)
{
	const struct settle s = { rule->cost, 0, true };
	struct set_walk w = set_walk(l->among, l->q->words);
	double most = 0;
	uint32_t slot;

	l->least = rule->find(q);
	if (q->unsure)
		l->least = settle_costs(q, l->among, &s);
	while (set_next(&w, &slot))
		if (l->q->set->costs[slot] > most)
			most = l->q->set->costs[slot];
	l->scale = (most - l->least) * l->q->request.temperature;
}

/* The worker at a position in the row of a word, or its last one. */
static uint32_t
lottery_find(const struct lottery *l, uint32_t word, double at)
{
	struct set_walk w = set_walk(l->among, l->q->words);
	uint32_t slot, last = 0;
	double width;

	w.word = word;
	while (set_next(&w, &slot) && slot / 64 == word) {
		width = likelihood_of(l, slot);
		if (width > 0)
			last = slot;
		if (at < width)
			break;
		at -= width;
	}
	return last;
}

/*
 * Samples one worker: each as likely as e^-(its cost above the lowest, as a
 * share of the spread of costs, over the temperature). The workers form a row,
 * each as wide as it is likely, and one number gives a position in it. There is
 * no memory to keep all widths: they are summed for 64 workers at a time, and
 * those of the 64 at the position are computed again.
 */
static void
take_sampled(struct question *q, const struct rule *rule, struct choice *out)
{
	uint64_t bits = mix(mix(q->request.seed) ^ q->digest);
	const uint64_t *among = question_candidates(q);
	struct set_walk w = set_walk(among, q->words);
	struct lottery l = { q, among, 0, 0 };
	double width[QUESTION_WORDS], at = 0;
	uint32_t i, slot, word = 0;

	lottery_begin(&l, q, rule);
	memset(width, 0, q->words * sizeof(width[0]));
	while (set_next(&w, &slot))
		width[slot / 64] += likelihood_of(&l, slot);
	for (i = 0; i < q->words; i++)
		at += width[i];
	at *= (double)(bits >> 11) * 0x1p-53;
	for (i = 0; i < q->words; i++) {
		if (width[i] > 0)
			word = i;
		if (at < width[i])
			break;
		at -= width[i];
	}
	out->slot = lottery_find(&l, word, at);
	out->cost = q->set->costs[out->slot];
	out->reason = KVR_REASON_SAMPLED;
}

static void
dynamo_take(struct question *q, struct choice *out)
{
	if (q->usual)
		dynamo_take_usual(q, out);
	else
		take_least(q, out);
}

/* ----------------------------------------------------------- policies --- */

static const struct rule rules[] = {
	[KVR_COST_DYNAMO] = { dynamo_cost, dynamo_find, dynamo_take },
	[KVR_COST_BALANCED] = { balanced_cost, balanced_find,
	    balanced_take_near }
};

static const struct rule *
rule_of(const struct question *q)
{
	uint32_t i = q->policy.cost;

	return &rules[i < sizeof(rules) / sizeof(rules[0]) ? i : 0];
}

/* Tokens of the prompt in so many blocks of an overlap. */
static uint64_t
expected_tokens(const struct question *q, uint32_t slot, double held)
{
	if (expect_sure(q, slot))
		return prompt_blocks_tokens(q->p,
		    found_of(q->set, slot)->blocks);
	return (uint64_t)(held * q->block + 0.5);
}

uint32_t
route_usable(const struct question *q, uint32_t slot)
{
	const struct kvr_overlap *o = found_of(q->set, slot);

	if (expect_sure(q, slot) || !window_on(q->k, slot))
		return o->blocks;
	return (uint32_t)expect_usable(q, slot, o);
}

double
route_cost(const struct question *q, uint32_t slot, uint64_t *expected)
{
	const struct kvr_overlap *o = found_of(q->set, slot);
	double held = expect_blocks(q, slot, o);

	*expected = expected_tokens(q, slot, held);
	return rule_of(q)->cost(q, slot, o, held);
}

static double
cost_of(const struct question *q, uint32_t slot)
{
	uint64_t expected;

	return route_cost(q, slot, &expected);
}

static void
take_pinned(const struct question *q, uint32_t slot, uint32_t reason,
    struct choice *c)
{
	c->slot = slot;
	c->cost = route_cost(q, slot, &c->tokens);
	c->reason = reason;
}

/*
 * The overlap to which the chosen worker's is compared. It comes last, so that
 * it takes no steps that the choice would have needed.
 */
static void
best_note(const struct question *q, struct choice *c)
{
	uint32_t slot = longest_slot(q, c->slot);
	uint64_t tokens;

	c->best = c->worker;
	c->best_tokens = c->tokens;
	if (slot == c->slot)
		return;
	tokens = expected_tokens(q, slot,
	    expect_blocks(q, slot, found_of(q->set, slot)));
	if (tokens <= c->tokens)
		return;
	c->best = worker_id(q->k, slot);
	c->best_tokens = tokens;
}

int
route_take(struct question *q, struct choice *out)
{
	struct choice c;
	uint32_t slot;

	if (q->eligible == 0)
		return eligible_none(q);
	if (q->request.pinned != 0) {
		take_pinned(q, q->pinned, KVR_REASON_PINNED, &c);
	} else if (session_pins(q, &slot)) {
		take_pinned(q, slot, KVR_REASON_AFFINITY, &c);
	} else {
		if (q->request.temperature > 0)
			take_sampled(q, rule_of(q), &c);
		else
			rule_of(q)->take(q, &c);
		session_prefer(q, cost_of, &c);
		allow_steps(q, PART_STEPS);
		c.tokens = expected_tokens(q, c.slot,
		    expect_blocks(q, c.slot, found_of(q->set, c.slot)));
	}
	session_close(q, &c);
	c.eligible = q->eligible;
	c.worker = worker_id(q->k, c.slot);
	c.flags = q->request.flags;
	c.blocks = found_of(q->set, c.slot)->blocks;
	c.active = found_of(q->set, c.slot)->active_blocks;
	c.usable = route_usable(q, c.slot);
	allow_steps(q, PART_STEPS);
	best_note(q, &c);
	*out = c;
	return KVR_OK;
}

int
route_choose(const struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, struct found_set *set, int64_t now,
    struct choice *out)
{
	struct question q;
	int error = route_begin(&q, k, p, r, set, now);

	return error == KVR_OK ? route_take(&q, out) : error;
}
