/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expect.c - how much of an overlap an engine can be expected to find cached.
 *
 * What is recorded is what was sent to a worker. Of a worker that goes by the
 * TTL that is taken as it is, as the reference does. Of others more is known:
 *
 *   usable     an engine computes at least one token of each prompt, and finds
 *              whole blocks of its own size: of L tokens and blocks of b at
 *              most floor((L - 1) / b) * b, and no part of a block
 *   surviving  where reports are all there is to go by: each block as likely
 *              as blocks of its age have been, and none likelier than the one
 *              before it, for engines find leading blocks only
 *
 *	E = sum over blocks i of min over j <= i of S(age of j)
 *
 * Ages grow along a path, so mostly S falls and the least is the last; the sum
 * is made from the end of the path, where the walk of the match has ended.
 * This is read without the lock, as a match is.
 */
#include "expect.h"

#include "entry.h"
#include "survival.h"
#include "worker.h"

/* How likely is what this entry stands for? */
static double
survives(const struct kvr *k, uint32_t slot, uint32_t node)
{
	const struct entry *h = entry_at(k, entry_read(k, node, slot));

	if (read_once(h->pins) > 0)
		return 1;
	return survival_of(k, slot, read_once(slot_at(k, slot)->volume),
	    read_once(h->released));
}

/*
 * Blocks by the least S that was met above them so far. Climbing to one with a
 * lesser S makes all who have more have that: so those with most are on top.
 */
enum { PILE = 2 * AGES + 2 }; /* values of S: of each bin, and suspected */

struct pile {
	double s[PILE], blocks[PILE];
	uint32_t n;
};

static void
pile_add(struct pile *p, double s, double blocks)
{
	while (p->n > 0 && (p->s[p->n - 1] >= s || p->n == PILE))
		blocks += p->blocks[--p->n];
	p->s[p->n] = s;
	p->blocks[p->n++] = blocks;
}

/* No more than `most`, even if a writer has come between. */
static double
pile_sum(const struct pile *p, double most)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < p->n; i++)
		sum += p->s[i] * p->blocks[i];
	return sum < most ? sum : most;
}

/* Of the first `blocks` of the path, a part of one perhaps, those expected. */
static double
surviving(const struct kvr *k, uint32_t slot, const struct path *path,
    double blocks)
{
	uint32_t node = path->node, here = path->inside, left = path->nodes;
	double depth = path->depth, above, some;
	struct pile pile;

	for (pile.n = 0; left > 0; left--) {
		above = depth - here;
		some = (depth < blocks ? depth : blocks) - above;
		if (some > 0)
			pile_add(&pile, survives(k, slot, node), some);
		depth = above;
		node = read_once(node_at(k, node)->parent);
		here = read_once(node_at(k, node)->length);
	}
	return pile_sum(&pile, blocks);
}

/* Blocks of the overlap that the engine could use, whole tokens of them. */
double
expect_usable(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	return (double)worker_usable(q->k, slot, q->tokens,
	    prompt_blocks_tokens(q->p, o->blocks)) / q->block;
}

/* Of those, the ones that have survived, as likely as not. */
double
expect_surviving(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	return surviving(q->k, slot, &q->set->path, expect_usable(q, slot, o));
}
