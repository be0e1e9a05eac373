/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * longest.c - the eligible worker with the longest overlap.
 *
 * A choice is compared with it: the difference is the cost in hits of that
 * worker's load, of a session or of a draw. It is found apart from the costs,
 * since these pass over many workers without a look at their overlap.
 *
 * A match meets overlaps from the end of the path on up (match.c), and the ends
 * bound the depth of the rows that follow:
 *
 *	ends   [row 0, depth 8]  [row 1, depth 7]   [row 3, depth 4]
 *	rows    w1: 8             w2: 7   w5: 6 *    w3: 4   w4: 4
 *	                                       * trimmed
 *
 * So the walk is over where no later row can be longer. Mostly that is at once:
 * the chosen worker has the longest itself. Where many have the whole prompt
 * and can use less, and where a caller gave the overlaps, which have no ends,
 * all are looked at.
 *
 * Only the usable part of an overlap counts (expect.c): an engine that computes
 * the last block of a prompt again may have less of a longer one. It is
 * computed for the first LOOKED_MOST rows that are longer than the best so far;
 * survival, which is by chance, is left out.
 */
#include "longest.h"

#include "expect.h"

#include "set.h"

enum { LOOKED_MOST = 256 };

/* Can a row from this one on be longer? Moves on to the end it belongs to. */
static bool
may_be_longer(const struct found_set *set, uint32_t row, uint32_t *end,
    double blocks)
{
	while (*end + 1 < set->n_ends && set->ends[*end + 1].row <= row)
		++*end;
	return set->n_ends == 0 || set->ends[*end].depth > blocks;
}

/* Rows of a caller may name a worker twice, or one that is no more. */
static bool
is_eligible(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	return slot < q->slots && set_has(q->take, slot) &&
	    found_of(q->set, slot) == o;
}

/* Survival apart. */
static double
most_usable(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	return expect_sure(q, slot) || o->blocks == 0 ? o->blocks
	    : expect_usable(q, slot, o);
}

uint32_t
longest_slot(const struct question *q, uint32_t slot)
{
	const struct found_set *set = q->set;
	double best = most_usable(q, slot, found_of(set, slot));
	double usable;
	uint32_t row, end = 0, looked = 0;

	for (row = 0; row < set->count && looked < LOOKED_MOST; row++) {
		const struct kvr_overlap *o = &set->found[row];

		if (!may_be_longer(set, row, &end, best))
			break;
		if (o->blocks <= best || !is_eligible(q, found_slot(o), o))
			continue;
		looked++;
		usable = most_usable(q, found_slot(o), o);
		if (usable > best) {
			slot = found_slot(o);
			best = usable;
		}
	}
	return slot;
}
