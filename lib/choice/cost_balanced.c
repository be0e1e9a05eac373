/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cost_balanced.c - the cost of a worker in seconds, to this request and to
 * others.
 *
 *	new      = tokens of the prompt that would have to be prefilled there
 *	reading  = tokens of the prompts that run there, and of this one
 *	decoding = requests that run there and are past their first token
 *	rho      = how busy the fleet is, see below; at most 0.99
 *	lambda   = 1 / (1 - rho), at most 16.5
 *
 *	cost = wait
 *	     + pace * new * (balanced_prefill * lambda
 *	                     + balanced_interfere * decoding)
 *	     + pace * balanced_read * reading
 *	     + balanced_request * decoding
 *
 * The wait delays this request alone: until what is booked is prefilled
 * (rate.c), until a place is free (places.c) or memory (headroom.c), whichever
 * is longest. The prefill that it brings delays it and all that arrive
 * meanwhile, the more the busier the fleet is: as in a queue near its limit,
 * one more second of work is 1 / (1 - rho) seconds of waiting. So a busy fleet
 * is careful with prefill and follows overlap, and an idle one spreads its
 * work. Each step of the engine reads what runs there, and takes some time for
 * each request.
 *
 * Requests are counted, and not the distinct blocks that they share: a hundred
 * requests on one prefix are a hundred requests.
 *
 * A COMMON prefix, such as the system prompt of an assistant, is one that many
 * workers hold. All others will be sent it soon, whatever this request does, so
 * that it has to be prefilled there is no reason to avoid them: it counts as
 * held, in steps, as the share of workers that hold it grows from 5/8 of
 * balanced_common to balanced_common. Without this a worker that joins would
 * never be asked.
 *
 * rho is the prefill that arrives over what the fleet can prefill, or, where
 * all know how many requests they run at a time, the fourth power of the share
 * of these places that is taken, whichever is larger: requests wait for a place
 * only when nearly all are taken. The fleet are all that share the arrivals,
 * not only those eligible for this request: a pinned worker would seem
 * saturated.
 *
 * pace (seconds per token) is that of rate.c. kvr_policy(3) gives the source of
 * the formula and of each weight.
 */
#include "cost_balanced.h"

#include "best.h"
#include "bound.h"
#include "eligible.h"
#include "expect.h"
#include "headroom.h"
#include "places.h"
#include "rate.h"
#include "set.h"

#define RHO_MAX 0.99
#define LAMBDA_MAX 16.5
#define TIE_SECONDS 0.001
enum { DEPTHS = 256 }; /* that are told apart */

/* The smallest depth that is counted under `i`. */
static uint32_t
depth_of(const struct question *q, uint32_t i)
{
	return (uint32_t)(((uint64_t)i * q->p->blocks + DEPTHS - 1) / DEPTHS);
}

/* Counts the eligible workers by the depth up to which they hold the prompt. */
static void
count_depths(const struct question *q, uint32_t *counts)
{
	struct set_walk w = set_walk(q->take, q->words);
	uint32_t slot, held, blocks = q->p->blocks;

	memset(counts, 0, (DEPTHS + 1) * sizeof(counts[0]));
	while (set_next(&w, &slot)) {
		held = found_of(q->set, slot)->blocks;
		held = held < blocks ? held : blocks;
		counts[blocks > 0 ? (uint64_t)held * DEPTHS / blocks : 0]++;
	}
}

/*
 * Fills the depths of common prefixes: held by more and more workers. Depths
 * are rounded down to a 256th of the prompt, so that one walk suffices.
 */
static void
find_common(struct question *q)
{
	double half = q->policy.balanced_common * q->eligible / 2;
	uint32_t counts[DEPTHS + 1], i, level = 0, n = 0;
	double need = 1 + half + half / COMMON_LEVELS;

	memset(q->common, 0, sizeof(q->common));
	if (!(need > 1 && need <= q->set->count))
		return;
	count_depths(q, counts);
	for (i = DEPTHS; i > 0; i--) {
		n += counts[i];
		for (; level < COMMON_LEVELS && n >= need; level++) {
			q->common[level] = depth_of(q, i);
			need += half / COMMON_LEVELS;
		}
	}
}

/* Blocks that count as held though they are not. */
static double
common_credit(const struct question *q, double held)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < COMMON_LEVELS && q->common[i] > held; i++)
		sum += q->common[i] - held;
	return sum / COMMON_LEVELS;
}

/* How busy the fleet is by the share of its places that are taken. */
static double
busy_places(const struct question *q, const struct taken *t)
{
	double share = t->known == q->eligible && t->places > 0
	    ? t->running / t->places : 0;

	return share * share * share * share;
}

