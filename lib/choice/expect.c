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
 *   resumable  a model with sliding windows resumes only where the engine has
 *              kept these: of what is cached as far as the last mark (window.c)
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
#include "entry.h"
#include "load.h"
#include "stack.h"
#include "survival.h"

/* Of engines that find nothing: else they would never be tried again. */
#define HOPE (1.0 / 64)

/* The probability that the blocks of an entry are still cached. */
static double
entry_survives(const struct kvr *k, uint32_t slot, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);

	if (read_once(h->pins) > 0)
		return 1;
	return survival_of(k, slot, survival_bin(stack_depth(k, slot,
	    read_once(h->released))));
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

/* A node of the path, on the way up. */
struct climb {
	uint32_t node, left; /* how many there are from it on */
	uint32_t here;       /* its blocks that match, */
	uint32_t beyond;     /* and those further down */
	double depth;        /* where the former end, in the prompt */
};

static void
climb_up(const struct question *q, struct climb *c)
{
	c->depth -= c->here;
	c->node = read_once(node_at(q->k, c->node)->parent);
	c->here = read_once(node_at(q->k, c->node)->length);
	c->beyond = 0;
	c->left--;
	q->set->steps++; /* of each node a step, */
}

/* The node in which the overlap ends; the match knows what covers it. */
static struct climb
climb_begin(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, struct cover *at)
{
	const struct path *path = &q->set->path;
	const struct found_end *end = found_end(q->set, slot);
	struct climb c = { path->node, path->nodes, path->inside, 0,
		path->depth };
	uint32_t links = CHAIN_MAX;

	c.beyond = read_once(node_at(q->k, c.node)->length) - c.here;
	while (c.left > 0 && c.depth - c.here >= o->blocks &&
	    q->set->steps < q->set->most)
		climb_up(q, &c);
	memset(at, 0, sizeof(*at));
	if (end == NULL || (double)end->depth != c.depth)
		return c;
	at->entry = entry_seek(q->k, end->node, slot, &links);
	at->links = CHAIN_MAX - links;
	if (at->entry != 0) {
		at->node = c.node;
		at->beyond = end->beyond - c.beyond;
	}
	return c;
}

/* ------------------------------------------------------ sliding windows --- */

/* The entry with which the overlap ends, and how far it goes on; 0: unknown. */
static const struct entry *
last_entry(const struct question *q, uint32_t slot, uint32_t *depth)
{
	const struct found_end *end = found_end(q->set, slot);
	uint32_t links = CHAIN_MAX;

	if (end == NULL)
		return NULL;
	*depth = end->depth + end->beyond;
	return entry_at(q->k, entry_seek(q->k, end->node, slot, &links));
}

int64_t
expect_stamp(const struct question *q, uint32_t slot)
{
	uint32_t depth;
	const struct entry *last = last_entry(q, slot, &depth);

	return last != NULL && read_once(last->node) != 0
	    ? read_once(last->stamp) : -1;
}

/*
 * What was released up to then has lost its end: eviction is in that order. 0:
 * nothing has, of what is left.
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
	if (last == NULL || read_once(last->pins) > 0 ||
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

/* Depth of the last mark of the overlap; 0: none. */
static double
last_mark(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	struct cover at;
	struct climb c = climb_begin(q, slot, o, &at);

	for (; c.left > 0 && c.depth > 0; climb_up(q, &c)) {
		const struct entry *h;

		if (q->set->steps >= q->set->most)
			return 0;
		h = entry_at(q->k, cover_climb(q->k, &at, c.node, slot));
		q->set->steps += 1 + at.links;
		at.links = 0;
		if (at.beyond == 0 && c.beyond == 0 && c.depth <= o->blocks &&
		    (read_once(h->flags) & ENTRY_MARKED) != 0 &&
		    tail_alive(q, slot, h))
			return c.depth;
	}
	return 0;
}

