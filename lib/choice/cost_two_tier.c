/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cost_two_tier.c - the longest overlap, unless loads differ much.
 *
 * A worker costs the requests that run on it, divided by its weight. Workers
 * with the longest overlap are preferred, unless that overlap is too short or
 * the loads of the eligible are too unequal. See kvr_policy(3).
 */
#include "cost_two_tier.h"

#include "expect.h"
#include "set.h"

static inline double
two_tier_load(const struct question *q, uint32_t slot)
{
	double load = (double)read_once(q->k->loads.requests[slot]);

	if (q->weighted)
		load /= read_once_double(&q->k->slots[slot].weight);

	return cost_within(load);
}

double
two_tier_cost(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, double held)
{
	(void)o;
	(void)held;
	return two_tier_load(q, slot);
}

/* 0 if the request gives no credit for overlap. */
static inline uint32_t
two_tier_overlap(const struct question *q, uint32_t slot)
{
	return q->request.overlap_credit > 0 ? (uint32_t)expect_blocks(q,
	    slot, found_of(q->set, slot)) : 0;
}

uint32_t
two_tier_longest(const struct question *q)
{
	const struct kvr_policy *policy = &q->policy;
	struct set_walk w = set_walk(q->take, q->words);
	double load, least = 2 * COST_MAX, most = 0;
	uint32_t slot, longest = 0, blocks;

	while (set_next(&w, &slot)) {
		load = two_tier_load(q, slot);
		blocks = two_tier_overlap(q, slot);
		q->set->costs[slot] = blocks;
		least = load < least ? load : least;
		most = load > most ? load : most;
		longest = blocks > longest ? blocks : longest;
	}
	if (most - least > policy->two_tier_load_gap &&
	    most > policy->two_tier_load_ratio * least)
		return 0;
	return (double)longest / q->request_blocks > policy->two_tier_overlap
	    ? longest : 0;
}

void
two_tier_among(const struct question *q, uint32_t longest, uint64_t *among)
{
	struct set_walk w = set_walk(q->take, q->words);
	uint32_t slot;

	memset(among, 0, q->words * sizeof(among[0]));
	while (set_next(&w, &slot))
		if (q->set->costs[slot] == longest)
			set_add(among, slot);
}
