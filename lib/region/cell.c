/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cell.c - allocation of cells.
 *
 * FREE CELLS. Freeing a run of a thousand blocks must not walk its pieces. When
 * a node is freed, its cell becomes the record of a whole free tree, and the
 * tree is broken up only when cells are needed again, sixteen bottom pieces at
 * a time:
 *
 *   free_top -> [tree | root, first..last] -> [single] -> [tree ...] -> 0
 *                       |
 *                    [16 links]                 magazine: a FIFO of cells;
 *                    /   |    \                 those that have waited longest
 *              [links] [links] [links]          are handed out next
 *               / | \               \
 *            16 pieces              the last 16 are taken first, then the
 *                                   piece of links above them
 *
 * A cell that was free for a whole TTL is in no CPU cache. So the magazine is
 * refilled long before it is empty, and each cell is prefetched when it enters:
 * by the time it is handed out it has arrived, and writing a long prompt waits
 * for no memory but the first.
 *
 * Cells that were never used are taken last, so a small working set stays in
 * few cache lines and untouched pages stay untouched.
 */
#include "cell.h"

enum { GROUPS_AHEAD = 2 }; /* of links that will be read soon */

static inline void
magazine_put(struct kvr *k, uint32_t i)
{
	struct region *r = k->region;
	uint32_t count = r->magazine_count;

	__builtin_prefetch(cell_at(k, i), 1);
	write_once(r->magazine[(r->magazine_first + count) % MAGAZINE], i);
	write_once(r->magazine_count, count + 1);
}

static void
magazine_put_row(struct kvr *k, const uint32_t *links, uint32_t from,
    uint32_t to)
{
	struct region *r = k->region;
	uint32_t end = r->magazine_first + r->magazine_count - from, i;

	for (i = from; i <= to; i++) {
		__builtin_prefetch(cell_at(k, links[i]), 1);
		write_once(r->magazine[(end + i) % MAGAZINE], links[i]);
	}
	add_once(r->magazine_count, to - from + 1);
}

/*
 * The piece of links at this height above the bottom pieces, by its number
 * among those of its height. `level`: of the tree, read once, since a peer may
 * change it; at least height.
 */
static uint32_t
tree_links(const struct kvr *k, const struct tree *t, uint32_t level,
    uint32_t height, uint32_t number)
{
	return links_at(k, t->run, level - height, number);
}

/*
 * Takes the last bottom pieces of the tree on top, those under one piece of
 * links (number `group` of its height). Also takes the pieces of links above
 * that this leaves empty and, with the tree's last pieces, its own cell.
 */
static void
magazine_from_tree(struct kvr *k, uint32_t top, struct tree *t)
{
	uint32_t level = read_once(t->level) % RUN_LEVELS, last = t->last;
	uint32_t height;
	uint32_t group = (last - 1) / PIECE, number = group;
	bool done = group <= t->first / PIECE;
	uint32_t from = done ? t->first : group * PIECE;

	if (level == 0)
		magazine_put(k, t->run);
	else
		magazine_put_row(k, cell_at(k, tree_links(k, t, level, 1,
		    group))->piece, from % PIECE, (last - 1) % PIECE);
	for (height = 1; height <= level; height++) {
		magazine_put(k, tree_links(k, t, level, height, number));
		if (!done && number % PIECE != 0)
			break;
		number /= PIECE;
	}
	write_once(t->last, from);
	if (done) {
		put_once(k->region->free_top, t->next);
		magazine_put(k, top);
	}
}

/* Prefetches the cells that breaking up the tree on top will read. */
void
cell_prefetch(const struct kvr *k)
{
	uint32_t top = k->region->free_top;
	const struct tree *t = &cell_at(k, top)->tree;
	uint32_t level = read_once(t->level) % RUN_LEVELS, group, ahead;

	__builtin_prefetch(cell_at(k, t->next));
	if (t->kind != CELL_TREE || level == 0)
		return;
	group = (t->last - 1) / PIECE;
	for (ahead = 0; ahead < GROUPS_AHEAD && ahead <= group; ahead++)
		__builtin_prefetch(cell_at(k, tree_links(k, t, level, 1,
		    group - ahead)));
}

static void
magazine_add(struct kvr *k)
{
	struct region *r = k->region;
	uint32_t top = r->free_top;
	struct tree *t = &cell_at(k, top)->tree;

	if (top == 0) {
		if (r->fresh < k->layout.cells) {
			magazine_put(k, r->fresh);
			add_once(r->fresh, 1);
		}
	} else if (t->kind == CELL_TREE) {
		magazine_from_tree(k, top, t);
	} else {
		put_once(r->free_top, t->next);
		magazine_put(k, top);
	}
	cell_prefetch(k);
}

/* Refills the magazine; called before cells are taken when it is low. */
void
cell_fetch(struct kvr *k)
{
	struct region *r = k->region;
	uint32_t tries = MAGAZINE_LOW;

	while (r->magazine_count < MAGAZINE_LOW && tries-- > 0)
		magazine_add(k);
}

void
cell_give(struct kvr *k, uint32_t i)
{
	struct region *r = k->region;
	struct tree *t = &cell_at(k, i)->tree;

	add_once(r->free_cells, 1);
	if (r->magazine_count < MAGAZINE) {
		magazine_put(k, i);
		return;
	}
	write_once(t->kind, CELL_FREE);
	write_once(t->next, r->free_top);
	put_once(r->free_top, i);
}

/* Cells of the run [begin, end) in a tree of this level; begin < end. */
uint32_t
cell_tree_size(uint32_t begin, uint32_t end, uint32_t level)
{
	uint32_t first = begin / PIECE, last = (end - 1) / PIECE, cells = 0;
	uint32_t i;

	for (i = 0; i <= level; i++) {
		cells += last - first + 1;
		first /= PIECE;
		last /= PIECE;
	}
	return cells;
}

/* Frees a node's cell and all its pieces; touches only the cell. */
void
cell_give_tree(struct kvr *k, uint32_t i)
{
	struct region *r = k->region;
	const struct node *n = node_at(k, i);
	struct tree t;

	memset(&t, 0, sizeof(t));
	t.next = r->free_top;
	t.kind = CELL_TREE;
	t.level = n->level;
	t.run = n->run;
	t.first = n->begin / PIECE;
	t.last = (n->begin + n->length - 1) / PIECE + 1;
	add_once(r->free_cells,
	    1 + cell_tree_size(n->begin, n->begin + n->length, n->level));
	put_once(r->free_top, i);
	__builtin_prefetch(cell_at(k, t.run));
	write_once_words(&cell_at(k, i)->tree, &t, sizeof(t));
}
