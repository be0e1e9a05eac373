/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expect.c - how much of an overlap an engine can be expected to find cached.
 *
 * The index records the prompts sent to a worker. For a worker with TTL
 * retention they are used as they are, as the reference does. For others more
 * is known:
 *
 *   usable     an engine computes at least one token of each prompt, and finds
 *              whole blocks of its own size: of L tokens and blocks of b at
 *              most floor((L - 1) / b) * b, and no part of a block
 *   resumable  a model with sliding windows resumes only where the engine has
 *              kept their blocks: at the last mark that is cached (window.c)
 *   surviving  where reports are the only evidence: each block is as likely as
 *              blocks of its age have been, and no likelier than the one
 *              before it, since engines find leading blocks only
 *
 *   nothing    an engine that has reported 0 again and again finds nothing,
 *              not even blocks in use: numbers.c
 *
 *	E = sum over blocks i of min over j <= i of S(age of j)
 *
 * Ages grow along a path, so S mostly falls and the minimum is the last; the
 * sum is made from the end of the path, where the match found the worker, and
 * by its entries (cover.c), however many nodes they cover: the match has noted
 * the nodes, so that of the next entry is found by bisection.
 *
 * STEPS. A choice may take a number of them for all of this (route.c), and for
 * one worker no more than EACH. The blocks further up a path count as those
 * behind them, which are older, and no mark is found there; a worker that is
 * not looked at counts as having lost all.
 *
 * The entries are read without the lock, as in a match.
 */
#include "expect.h"

#include "cover.h"
#include "entry.h"
#include "load.h"
#include "stack.h"
#include "survival.h"
#include "table.h"

enum {
	EACH = 384,      /* steps for a worker; */
	ENTRY_STEPS = 2  /* an entry takes as many and its links */
};
/* For engines that find nothing: else they would never be tried again. */
#define HOPE (1.0 / 64)

/*
 * The probability that the blocks of an entry are still cached. Where it is
 * below half of that of the youngest blocks it counts a 16th: requests that
 * return to such blocks are mostly computed anew, and drive out others that
 * would have fitted. It is relative since some engines report too little.
 */
static double
entry_survives(const struct kvr *k, uint32_t slot, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);
	double s;

	if (read_once(h->pins) > 0)
		return 1;
	s = survival_of(k, slot, survival_bin(stack_depth(k, slot,
	    read_once(h->released))));
	return s < survival_of(k, slot, 0) / 2 ? s / 16 : s;
}

/*
 * Blocks by the lowest S met above them so far. Climbing to a lower S lowers
 * all larger ones to it, so the largest are on top.
 */
enum { PILE = AGES + 2 }; /* values of S: each bin */

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

/* An entry of the path, on the way up. */
struct climb {
	uint32_t entry;
	uint32_t at;     /* the last node that it covers, of the match's, */
	uint32_t depth;  /* the blocks of the prompt up to there, */
	uint32_t beyond; /* and its blocks behind these */
	uint64_t most;   /* steps */
};

static uint32_t
climb_seek(const struct question *q, uint32_t slot, uint32_t node,
    struct climb *c)
{
	struct found_set *set = q->set;
	struct cover at = { 0, 0 };
	uint32_t links;

	if (set->steps >= c->most)
		return 0;
	links = at.links = (uint32_t)(c->most - set->steps);
	c->entry = cover_seek(q->k, node, slot, &at);
	c->beyond = at.beyond;
	set->steps += ENTRY_STEPS + links - at.links;
	return c->entry;
}

/* The entry with which the overlap ends; false: not found, or no step. */
static bool
climb_begin(const struct question *q, uint32_t slot, struct climb *c)
{
	const struct found_set *set = q->set;
	const struct found_end *end = found_end(set, slot);

	c->most = set->steps + EACH < set->most ? set->steps + EACH
	    : set->most;
	if (end == NULL || climb_seek(q, slot, end->node, c) == 0)
		return false;
	c->at = end->at;
	c->depth = end->depth;
	c->beyond += end->beyond;
	return true;
}

/* The one above it; false: it begins at the root, or no more is known. */
static bool
climb_next(const struct question *q, uint32_t slot, struct climb *c)
{
	const struct path_node *nodes = q->set->nodes;
	uint64_t behind = (uint64_t)c->depth + c->beyond;
	uint32_t blocks = read_once(entry_at(q->k, c->entry)->blocks);
	uint32_t low = c->at + 1, high = q->set->n_nodes, middle;

	if (blocks >= behind)
		return false;
	while (low < high) {
		middle = low + (high - low) / 2;
		if (nodes[middle].depth > behind - blocks)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == q->set->n_nodes ||
	    climb_seek(q, slot, nodes[low].node, c) == 0)
		return false;
	c->at = low;
	c->depth = nodes[low].depth;
	return true;
}

/* ------------------------------------------------------ sliding windows --- */

/*
 * Entries released up to then have lost their ends: eviction is in that order.
 * 0: no entry has.
 */
static uint64_t
lost_until(const struct kvr *k, uint32_t slot)
{
	const struct entry *oldest = entry_at(k,
	    read_once(slot_at(k, slot)->by_release.head));

	return read_once(oldest->node) != 0 && read_once(oldest->trimmed) > 0
	    ? read_once(oldest->released) : 0;
}

/* Where all is kept, it is there as long as the end of the path is. */
static bool
dense_lost(const struct kvr *k, uint32_t slot, const struct entry *last)
{
	if (read_once(last->pins) > 0 ||
	    (read_once(last->flags) & ENTRY_WHOLE) != 0)
		return false;
	return read_once(last->trimmed) > 0 ||
	    read_once(node_at(k, read_once(last->node))->children) == 0 ||
	    read_once(last->released) <= lost_until(k, slot);
}

