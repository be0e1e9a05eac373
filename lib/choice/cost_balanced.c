/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cost_balanced.c - the cost of a worker in seconds, to this request and to
 * others.
 *
 *	booked    tokens of other requests that are to be prefilled there
 *	new       tokens of this prompt that would have to be prefilled there
 *	load      requests that run there; or, if that is more, the prompts that
 *	          run there, in prompts of mean length
 *	mean      tokens of a prompt, of those that run and this one
 *	pressure  2 * hits^2 * inserted / mean inserted, see pressure.c
 *	pace      seconds that a token takes to prefill there, see rate.c
 *
 *	cost = pace * (booked + new * (1 + pressure)
 *	               + load * (new + mean / 5) / 4)
 *
 * The request waits for what is booked, and delays no other by that. Its own
 * prefill delays it; and all that run there, as it takes their steps. For each
 * token of its answer they read its context, which takes a tenth to a quarter
 * of the time of its prompt's prefill. These two count a quarter: some of those
 * that run wait themselves, or are about to end.
 *
 * What it brings in drives as much out of a full cache. That would have been
 * wanted as likely as tokens of this traffic are found; and where much comes
 * in, what comes in is itself soon gone.
 *
 * LOAD is the scarcer of what requests share: steps, or memory. Requests are
 * counted, and not the distinct blocks that they share: a hundred requests on
 * one prefix are a hundred requests.
 *
 * A COMMON prefix, such as the system prompt of an assistant, is in use on many
 * workers at once. All others will be sent it soon, whatever this request does,
 * so that it has to be prefilled there is no reason to avoid them. Of a block
 * that n eligible workers have in use, on which r of all R requests run, the
 * share
 *
 *	r / R * (1 - 1 / n^2)
 *
 * counts as held by all: half of it if half of a fleet has it and the other
 * half is as busy, nearly all if the others are idle. What was only observed is
 * in use for the mean time that such requests run. What is merely on record
 * does not count: copies that have long been evicted would, and everything
 * would be copied everywhere.
 *
 * A stage of prefill has no answers: load is 0. One of decoding has no prefill:
 * booked and new are 0. kvr_policy(3) gives the source of the formula.
 */
#include "cost_balanced.h"

#include "best.h"
#include "bound.h"
#include "expect.h"
#include "observed.h"
#include "pressure.h"
#include "rate.h"
#include "set.h"
#include "settle.h"

#define PRESSURE 2.0   /* times hits^2 */
#define LOAD 0.25      /* of what delays those that run */
#define ANSWER 0.2     /* of a mean prompt: what its answer takes of them */
#define OBSERVED_LEAST 0.1 /* requests, of which the last is a while ago */
#define TIE 0.01       /* costs that differ by this share are equal */

/* --------------------------------------------------- common prefixes --- */

/* Workers that use the prompt up to some depth, and what runs on them. */
struct users {
	double requests;
	uint32_t workers;
};

/* Blocks of the prompt that are in use on a worker. */
static uint32_t
used_by(const struct question *q, uint32_t slot)
{
	const struct kvr_overlap *o = found_of(q->set, slot);
	int64_t stamp;

	if (o->active_blocks == o->blocks ||
	    !(q->observed * observed_requests(q->k, slot) > OBSERVED_LEAST))
		return o->active_blocks;
	stamp = expect_stamp(q, slot);
	return stamp >= 0 && stamp <= q->now && (double)(q->now - stamp) *
	    1e-9 <= q->policy.observed_seconds ? o->blocks
	    : o->active_blocks;
}

/* Counts the eligible workers by the depth up to which it is in use. */
static uint32_t
count_users(const struct question *q, struct users *users)
{
	struct set_walk w = set_walk(q->take, q->words);
	uint32_t slot, used, depth, blocks = q->p->blocks, n = 0;

	memset(users, 0, (DEPTHS + 1) * sizeof(users[0]));
	while (set_next(&w, &slot)) {
		used = used_by(q, slot);
		if (used == 0)
			continue;
		used = used < blocks ? used : blocks;
		depth = (uint32_t)((uint64_t)used * DEPTHS / blocks);
		users[depth].requests += requests_on(q, slot);
		users[depth].workers++;
		n++;
	}
	return n;
}

/*
 * Fills common[i]: the blocks from depth i on that count as held by all. A
 * depth is a 256th of the prompt, rounded down.
 */
static void
find_common(struct question *q, double running)
{
	struct users at[DEPTHS + 1], sum = { 0, 0 };
	double share, depth = (double)q->p->blocks / DEPTHS;
	uint32_t i;

	q->shares = false;
	if (q->set->count < 2 || q->p->blocks == 0 || !(running > 0) ||
	    count_users(q, at) < 2)
		return;
	q->shares = true;
	q->common[DEPTHS] = 0;
	for (i = DEPTHS; i > 0; i--) {
		sum.requests += at[i].requests;
		sum.workers += at[i].workers;
		share = sum.workers < 2 ? 0 : sum.requests / running *
		    (1 - 1.0 / sum.workers / sum.workers);
		q->common[i - 1] = q->common[i] + depth * share;
	}
}

