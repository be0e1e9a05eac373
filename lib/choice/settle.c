/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settle.c - the costs of workers that may have lost some of their overlap.
 *
 * What a worker can be expected to have of its overlap takes links to find
 * (expect.c), and a choice may follow a limited number of them, however many
 * workers hold the prompt. What is lost only raises a cost. So all costs are
 * first those if nothing is lost, and are settled from the lowest on, until the
 * next is above what has been found:
 *
 *	if nothing is lost   3  4  4  5  5  5  9  9    in order
 *	settled              7  6  8  5                 the fourth is taken:
 *	                                 ^ not lower    the rest is no better
 *
 * Equal ones are settled in the order of their lots, which breaks ties (best.h)
 * too. The others are not taken: they cost more, there are more than BATCH, or
 * the steps have ended. If all costs are asked for, these count as having lost
 * all.
 */
#include "settle.h"

#include "best.h"
#include "expect.h"
#include "set.h"

enum {
	BATCH = 96,      /* workers that are put in order at a time */
	SETTLE_STEPS = 2 /* for one, beside the links that it takes */
};

struct bidder {
	double cost;
	uint64_t lot;
	uint32_t slot;
};

/* The lowest ones: a heap with the highest on top, until it is in order. */
struct batch {
	struct bidder at[BATCH];
	uint32_t n;
};

static bool
is_before(const struct bidder *a, const struct bidder *b)
{
	return a->cost != b->cost ? a->cost < b->cost : a->lot < b->lot;
}

/* Lets the i-th of the first n sink below all that are higher. */
static void
sink_one(struct batch *b, uint32_t i, uint32_t n)
{
	const struct bidder down = b->at[i];
	uint32_t child;

	for (; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && is_before(&b->at[child],
		    &b->at[child + 1]))
			child++;
		if (!is_before(&down, &b->at[child]))
			break;
		b->at[i] = b->at[child];
	}
	b->at[i] = down;
}

static void
heap_all(struct batch *b)
{
	uint32_t i;

	for (i = b->n / 2; i > 0; i--)
		sink_one(b, i - 1, b->n);
}

static void
offer_one(struct batch *b, const struct bidder *one)
{
	if (b->n < BATCH) {
		b->at[b->n++] = *one;
		if (b->n == BATCH)
			heap_all(b);
	} else if (is_before(one, &b->at[0])) {
		b->at[0] = *one;
		sink_one(b, 0, BATCH);
	}
}

/* The lowest of those that are left, up to `most`, in order. */
static void
gather_lowest(const struct question *q, const uint64_t *left, double most,
    struct batch *b)
{
	struct set_walk w = set_walk(left, q->words);
	struct bidder one, last;
	uint32_t i;

	b->n = 0;
	while (set_next(&w, &one.slot)) {
		one.cost = q->set->costs[one.slot];
		if (one.cost > most ||
		    (b->n == BATCH && one.cost > b->at[0].cost))
			continue;
		one.lot = lot_of(q, one.slot);
		offer_one(b, &one);
	}
	if (b->n < BATCH)
		heap_all(b);
	for (i = b->n; i > 1; i--) {
		last = b->at[i - 1];
		b->at[i - 1] = b->at[0];
		b->at[0] = last;
		sink_one(b, 0, i - 1);
	}
}

/* The costs that are left to settle, and what is known of all. */
struct settling {
	const struct question *q;
	const struct settle *s;
	uint64_t left[QUESTION_WORDS];
	double lowest; /* that is settled, or sure */
};

/* Settles the cost with so much of the overlap. */
static void
settle_one(struct settling *g, uint32_t slot, double held)
{
	const struct question *q = g->q;
	double cost = g->s->cost(q, slot, found_of(q->set, slot), held);

	q->set->costs[slot] = cost;
	g->lowest = cost < g->lowest ? cost : g->lowest;
}

static void
settle_next(struct settling *g, uint32_t slot)
{
	g->q->set->steps += SETTLE_STEPS;
	set_remove(g->left, slot);
	settle_one(g, slot, expect_blocks(g->q, slot, found_of(g->q->set,
	    slot)));
}

/* Settles the lowest, so that most of the others need not be put in order. */
static void
settle_begin(struct settling *g, const uint64_t *among)
{
	const struct question *q = g->q;
	struct set_walk w = set_walk(among, q->words);
	double least = 2 * COST_MAX, cost;
	uint32_t slot, first = 0;

	g->lowest = least;
	while (set_next(&w, &slot)) {
		cost = q->set->costs[slot];
		if (!found_has(q->set, slot) || expect_sure(q, slot)) {
			g->lowest = cost < g->lowest ? cost : g->lowest;
			continue;
		}
		set_add(g->left, slot);
		if (cost < least) {
			least = cost;
			first = slot;
		}
	}
	if (least < 2 * COST_MAX && q->set->steps < q->set->most)
		settle_next(g, first);
}

/* Those up to this cost matter. */
static double
settle_most(const struct settling *g)
{
	return g->s->all ? 2 * COST_MAX
	    : settle_near(g->q, g->lowest, g->s->tie);
}

/* False: that was all there is, or the steps have ended. */
static bool
settle_batch(struct settling *g, const struct batch *b)
{
	uint32_t i;

	for (i = 0; i < b->n; i++) {
		if (g->q->set->steps >= g->q->set->most ||
		    b->at[i].cost > settle_most(g))
			return false;
		settle_next(g, b->at[i].slot);
	}
	return b->n == BATCH;
}

double
settle_costs(const struct question *q, const uint64_t *among,
    const struct settle *s)
{
	struct settling g = { .q = q, .s = s };
	struct set_walk w = set_walk(g.left, q->words);
	struct batch b;
	uint32_t slot;

	settle_begin(&g, among);
	do
		gather_lowest(q, g.left, settle_most(&g), &b);
	while (settle_batch(&g, &b) && s->all);
	while (set_next(&w, &slot)) {
		if (s->all)
			settle_one(&g, slot, 0);
		else
			q->set->costs[slot] = COST_MAX;
	}
	return g.lowest;
}
