/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settle.c - the costs of workers that may have lost some of their overlap.
 *
 * To find how much of an overlap a worker still has takes links (expect.c), and
 * a choice may follow a limited number of them, however many workers hold the
 * prompt. Losses only raise a cost. So all costs are first computed as if
 * nothing were lost, and are settled from the lowest on, until the next is
 * above the lowest settled one:
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
	SETTLE_STEPS = 2, /* for one, beside the links that it takes */
	AHEAD = 8,       /* before it is settled, it is loaded in two steps */
	NEARER = 4
};

struct bidder {
	double cost;
	uint64_t lot;
	uint32_t slot;
};

/*
 * The lowest ones: up to twice as many as are kept, so that they are cut to
 * half rarely; then a heap with the lowest on top.
 */
struct batch {
	struct bidder at[2 * BATCH];
	uint32_t n;
	struct bidder last; /* of those that are kept, once they were cut */
};

static bool
is_before(const struct bidder *a, const struct bidder *b)
{
	return a->cost != b->cost ? a->cost < b->cost : a->lot < b->lot;
}

static void
swap_two(struct batch *b, uint32_t i, uint32_t j)
{
	const struct bidder one = b->at[i];

	b->at[i] = b->at[j];
	b->at[j] = one;
}

/* Moves those of [low, high] before the last of them to its front. */
static uint32_t
part_range(struct batch *b, uint32_t low, uint32_t high)
{
	uint32_t i, end = low;

	swap_two(b, low + (high - low) / 2, high);
	for (i = low; i < high; i++)
		if (is_before(&b->at[i], &b->at[high]))
			swap_two(b, i, end++);
	swap_two(b, end, high);
	return end;
}

/* Keeps the lowest BATCH. */
static void
cut_batch(struct batch *b)
{
	uint32_t low = 0, high = b->n - 1, middle;

	while (low < high) {
		middle = part_range(b, low, high);
		if (middle < BATCH - 1)
			low = middle + 1;
		else if (middle > BATCH - 1)
			high = middle - 1;
		else
			break;
	}
	b->last = b->at[BATCH - 1];
	b->n = BATCH;
}

/* Lets the i-th sink below all that are lower. */
static void
sink_one(struct batch *b, uint32_t i)
{
	const struct bidder down = b->at[i];
	uint32_t child;

	for (; (child = 2 * i + 1) < b->n; i = child) {
		if (child + 1 < b->n && is_before(&b->at[child + 1],
		    &b->at[child]))
			child++;
		if (!is_before(&b->at[child], &down))
			break;
		b->at[i] = b->at[child];
	}
	b->at[i] = down;
}

static struct bidder
take_lowest(struct batch *b)
{
	const struct bidder lowest = b->at[0];

	b->at[0] = b->at[--b->n];
	sink_one(b, 0);
	return lowest;
}

/* The costs that are left to settle, and a summary of all. */
struct settling {
	const struct question *q;
	const struct settle *s;
	uint64_t left[QUESTION_WORDS];
	double least[QUESTION_WORDS]; /* that was left in a word */
	double lowest; /* that is settled, or sure */
};

/* The lowest costs that are left, up to `most`. */
static void
gather_lowest(const struct settling *g, double most, struct batch *b)
{
	const struct question *q = g->q;
	struct bidder one;
	uint64_t left;
	uint32_t word, i;

	b->n = 0;
	b->last = (struct bidder){ 2 * COST_MAX, 0, 0 };
	for (word = 0; word < q->words; word++) {
		if (g->least[word] > most || g->least[word] > b->last.cost)
			continue;
		for (left = g->left[word]; left != 0; left &= left - 1) {
			one.slot = word * 64 + (uint32_t)__builtin_ctzll(left);
			one.cost = q->set->costs[one.slot];
			if (one.cost > most || one.cost > b->last.cost)
				continue;
			one.lot = lot_of(q, one.slot);
			if (!is_before(&one, &b->last))
				continue;
			b->at[b->n++] = one;
			if (b->n == 2 * BATCH)
				cut_batch(b);
		}
	}
	if (b->n > BATCH)
		cut_batch(b);
	for (i = b->n / 2; i > 0; i--)
		sink_one(b, i - 1);
}

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