/* Computes what is the same for every worker. */
void
balanced_begin(struct question *q)
{
	double rate = eligible_rate(q);
	double rho = rate > 0 ? rate_arrivals(q->k, q->now) / rate : 0;
	struct taken taken = bound_taken(q);
	double busy = busy_places(q, &taken);

	if (rho < busy)
		rho = busy;
	if (!(rho < RHO_MAX))
		rho = RHO_MAX;
	q->lambda = 1 / (1 - rho);
	if (q->lambda > LAMBDA_MAX)
		q->lambda = LAMBDA_MAX;
	find_common(q);
	bound_find(q, &taken);
}

/* Costs up to this are as good as this one; never less than the cost. */
static double
near_to(const struct question *q, double cost)
{
	double tie = q->policy.balanced_tie;

	return cost * (tie > 0 && tie <= 1 ? 1 + tie : 1) + TIE_SECONDS;
}

/* Prefill that the prompt brings where so much of it is cached, in tokens. */
struct fresh {
	double all;
	double counted; /* less what counts as held: see above */
};

static struct fresh
fresh_of(const struct question *q, double held)
{
	double all = (double)q->tokens - held * q->block;
	double counted = all - common_credit(q, held) * q->block;
	struct fresh f = { all > 0 ? all : 0, counted > 0 ? counted : 0 };

	return f;
}

/* Running requests that are past their first token, as far as is known. */
INLINE double
decoding_on(const struct question *q, uint32_t slot)
{
	uint32_t requests = read_once(q->k->loads.requests[slot]);
	uint32_t prefilling = read_once(q->k->loads.prefilling[slot]);

	if (!rate_spoken(q->k))
		return requests;
	return requests > prefilling ? requests - prefilling : 0;
}

/* Seconds until the prefill of so many tokens can begin. */
INLINE double
wait_on(const struct question *q, uint32_t slot, double fresh)
{
	double queue = rate_wait(q->k, slot, q->now);
	double place = places_wait(q->k, slot);
	double memory = headroom_wait(q->k, slot, fresh);

	place = q->policy.balanced_place * (place > memory ? place : memory);
	return queue > place ? queue : place;
}

INLINE double
cost_of(const struct question *q, uint32_t slot, struct fresh fresh)
{
	const struct loads *l = &q->k->loads;
	const struct kvr_policy *y = &q->policy;
	double pace = read_once_double(&l->pace[slot]);
	double reading = read_once_double(&l->reading[slot]) +
	    (double)q->tokens;
	double decoding = decoding_on(q, slot);
	double cost = y->balanced_read * reading * pace +
	    y->balanced_request * decoding;

	if ((q->request.flags & KVR_IGNORE_PREFILL) == 0) {
		cost += wait_on(q, slot, fresh.all);
		cost += fresh.counted * pace *
		    (y->balanced_prefill * q->lambda +
		    y->balanced_interfere * decoding);
	}
	if (q->request.n_preferences != 0)
		cost *= question_dislike(&q->request,
		    read_once(q->k->slots[slot].taints));
	return cost_within(cost);
}

/* The cost if `held` blocks of the prompt are cached there. */
double
balanced_cost(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, double held)
{
	(void)o;
	return cost_of(q, slot, fresh_of(q, held));
}

/*
 * Takes the least loaded of the workers whose cost is near the lowest. What
 * may have been lost is computed only for workers that would be near without.
 * Most workers hold none of the prompt, and differ in their loads alone.
 */
void
balanced_take_near(const struct question *q, struct choice *out)
{
	double *costs = q->set->costs, near = 2 * COST_MAX;
	struct set_walk w = set_walk(q->below, q->words);
	const struct fresh none_held = fresh_of(q, 0);
	struct best best = best_none();
	uint32_t slot;

	while (set_next(&w, &slot)) {
		const struct kvr_overlap *o = found_of(q->set, slot);
		double c = o->blocks == 0 && slot != q->session.credited
		    ? cost_of(q, slot, none_held)
		    : cost_of(q, slot,
			  fresh_of(q, expect_most(q, slot, o)));

		if (c <= near && expect_doubtful(q, slot, o))
			c = cost_of(q, slot,
			    fresh_of(q, expect_blocks(q, slot, o)));
		costs[slot] = c;
		if (near_to(q, c) < near)
			near = near_to(q, c);
	}
	w = set_walk(q->below, q->words);
	while (set_next(&w, &slot))
		if (costs[slot] <= near)
			consider(q, &best, bid_of(&q->k->loads, slot));
	take_best(&best, out);
	out->cost = costs[out->slot];
}
