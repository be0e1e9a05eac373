/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * best.h - finds the best of some workers.
 *
 * The lowest cost wins; of equal costs the lowest load; of equal loads the
 * lowest lot: a keyed hash of prompt and worker, so that workers that do not
 * differ otherwise share the prompts, and every replica chooses the same one.
 * Lots are drawn only on a tie, once per worker.
 *
 * Inline, because a choice spends nearly all of its time here.
 */
#ifndef KVR_BEST_H
#define KVR_BEST_H

#include "mix.h"
#include "question.h"

/* For small functions in inner loops, whatever their size to the compiler. */
#define INLINE static inline __attribute__((always_inline))

/* The cost of a worker, and the loads that break ties. */
struct bid {
	double cost, prefill, blocks;
	uint32_t requests, slot;
};

/* The best so far. */
struct best {
	struct bid bid;
	uint64_t lot;  /* of bid, if drawn */
	bool shared;   /* several have this cost */
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
lot_of(const struct question *q, uint32_t slot)
{
	return mix(q->digest ^ read_once(q->k->loads.identity[slot]));
}

/*
 * Equal costs go to the lowest load, then to the lowest lot, which depends
 * neither on the order of workers nor on a number that another router does not
 * know. The order of calls makes no difference.
 */
INLINE void
consider_equal(const struct question *q, struct best *best, struct bid bid)
{
	int order = compare_load(&bid, &best->bid);
	uint64_t lot;

	best->shared = true;
	if (order > 0)
		return;
	if (order == 0) {
		if (!best->drawn)
			best->lot = lot_of(q, best->bid.slot);
		best->drawn = true;
		lot = lot_of(q, bid.slot);
		if (lot >= best->lot)
			return;
		best->lot = lot;
	} else {
		best->drawn = false;
	}
	best->bid = bid;
}

INLINE void
consider(const struct question *q, struct best *best, struct bid bid)
{
	if (bid.cost < best->bid.cost) {
		best->bid = bid;
		best->shared = best->drawn = false;
	} else if (bid.cost == best->bid.cost) {
		consider_equal(q, best, bid);
	}
}

/* A bid without its cost. */
INLINE struct bid
bid_of(const struct loads *l, uint32_t slot)
{
	struct bid bid = { 0, read_once_double(&l->prefill[slot]),
		read_once_double(&l->blocks[slot]),
		read_once(l->requests[slot]), slot };

	return bid;
}

static inline void
take_best(const struct best *best, struct choice *out)
{
	out->slot = best->bid.slot;
	out->cost = best->bid.cost;
	out->reason = best->shared ? KVR_REASON_TIE : KVR_REASON_COST;
}

#endif