/* Those of a word whose overlaps are in doubt. */
static uint64_t
doubtful_of(const struct question *q, uint64_t among, uint32_t word)
{
	uint64_t left = among & q->held[word], doubtful = 0;
	uint32_t bit;

	for (; left != 0; left &= left - 1) {
		bit = (uint32_t)__builtin_ctzll(left);
		if (!expect_sure(q, word * 64 + bit))
			doubtful |= UINT64_C(1) << bit;
	}
	return doubtful;
}

/* The lowest cost of some in a word; *bit is not set if there are none. */
static double
least_of(const double *costs, uint64_t some, uint32_t *bit)
{
	double least = 2 * COST_MAX;
	uint32_t i;

	for (; some != 0; some &= some - 1) {
		i = (uint32_t)__builtin_ctzll(some);
		if (costs[i] < least) {
			least = costs[i];
			*bit = i;
		}
	}
	return least;
}

/* Settles the lowest, so that most of the others need not be put in order. */
static void
settle_begin(struct settling *g, const uint64_t *among)
{
	const struct question *q = g->q;
	double least = 2 * COST_MAX, lowest = least, sure;
	uint32_t word, bit = 0, first = 0;

	for (word = 0; word < q->words; word++) {
		const double *costs = &q->set->costs[word * 64];

		g->left[word] = doubtful_of(q, among[word], word);
		sure = least_of(costs, among[word] & ~g->left[word], &bit);
		lowest = sure < lowest ? sure : lowest;
		g->least[word] = least_of(costs, g->left[word], &bit);
		if (g->least[word] < least) {
			least = g->least[word];
			first = word * 64 + bit;
		}
	}
	g->lowest = lowest;
	if (least < 2 * COST_MAX && q->set->steps < q->set->most)
		settle_next(g, first);
}

/* Costs up to this one matter. */
static double
settle_most(const struct settling *g)
{
	return g->s->all ? 2 * COST_MAX
	    : settle_near(g->q, g->lowest, g->s->tie);
}

/* The lowest of a batch in order, some of them ahead of their turn. */
struct queue {
	struct batch *b;
	struct bidder next[AHEAD];
	uint32_t taken, at; /* out of the batch, and out of the queue */
};

static void
queue_load(const struct question *q, struct queue *u)
{
	struct bidder *one = &u->next[u->taken % AHEAD];

	*one = take_lowest(u->b);
	u->taken++;
	expect_prefetch(q, one->slot);
}

/* False: there are no more. */
static bool
queue_next(const struct question *q, struct queue *u, struct bidder *next)
{
	uint32_t nearer = u->at + NEARER;

	while (u->b->n > 0 && u->taken < u->at + AHEAD)
		queue_load(q, u);
	if (nearer < u->taken)
		expect_prefetch_next(q, u->next[nearer % AHEAD].slot);
	if (u->at == u->taken)
		return false;
	*next = u->next[u->at++ % AHEAD];
	return true;
}

/* False: that was all there is, or the steps have ended. */
static bool
settle_batch(struct settling *g, struct batch *b)
{
	bool full = b->n == BATCH;
	struct queue u = { .b = b };
	struct bidder next;

	while (queue_next(g->q, &u, &next)) {
		if (g->q->set->steps >= g->q->set->most ||
		    next.cost > settle_most(g))
			return false;
		settle_next(g, next.slot);
	}
	return full;
}

/* Those that are left have lost all, or are too high as they are. */
static void
settle_rest(struct settling *g)
{
	double most = settle_most(g);
	uint32_t word, slot;
	uint64_t left;

	for (word = 0; word < g->q->words; word++) {
		if (g->least[word] > most)
			continue;
		for (left = g->left[word]; left != 0; left &= left - 1) {
			slot = word * 64 + (uint32_t)__builtin_ctzll(left);
			if (g->s->all)
				settle_one(g, slot, 0);
			else
				g->q->set->costs[slot] = COST_MAX;
		}
	}
}

double
settle_costs(const struct question *q, const uint64_t *among,
    const struct settle *s)
{
	struct settling g = { .q = q, .s = s };
	struct batch b;

	settle_begin(&g, among);
	do
		gather_lowest(&g, settle_most(&g), &b);
	while (settle_batch(&g, &b) && s->all);
	settle_rest(&g);
	return g.lowest;
}
