/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack.c - how much a worker's cache must hold for an idle block to be there.
 *
 * A cache that drops the blocks used longest ago holds those in use and the
 * idle ones released last. So a block released at some time is still there if
 * the cache holds
 *
 *	depth = blocks in use + idle blocks released after it
 *
 * which is its place in an LRU stack. A block released before it, and used
 * again, moves in front of it, whether it is new to the worker or not.
 *
 * Blocks are counted by the epoch in which they were released:
 *
 *	oldest                                     newest   in use
 *	| 9000 idle | 4100 | 2500 | 1100 | 610 | 300 | 150 |   800
 *	                          ^ released here: 800 + 150 + 300 + 610 and
 *	                            half of 1100
 *
 * The time is a count of all blocks released so far, so that no two releases
 * are at the same one. An epoch ends when it has more than an eighth of the
 * blocks in use, and 16 blocks. When there are too many, neighbours are joined
 * that have no more than an eighth of the blocks in front of them, or than a
 * quarter or more, if that is not enough. So a depth is exact to about a tenth
 * of it up to 8,000 blocks, an eighth up to 30,000 and a quarter up to a
 * million, and a release or a look takes a time that does not grow with the
 * idle blocks.
 */
#include "stack.h"

enum { SHARE = 8, LEAST = 16 /* blocks of an epoch */ };

static uint64_t
in_use(const struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	return read_once(s->active) + read_once(s->output);
}

void
stack_empty(struct kvr *k, uint32_t slot)
{
	write_once_zeros(stack_at(k, slot), sizeof(struct stack));
}

static uint32_t
epochs_of(const struct stack *s)
{
	uint32_t n = read_once(s->n);

	return n <= EPOCHS ? n : EPOCHS;
}

/* The last one that began by then; 0 if none did. */
uint32_t
stack_epoch(const struct stack *s, uint64_t when)
{
	uint32_t low = 0, high = epochs_of(s), middle;

	while (high - low > 1) {
		middle = (low + high) / 2;
		if (read_once(s->begin[middle]) <= when)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/*
 * Joins neighbours that have no more than a share of the blocks in front of
 * them; with a share of 0, all. From the newest to the oldest; the rest gathers
 * at the end.
 */
static void
join_neighbours(struct stack *s, uint64_t used, uint64_t share)
{
	uint32_t from = epochs_of(s), to = from, i;
	uint64_t front = used, most;

	while (from > 0) {
		from--;
		most = share > 0 ? LEAST + front / share : UINT64_MAX;
		if (to < epochs_of(s) && s->idle[to] + s->idle[from] <=
		    most) {
			write_once(s->idle[to], s->idle[to] + s->idle[from]);
			write_once(s->begin[to], s->begin[from]);
			continue;
		}
		if (to < epochs_of(s))
			front += s->idle[to];
		to--;
		write_once(s->idle[to], s->idle[from]);
		write_once(s->begin[to], s->begin[from]);
	}
	for (i = 0; to + i < epochs_of(s); i++) {
		write_once(s->begin[i], s->begin[to + i]);
		write_once(s->idle[i], s->idle[to + i]);
	}
	write_once(s->n, i);
}

/* Makes room for one more. */
static void
make_room(struct stack *s, uint64_t used)
{
	uint64_t share;

	for (share = SHARE; epochs_of(s) > EPOCHS * 3 / 4; share /= 2)
		join_neighbours(s, used, share);
}

uint64_t
stack_push(struct kvr *k, uint32_t slot, uint64_t blocks)
{
	struct slot *p = slot_at(k, slot);
	struct stack *s = stack_at(k, slot);
	uint64_t when = p->clock, used = in_use(k, slot);
	uint32_t n = epochs_of(s);

	write_once(p->clock, when + blocks);
	if (n == 0 || s->idle[n - 1] > LEAST + used / SHARE) {
		if (n == EPOCHS)
			make_room(s, used);
		n = epochs_of(s);
		write_once(s->begin[n], n == 0 ? 0 : when);
		write_once(s->idle[n], UINT64_C(0));
		write_once(s->n, ++n);
	}
	write_once(s->idle[n - 1], s->idle[n - 1] + blocks);
	return when;
}

void
stack_add(struct kvr *k, uint32_t slot, uint64_t when, uint64_t blocks)
{
	struct stack *s = stack_at(k, slot);
	uint32_t i = stack_epoch(s, when);

	write_once(s->idle[i], s->idle[i] + blocks);
}

uint64_t
stack_depth(const struct kvr *k, uint32_t slot, uint64_t when)
{
	const struct stack *s = stack_at(k, slot);
	uint32_t n = epochs_of(s), i = stack_epoch(s, when);
	uint64_t blocks = in_use(k, slot);
	double tokens;

	if (n > 0)
		blocks += read_once(s->idle[i]) / 2;
	while (n-- > i + 1)
		blocks += read_once(s->idle[n]);
	tokens = (double)blocks * hash_block_tokens(&k->rule);
	return tokens < 0x1p63 ? (uint64_t)tokens : UINT64_C(1) << 63;
}