/* Whether the memory of tails has not been filled since. */
static bool
tail_alive(const struct question *q, uint32_t slot, const struct entry *h)
{
	const struct window *w = window_of(q->k, slot);

	return !window_apart(w) || read_once(h->pins) > 0 ||
	    read_once(h->released) >=
	    read_once(w->clock[WINDOW_QUARTERS - 1]);
}

/* Depth of the last mark of the overlap, from the end of it up; 0: none. */
static uint32_t
last_mark(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, struct climb c)
{
	do {
		const struct entry *h = entry_at(q->k, c.entry);

		if (c.beyond == 0 && c.depth <= o->blocks &&
		    (read_once(h->flags) & ENTRY_MARKED) != 0 &&
		    tail_alive(q, slot, h))
			return c.depth;
	} while (climb_next(q, slot, &c));
	return 0;
}

/* How many blocks of the overlap there are up to the last end. */
static uint32_t
up_to_ends(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, const struct climb *c)
{
	const struct window *w = window_of(q->k, slot);
	const struct entry *last = entry_at(q->k, c->entry);
	uint32_t interval = read_once(w->interval), marked, tokens;

	/* no longer than the window, the path is its own tail */
	if ((read_once(last->flags) & ENTRY_MARKED) != 0 &&
	    ((double)c->depth + c->beyond) * q->block <=
	    read_once(w->tokens))
		return o->blocks;
	marked = last_mark(q, slot, o, *c);
	if (interval == 0)
		return marked;
	tokens = o->tokens - o->tokens % interval;
	return tokens > marked * q->block ? (uint32_t)(tokens / q->block)
	    : marked;
}

/*
 * How much of the overlap a dense cache has. Where the end of the path is lost,
 * all that was used with it is lost, too; but not blocks that another path,
 * which is not lost, has used since.
 */
static uint32_t
up_to_used(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, struct climb c)
{
	const struct entry *last = entry_at(q->k, c.entry), *h;

	if (!dense_lost(q->k, slot, last))
		return o->blocks;
	while (climb_next(q, slot, &c)) {
		h = entry_at(q->k, c.entry);
		if (c.depth <= o->blocks && (read_once(h->pins) > 0 ||
		    read_once(h->released) > read_once(last->released)) &&
		    !dense_lost(q->k, slot, h))
			return c.depth;
	}
	return 0;
}

/* Behind how many blocks of the overlap the engine can resume. */
static uint32_t
resumable_blocks(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	struct climb c;

	if (!climb_begin(q, slot, &c))
		return 0;
	return read_once(window_of(q->k, slot)->mode) == KVR_WINDOW_DENSE
	    ? up_to_used(q, slot, o, c) : up_to_ends(q, slot, o, &c);
}

/*
 * Blocks of the overlap that the engine can use, from whole tokens. Where a
 * mark must be looked for and no step is left, the slot, which is in no CPU
 * cache, is not read.
 */
double
expect_usable(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	uint32_t gate = read_once(q->k->loads.gate[slot]), blocks = o->blocks;

	if ((gate & GATE_WINDOW) != 0) {
		if (q->set->steps >= q->set->most)
			return 0;
		blocks = resumable_blocks(q, slot, o);
	}
	return (double)trust_usable(q->k, slot, q->tokens,
	    prompt_blocks_tokens(q->p, blocks)) / q->block;
}

/* ------------------------------------------------------------- survival --- */

/* Expected blocks of the path's first `blocks`; the last may be partial. */
static double
surviving_blocks(const struct question *q, uint32_t slot, double blocks)
{
	struct climb c, above;
	struct pile pile;
	double some;
	bool more;

	if (!climb_begin(q, slot, &c))
		return 0;
	pile.n = 0;
	do {
		above = c;
		more = climb_next(q, slot, &above);
		some = c.depth < blocks ? c.depth : blocks;
		if (more)
			some -= above.depth;
		if (some > 0)
			pile_add(&pile, entry_survives(q->k, slot, c.entry),
			    some);
		c = above;
	} while (more);
	return pile_sum(&pile, blocks);
}

/*
 * Loads the memory that an answer about a worker will read, in two steps: the
 * second follows the links that the first has loaded.
 */
void
expect_prefetch(const struct question *q, uint32_t slot)
{
	const struct found_end *end = found_end(q->set, slot);

	expect_prefetch_slot(q->k, slot);
	if (end != NULL)
		__builtin_prefetch(&q->k->entry_buckets[bucket_of_entry(q->k,
		    end->node, slot)]);
}

void
expect_prefetch_next(const struct question *q, uint32_t slot)
{
	const struct found_end *end = found_end(q->set, slot);
	const struct survival *s = survival_at(q->k, slot);
	const struct stack *stack = stack_at(q->k, slot);

	__builtin_prefetch(&s->zeros);
	__builtin_prefetch(&s->likely[0]);
	__builtin_prefetch(&stack->n);
	__builtin_prefetch(&stack->begin[0]);
	__builtin_prefetch(&stack->idle[0]);
	__builtin_prefetch(entry_at(q->k,
	    read_once(slot_at(q->k, slot)->by_release.head)));
	if (end != NULL)
		__builtin_prefetch(entry_at(q->k,
		    read_once(q->k->entry_buckets[bucket_of_entry(q->k,
		    end->node, slot)])));
}

/* The expected number of blocks that have survived. */
double
expect_surviving(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	double usable = expect_usable(q, slot, o);

	if (numbers_nothing(q->k, slot))
		return usable * HOPE;
	return surviving_blocks(q, slot, usable);
}
