/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bound.c - a limit on the requests of one worker, by those of the others.
 *
 * Whatever costs say, no worker runs more requests than its share, times a
 * factor, plus a few:
 *
 *	share = weight / sum of the weights of the eligible workers
 *	limit = balanced_bound * share * (running + 1) + 3
 *
 * Running are requests of all eligible workers, waiting ones and external load
 * included; the one that is routed is the last. With a factor of 1 or more some
 * worker is below its limit always, since not all can have more than their
 * shares. It is a net: with the default factor, 2, costs seldom reach it.
 *
 * The idea is that of consistent hashing with bounded loads (Mirrokni, Thorup,
 * Zadimoghaddam, SODA 2018), with a cost in place of the hash.
 */
#include "bound.h"

#include "pressure.h"
#include "rate.h"
#include "set.h"

#define SLACK 3.0 /* requests that any worker may run */
/* Limits are often whole numbers: a bit lost must not decide. */
#define ROUNDED (1 + 1e-9)

/* Sums over the eligible workers. Leaves the backlog of each in set->costs. */
struct fleet
bound_fleet(const struct question *q)
{
	struct set_walk w = set_walk(q->take, q->words);
	struct fleet f = { .wait = 2 * COST_MAX };
	double requests, wait;
	uint32_t slot;

	while (set_next(&w, &slot)) {
		requests = requests_on(q, slot);
		f.requests += requests;
		f.reading += reading_on(q, slot);
		f.inserted += pressure_inserted(q->k, slot);
		if (requests > f.most)
			f.most = requests;
		wait = rate_backlog(q->k, slot, q->now);
		q->set->costs[slot] = wait;
		if (wait < f.wait)
			f.wait = wait;
	}
	return f;
}

static double
weight_of(const struct question *q, uint32_t slot)
{
	return q->weighted ? read_once_double(&q->k->slots[slot].weight) : 1;
}

static double
weights_sum(const struct question *q)
{
	struct set_walk w = set_walk(q->take, q->words);
	double sum = 0;
	uint32_t slot;

	if (!q->weighted)
		return q->eligible;
	while (set_next(&w, &slot))
		sum += weight_of(q, slot);
	return sum;
}

/* Fills q->below: those of the eligible that may be chosen; never none. */
void
bound_find(struct question *q, const struct fleet *f)
{
	struct set_walk w = set_walk(q->take, q->words);
	double share; /* of a worker of weight 1 */
	bool any = false;
	uint32_t slot;

	memcpy(q->below, q->take, q->words * sizeof(q->take[0]));
	if (!(q->policy.balanced_bound > 0) || 1 + f->most <= SLACK)
		return;
	share = q->policy.balanced_bound * (f->requests + 1) / weights_sum(q);
	while (set_next(&w, &slot)) {
		if (1 + requests_on(q, slot) <=
		    (share * weight_of(q, slot) + SLACK) * ROUNDED)
			any = true;
		else
			set_remove(q->below, slot);
	}
	if (!any) /* a factor below 1, or another thread's changes */
		memcpy(q->below, q->take, q->words * sizeof(q->take[0]));
}