/* Of the overlap, how many blocks there are up to the last end. */
static uint32_t
up_to_ends(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	const struct window *w = window_of(q->k, slot);
	uint32_t end = 0, interval = read_once(w->interval), marked, tokens;
	const struct entry *last = last_entry(q, slot, &end);

	/* no longer than the window, the path is its own tail */
	if (last != NULL && (read_once(last->flags) & ENTRY_MARKED) != 0 &&
	    end * q->block <= read_once(w->tokens))
		return o->blocks;
	marked = (uint32_t)last_mark(q, slot, o);
	if (interval == 0)
		return marked;
	tokens = o->tokens - o->tokens % interval;
	return tokens > marked * q->block ? (uint32_t)(tokens / q->block)
	    : marked;
}

/*
 * Of the overlap, what a dense cache has. Where the end of the path is lost, so
 * is all that was used with it; but not what another path, that is not lost,
 * has used since.
 */
static uint32_t
up_to_used(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	uint32_t end = 0;
	const struct entry *last = last_entry(q, slot, &end), *h;
	struct cover at;
	struct climb c;

	if (!dense_lost(q->k, slot, last))
		return o->blocks;
	for (c = climb_begin(q, slot, o, &at); c.left > 0 && c.depth > 0 &&
	    q->set->steps < q->set->most; climb_up(q, &c)) {
		h = entry_at(q->k, cover_climb(q->k, &at, c.node, slot));
		q->set->steps += 1 + at.links;
		at.links = 0;
		if (c.depth <= o->blocks && (read_once(h->pins) > 0 ||
		    read_once(h->released) > read_once(last->released)) &&
		    !dense_lost(q->k, slot, h))
			return (uint32_t)c.depth;
	}
	return 0;
}

/* Of the overlap, how many blocks the engine can resume behind. */
static uint32_t
resumable_blocks(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	return read_once(window_of(q->k, slot)->mode) == KVR_WINDOW_DENSE
	    ? up_to_used(q, slot, o) : up_to_ends(q, slot, o);
}

/* Blocks of the overlap that the engine can use, from whole tokens. */
double
expect_usable(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	uint32_t blocks = window_on(q->k, slot) ? resumable_blocks(q, slot, o)
	    : o->blocks;

	return (double)trust_usable(q->k, slot, q->tokens,
	    prompt_blocks_tokens(q->p, blocks)) / q->block;
}

/* ------------------------------------------------------------- survival --- */

/*
 * Expected blocks of the first `blocks` of the path; the last may be partial.
 * Mostly one entry covers all that is left of the path.
 *
 * All walks of a question together have a number of steps, half of those of a
 * writing call: 64 for each cell, and 131,072. They take two for each doubtful
 * worker and each node of the path, and at most three for each node on a line
 * down which an entry is looked for. So these suffice while such nodes are no
 * more than twenty times the cells that the index has for a worker. In a
 * damaged region each node may take thousands.
 * What is not walked counts as lost: then a worker is chosen by its load.
 */
static double
surviving_blocks(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, double blocks)
{
	const struct kvr *k = q->k;
	struct found_set *set = q->set;
	double above, some;
	struct cover at;
	struct climb c = climb_begin(q, slot, o, &at);
	struct pile pile;

	for (pile.n = 0; c.left > 0 && c.depth > 0; climb_up(q, &c)) {
		uint32_t entry;

		if (set->steps >= set->most)
			return 0;
		entry = cover_climb(k, &at, c.node, slot);
		set->steps += 1 + at.links; /* and of each look at its cover */
		at.links = 0;
		above = entry != 0 && cover_left(k, &at) >= c.depth + c.beyond
		    ? 0 : c.depth - c.here;
		some = (c.depth < blocks ? c.depth : blocks) - above;
		if (some > 0)
			pile_add(&pile, entry_survives(k, slot, entry), some);
		if (above <= 0)
			break;
	}
	return pile_sum(&pile, blocks);
}

/* The expected number of those that have survived. */
double
expect_surviving(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	double usable = expect_usable(q, slot, o);

	if (numbers_nothing(q->k, slot))
		return usable * HOPE;
	return surviving_blocks(q, slot, o, usable);
}
