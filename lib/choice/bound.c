/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bound.c - a limit on the requests of one worker, by those of the others.
 *
 * Whatever costs say, no worker runs more requests than its share, times a
 * factor, plus a few:
 *
 *	share = weight * places / their sum over the eligible workers
 *	limit = balanced_bound * share * (running + 1) + balanced_bound_slack
 *
 * Running are requests of all eligible workers, waiting ones and external load
 * included; the one that is routed is the last. Places are the requests that a
 * worker runs at a time, told or learnt (places.c); where they are not known,
 * the mean of the others. With a factor of 1 or more some worker is below its
 * limit always, since not all can have more than their shares.
 *
 * The idea is that of consistent hashing with bounded loads (Mirrokni, Thorup,
 * Zadimoghaddam, SODA 2018), with a cost in place of the hash.
 */
#include "bound.h"

#include "set.h"

/* Limits are often whole numbers: a bit lost must not decide. */
#define ROUNDED (1 + 1e-9)

/* Requests and places of the eligible workers. */
struct taken
bound_taken(const struct question *q)
{
	const struct loads *l = &q->k->loads;
	struct set_walk w = set_walk(q->take, q->words);
	uint64_t all_running = 0, all_places = 0;
	struct taken t = { 0 };
	uint32_t slot, places, running;

	while (set_next(&w, &slot)) {
		running = read_once(l->requests[slot]);
		places = read_once(l->places[slot]);
		all_running += running;
		all_places += places;
		t.known += places != 0;
		if (running > t.most)
			t.most = running;
	}
	t.running = (double)all_running;
	t.places = (double)all_places;
	return t;
}

static double
share_of(const struct question *q, uint32_t slot, double mean)
{
	uint32_t places = read_once(q->k->loads.places[slot]);
	double share = places != 0 ? places : mean;

	return q->weighted ? share * read_once_double(
	    &q->k->slots[slot].weight) : share;
}

static double
shares_sum(const struct question *q, const struct taken *t, double mean)
{
	struct set_walk w = set_walk(q->take, q->words);
	double sum = 0;
	uint32_t slot;

	if (!q->weighted)
		return t->places + mean * (q->eligible - t->known);
	while (set_next(&w, &slot))
		sum += share_of(q, slot, mean);
	return sum;
}

/* Fills q->below: those of the eligible that may be chosen; never none. */
void
bound_find(struct question *q, const struct taken *t)
{
	const uint32_t *requests = q->k->loads.requests;
	struct set_walk w = set_walk(q->take, q->words);
	double mean = t->known > 0 ? t->places / t->known : 1;
	double all, shares, slack = q->policy.balanced_bound_slack;
	double share, last = -1, most = 0; /* of equal shares the last one's */
	bool any = false;
	uint32_t slot;

	memcpy(q->below, q->take, q->words * sizeof(q->take[0]));
	if (!(q->policy.balanced_bound > 0) || 1.0 + t->most <= slack)
		return;
	all = q->policy.balanced_bound * (t->running + 1);
	shares = shares_sum(q, t, mean);
	while (set_next(&w, &slot)) {
		share = share_of(q, slot, mean);
		if (share != last)
			most = (all * share / shares + slack) * ROUNDED;
		last = share;
		if (1.0 + read_once(requests[slot]) <= most)
			any = true;
		else
			set_remove(q->below, slot);
	}
	if (!any) /* a factor below 1, or another thread's changes */
		memcpy(q->below, q->take, q->words * sizeof(q->take[0]));
}