/* Of the blocks behind the first `held`, those that count as held. */
static double
common_behind(const struct question *q, double held)
{
	double at = held / q->p->blocks * DEPTHS;
	uint32_t i;

	if (!q->shares || !(at < DEPTHS))
		return 0;
	i = (uint32_t)at;
	return q->common[i + 1] +
	    (i + 1 - at) * (q->common[i] - q->common[i + 1]);
}

/* --------------------------------------------------------------- terms --- */

/* What is the same for every worker. */
void
balanced_begin(struct question *q)
{
	double hits = pressure_hits(q->k);
	struct fleet f;

	q->observed = observed_left(q->k, q->now);
	f = bound_fleet(q);
	q->mean = (f.reading + (double)q->tokens) / (f.requests + 1);
	q->per_mean = 1 / q->mean;
	q->pressure = f.inserted > 0
	    ? PRESSURE * hits * hits * q->eligible / f.inserted : 0;
	find_common(q, f.requests);
	q->wait = f.wait;
	bound_find(q, &f);
}

/* Prefill that the prompt brings where so much of it is cached, in tokens. */
static double
fresh_of(const struct question *q, double held)
{
	double fresh = (double)q->tokens -
	    (held + common_behind(q, held)) * q->block;

	return fresh >= 1 ? fresh : 1;
}

INLINE double
load_of(const struct question *q, uint32_t slot)
{
	double requests = requests_on(q, slot);
	double reading = reading_on(q, slot) * q->per_mean;

	return requests > reading ? requests : reading;
}

/* `wait` is the worker's backlog, in seconds. */
INLINE double
cost_of(const struct question *q, uint32_t slot, double fresh, double wait)
{
	double pace = read_once_double(&q->k->loads.pace[slot]);
	double pressure = q->pressure * pressure_inserted(q->k, slot);
	double load = 0, cost = 0;

	if (q->request.stage != KVR_STAGE_PREFILL)
		load = LOAD * load_of(q, slot);
	if ((q->request.flags & KVR_IGNORE_PREFILL) == 0)
		cost = wait + pace * fresh * (1 + pressure + load);
	cost += pace * load * ANSWER * q->mean;
	if (q->request.n_preferences != 0)
		cost *= question_dislike(&q->request,
		    read_once(q->k->slots[slot].taints));
	return cost_within(cost);
}

/* -------------------------------------------------------------- choice --- */

/* The cost if `held` blocks of the prompt are cached there. */
double
balanced_cost(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, double held)
{
	(void)o;
	return cost_of(q, slot, fresh_of(q, held),
	    rate_backlog(q->k, slot, q->now));
}

/*
 * Replaces the backlogs in `costs` by costs if nothing is lost; returns the
 * lowest. Most workers hold none of the prompt, or as much as others, and
 * differ in their loads alone.
 */
static double
find_costs(const struct question *q, double *costs)
{
	struct set_walk w = set_walk(q->below, q->words);
	const double none_held = fresh_of(q, 0);
	double lowest = 2 * COST_MAX, last = 0, fresh = none_held, held;
	uint32_t slot;

	while (set_next(&w, &slot)) {
		held = found_of(q->set, slot)->blocks;
		if (held != 0 && held != last) {
			last = held;
			fresh = fresh_of(q, held);
		}
		costs[slot] = cost_of(q, slot, held == 0 ? none_held : fresh,
		    costs[slot]);
		lowest = costs[slot] < lowest ? costs[slot] : lowest;
	}
	return lowest;
}

/* Takes the least loaded of the workers whose cost is near the lowest. */
void
balanced_take_near(const struct question *q, struct choice *out)
{
	static const struct settle settle = { balanced_cost, TIE, false };
	const double *costs = q->set->costs;
	double near = find_costs(q, q->set->costs), load;
	struct set_walk w = set_walk(q->below, q->words);
	struct best best = best_none();
	struct bid bid;
	uint32_t slot;

	if (q->unsure)
		near = settle_costs(q, q->below, &settle);
	near = settle_near(q, near, TIE);
	while (set_next(&w, &slot)) {
		if (costs[slot] > near)
			continue;
		load = cost_within(load_of(q, slot)); /* or it is none */
		if (load > best.bid.cost)
			continue;
		bid = bid_of(&q->k->loads, slot);
		bid.cost = load;
		consider(q, &best, bid);
	}
	take_best(&best, out);
	out->cost = costs[out->slot];
}
