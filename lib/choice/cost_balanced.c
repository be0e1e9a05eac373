/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cost_balanced.c - the cost of a worker in seconds, to this request and to
 * others.
 *
 *	booked    tokens of other requests that are to be prefilled there
 *	new       tokens of this prompt that would have to be prefilled there
 *	load      requests that run there; or, if that is more, the prompts that
 *	          run there, in prompts of mean length
 *	mean      tokens of a prompt, over the running ones and this one
 *	pressure  2 * reuse * inserted / mean inserted, see pressure.c;
 *	          reuse is hits^2, and at least the lesser of hits and 0.06
 *	pace      seconds that a token takes to prefill there, see rate.c
 *
 *	cost = pace * (booked + new * (1 + pressure)
 *	               + load * (new + mean / 5) / 4)
 *
 * The request waits for booked tokens, and delays no other by that. Prefill of
 * its own tokens delays it, and all that run there, since it takes their steps.
 * For each token of their answers they read their contexts, which takes a tenth
 * to a quarter of the time of their prefill. Both terms count a quarter: some
 * of the requests that run wait themselves, or are about to end.
 *
 * New tokens drive as many out of a full cache. The old ones would have been
 * wanted as likely as tokens of this traffic are found; and where many come in,
 * the new ones are soon gone, too. This counts a little even if little is
 * found: else one worker that has a short beginning of all prompts, and is free
 * again at each request, would get all of them.
 *
 * LOAD is the scarcer of two things that requests share: steps, or memory.
 * Requests are counted, and not the distinct blocks that they share: a hundred
 * requests on one prefix are a hundred requests.
 *
 * A COMMON prefix, such as the system prompt of an assistant, is in use on many
 * workers at once. All others will be sent it soon, whatever this request does,
 * so its prefill there is no reason to avoid them. If n eligible workers have a
 * block in use, and r of all R requests run on them, then the share
 *
 *	r / R * (1 - 1 / n^2)
 *
 * counts as held by all: half of the block if half of a fleet has it and the
 * other half is as busy, nearly all if the others are idle. A prompt that was
 * only observed is in use for the mean time that such requests run. Blocks that
 * are merely on record do not count: else copies that have long been evicted
 * would, and everything would be copied everywhere.
 *
 * A stage of prefill has no answers: load is 0. One of decoding has no prefill:
 * booked and new are 0. kvr_policy(3) gives the source of the formula.
 */
#include "cost_balanced.h"

#include "best.h"
#include "bound.h"
#include "expect.h"
#include "observed.h"
#include "pair.h"
#include "pressure.h"
#include "rate.h"
#include "set.h"
#include "settle.h"

#define PRESSURE 2.0   /* times the reuse of this traffic, */
#define REUSE_LEAST 0.06 /* if so much is found */
#define LOAD 0.25      /* of the delay of running requests */
#define ANSWER 0.2     /* of a mean prompt: the share of its answer */
#define OBSERVED_LEAST 0.1 /* requests; the last is a while ago */
#define TIE 0.01       /* costs that differ by this share are equal */

/* --------------------------------------------------- common prefixes --- */

/* Workers that use the prompt up to some depth, and their requests. */
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

/*
 * Counts the eligible workers by the depth up to which it is in use. Most have
 * the depth of the one before: their sum waits in a register.
 */
