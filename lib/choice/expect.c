/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expect.c - how much of an overlap an engine can be expected to find cached.
 *
 * The index records what was sent to a worker. For a worker with TTL retention
 * that is used as it is, as the reference does. For others more is known:
 *
 *   usable     an engine computes at least one token of each prompt, and finds
 *              whole blocks of its own size: of L tokens and blocks of b at
 *              most floor((L - 1) / b) * b, and no part of a block
 *   surviving  where reports are the only evidence: each block is as likely as
 *              blocks of its age have been, and no likelier than the one
 *              before it, since engines find leading blocks only
 *
 *   nothing    an engine that has reported 0 again and again finds nothing,
 *              not even what is in use: numbers.c
 *
 *	E = sum over blocks i of min over j <= i of S(age of j)
 *
 * Ages grow along a path, so S mostly falls and the minimum is the last; the
 * sum is made from the end of the path, where the walk of the match ended.
 * The entries are read without the lock, as in a match.
 */
#include "expect.h"

#include "cover.h"
#include "survival.h"
#include "worker.h"

/* Of engines that find nothing: else they would never be tried again. */
#define HOPE (1.0 / 64)

/* The probability that the blocks of an entry are still cached. */
static double
survives(const struct kvr *k, uint32_t slot, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);

	if (read_once(h->pins) > 0)
		return 1;
	return survival_of(k, slot, read_once(slot_at(k, slot)->volume),
	    read_once(h->released));
}

/*
 * Blocks by the lowest S met above them so far. Climbing to a lower S lowers
 * all larger ones to it, so the largest are on top.
 */
enum { PILE = 2 * AGES + 2 }; /* values of S: each bin, and suspected */

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

/* At most `most`, even if a writer has interfered. */
static double
pile_sum(const struct pile *p, double most)
{
	double sum = 0;
	uint32_t i;

	for (i = 0; i < p->n; i++)
		sum += p->s[i] * p->blocks[i];
	return sum < most ? sum : most;
}

/*
 * Expected blocks of the first `blocks` of the path; the last may be partial.
 * Mostly one entry covers all that is left of the path.
 *
 * All walks of a question together have a number of steps, half of those of a
 * writing call: 64 for each cell, and 131,072. They take about three for each
 * doubtful worker and each node on the path and on the lines that it leaves. So
 * these suffice while such nodes are no more than twenty times the cells that
 * the index has for a worker. In a damaged region each node may take thousands.
 * What is not walked counts as lost: then a worker is chosen by its load.
 */
static double
surviving(const struct question *q, uint32_t slot, double blocks)
{
	const struct kvr *k = q->k;
	const struct path *path = &q->set->path;
	struct found_set *set = q->set;
	uint32_t node = path->node, here = path->inside, left = path->nodes;
	double depth = path->depth, above, some;
	struct cover at = { 0, 0, 0, 0 };
	uint32_t beyond = read_once(node_at(k, node)->length) - here;
	struct pile pile;

	for (pile.n = 0; left > 0 && depth > 0; left--) {
		uint32_t entry;

		if (set->steps >= set->most)
			return 0;
		entry = cover_climb(k, &at, node, slot);
		set->steps += 1 + at.links;
		at.links = 0;
		above = entry != 0 && cover_left(k, &at) >= depth + beyond
		    ? 0 : depth - here;
		some = (depth < blocks ? depth : blocks) - above;
		if (some > 0)
			pile_add(&pile, survives(k, slot, entry), some);
		depth = above;
		beyond = 0;
		node = read_once(node_at(k, node)->parent);
		here = read_once(node_at(k, node)->length);
	}
	return pile_sum(&pile, blocks);
}

/* Blocks of the overlap that the engine can use, from whole tokens. */
double
expect_usable(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	return (double)worker_usable(q->k, slot, q->tokens,
	    prompt_blocks_tokens(q->p, o->blocks)) / q->block;
}

/* The expected number of those that have survived. */
double
expect_surviving(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	double usable = expect_usable(q, slot, o);

	if (numbers_nothing(q->k, slot))
		return usable * HOPE;
	return surviving(q, slot, usable);
}
