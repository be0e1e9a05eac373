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

/* How many places the eligible workers have in the mean, of those known. */
static double
places_mean(const struct question *q)
{
	struct set_walk w = set_walk(q->take, q->words);
	double sum = 0, known = 0;
	uint32_t slot, places;

	while (set_next(&w, &slot)) {
		places = read_once(q->k->loads.places[slot]);
		sum += places;
		known += places != 0;
	}
	return known > 0 ? sum / known : 1;
}

static double
bound_share(const struct question *q, uint32_t slot, double mean)
{
	uint32_t places = read_once(q->k->loads.places[slot]);
	double share = places != 0 ? places : mean;

	return q->weighted ? share * read_once_double(
	    &q->k->slots[slot].weight) : share;
}

/* Fills q->below: those of the eligible that may be chosen; never none. */
void
bound_find(struct question *q)
{
	const uint32_t *requests = q->k->loads.requests;
	struct set_walk w = set_walk(q->take, q->words);
	double factor = q->policy.balanced_bound;
	double running = 1, shares = 0, mean, most;
	bool any = false;
	uint32_t slot;

	memcpy(q->below, q->take, q->words * sizeof(q->take[0]));
	if (!(factor > 0))
		return;
	mean = places_mean(q);
	while (set_next(&w, &slot)) {
		running += read_once(requests[slot]);
		shares += bound_share(q, slot, mean);
	}
	w = set_walk(q->take, q->words);
	while (set_next(&w, &slot)) {
		most = factor * running * bound_share(q, slot, mean) / shares +
		    q->policy.balanced_bound_slack;
		if (1.0 + read_once(requests[slot]) <= most)
			any = true;
		else
			set_remove(q->below, slot);
	}
	if (!any) /* a factor below 1, or another thread's changes */
		memcpy(q->below, q->take, q->words * sizeof(q->take[0]));
}