static uint32_t
count_users(const struct question *q, struct users *users)
{
	struct set_walk w = set_walk(q->held, q->words);
	uint32_t slot, used, last = 0, depth = 0, blocks = q->p->blocks, n = 0;
	struct users sum = { 0, 0 };

	memset(users, 0, (DEPTHS + 1) * sizeof(users[0]));
	while (set_next(&w, &slot)) {
		used = used_by(q, slot);
		if (used == 0)
			continue;
		used = used < blocks ? used : blocks;
		if (used != last) {
			users[depth] = sum;
			depth = (uint32_t)((uint64_t)used * DEPTHS / blocks);
			sum = users[depth];
			last = used;
		}
		sum.requests += requests_on(q, slot);
		sum.workers++;
		n++;
	}
	users[depth] = sum;
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

/* How many blocks behind the first `held` count as held. */
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

/* The terms that are equal for all workers. */
void
balanced_begin(struct question *q)
{
	double hits = pressure_hits(q->k), reuse = hits * hits;
	double least = hits < REUSE_LEAST ? hits : REUSE_LEAST;
	struct fleet f;

	q->observed = observed_left(q->k, q->now);
	f = bound_fleet(q);
	q->mean = (f.reading + (double)q->tokens) / (f.requests + 1);
	q->per_mean = 1 / q->mean;
	if (reuse < least)
		reuse = least;
	q->pressure = f.inserted > 0
	    ? PRESSURE * reuse * q->eligible / f.inserted : 0;
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
 * The terms of a cost that are equal for all workers, for the cost of two at a
 * time. It is the same to the bit as cost_of, unless loads are damaged.
 */
struct terms {
	pair load, answer, pressure, per_mean, mean, observed;
	pair_mask prefill; /* none set: the request brings none */
};

static struct terms
terms_of(const struct question *q)
{
	double load = q->request.stage != KVR_STAGE_PREFILL ? LOAD : 0;
	int64_t prefill = (q->request.flags & KVR_IGNORE_PREFILL) == 0 ? -1 : 0;
	struct terms t = { { load, load }, { ANSWER, ANSWER },
		{ q->pressure, q->pressure }, { q->per_mean, q->per_mean },
		{ q->mean, q->mean }, { q->observed, q->observed },
		{ prefill, prefill } };

	return t;
}

INLINE pair
load_of_two(const struct loads *l, const struct terms *t, uint32_t slot)
{
	pair requests = { read_once(l->requests[slot]),
		read_once(l->requests[slot + 1]) };
	pair reading = pair_read(&l->reading[slot]);

	if (t->observed[0] > 0) {
		requests += t->observed *
		    pair_read(&l->observed_requests[slot]);
		reading += t->observed *
		    pair_read(&l->observed_reading[slot]);
	}
	return pair_greater(requests, reading * t->per_mean);
}

INLINE pair
cost_of_two(const struct loads *l, const struct terms *t, uint32_t slot,
    pair fresh, pair wait)
{
	pair pace = pair_read(&l->pace[slot]), most = { COST_MAX, COST_MAX };
	pair pressure = t->pressure * pair_read(&l->inserted[slot]);
	pair load = t->load * load_of_two(l, t, slot), one = { 1, 1 }, cost;

	cost = wait + pace * fresh * (one + pressure + load);
	cost = (pair)(t->prefill & (pair_mask)cost);
	cost += pace * load * t->answer * t->mean;
	return pair_within(cost, most);
}

/* Prefill of a worker, computed again only where the overlap is another. */
struct fresh {
	double none, last, of_last;
};

INLINE double
fresh_on(const struct question *q, struct fresh *f, uint32_t slot)
{
	double held = found_of(q->set, slot)->blocks;

	if (held == 0)
		return f->none;
	if (held != f->last) {
		f->last = held;
		f->of_last = fresh_of(q, held);
	}
	return f->of_last;
}

/* Costs of a run of workers, none of which holds any of the prompt, or some. */
INLINE double
find_costs_of(const struct question *q, struct set_run run,
    const struct terms *terms, struct fresh *f, bool held)
{
	const struct loads l = q->k->loads;
	const struct terms t = *terms; /* stores to costs do not change it */
	double *costs = q->set->costs, last;
	pair lowest = { 2 * COST_MAX, 2 * COST_MAX }, cost;
	pair fresh = { f->none, f->none };
	uint32_t i = run.from;

	for (; i + 1 < run.to; i += 2) {
		if (held)
			fresh = (pair){ fresh_on(q, f, i),
				fresh_on(q, f, i + 1) };
		cost = cost_of_two(&l, &t, i, fresh, (pair){ costs[i],
		    costs[i + 1] });
		pair_write(&costs[i], cost);
		lowest = pair_less(cost, lowest);
	}
	if (i < run.to) {
		last = cost_of(q, i, held ? fresh_on(q, f, i) : f->none,
		    costs[i]);
		costs[i] = last;
		lowest[0] = last < lowest[0] ? last : lowest[0];
	}
	return lowest[0] < lowest[1] ? lowest[0] : lowest[1];
}

/* The same where the request has preferences among workers. */
static double
find_disliked(const struct question *q, struct set_run run, struct fresh *f)
{
	double lowest = 2 * COST_MAX, *costs = q->set->costs;
	uint32_t i;

	for (i = run.from; i < run.to; i++) {
		costs[i] = cost_of(q, i, fresh_on(q, f, i), costs[i]);
		lowest = costs[i] < lowest ? costs[i] : lowest;
	}
	return lowest;
}

/*
 * Replaces the backlogs in `costs` by costs if nothing is lost; returns the
 * lowest. Most workers hold none of the prompt, or as much as others, and
 * differ in their loads alone.
 */
double
balanced_find(struct question *q)
{
	struct set_walk w = set_walk(q->below, q->words);
	const struct terms t = terms_of(q);
	struct fresh fresh = { fresh_of(q, 0), 0, 0 };
	double lowest = 2 * COST_MAX, least;
	struct set_run run;
	uint32_t i;

	for (i = 0; i < q->words; i++)
		q->least[i] = 2 * COST_MAX;
	while (set_next_run(&w, &run)) {
		double *word = &q->least[run.from / 64];

		if (q->request.n_preferences != 0)
			least = find_disliked(q, run, &fresh);
		else if (q->held[run.from / 64] == 0)
			least = find_costs_of(q, run, &t, &fresh, false);
		else
			least = find_costs_of(q, run, &t, &fresh, true);
		*word = least < *word ? least : *word;
		lowest = least < lowest ? least : lowest;
	}
	return lowest;
}

/* A worker whose cost is near the lowest. */
INLINE void
consider_near(const struct question *q, struct best *best, uint32_t slot)
{
	double load = cost_within(load_of(q, slot)); /* or unknown */
	struct bid bid;

	if (load > best->bid.cost * ROUNDED)
		return;
	bid = bid_of(&q->k->loads, slot);
	bid.cost = load * ROUNDED < best->bid.cost ? load : best->bid.cost;
	consider(q, best, bid);
}

/* Takes the least loaded of the workers whose cost is near the lowest. */
void
balanced_take_near(struct question *q, struct choice *out)
{
	static const struct settle settle = { balanced_cost, TIE, false };
	const double *costs = q->set->costs;
	double near = balanced_find(q);
	struct best best = best_none();
	uint32_t word, slot;
	uint64_t left;

	if (q->unsure)
		near = settle_costs(q, q->below, &settle);
	near = settle_near(q, near, TIE);
	for (word = 0; word < q->words; word++) {
		if (q->least[word] > near)
			continue;
		for (left = q->below[word]; left != 0; left &= left - 1) {
			slot = word * 64 + (uint32_t)__builtin_ctzll(left);
			if (costs[slot] <= near)
				consider_near(q, &best, slot);
		}
	}
	take_best(&best, out);
	out->cost = costs[out->slot];
}
