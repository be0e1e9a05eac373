/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cell.c - the cells of a region: who gets which, and the buckets they hang in.
 *
 * FREE CELLS. Dropping a run of a thousand blocks must not cost a walk over
 * its pieces: when a node goes, its cell becomes the record of a whole free
 * tree, and the tree is broken up only when cells are wanted again, sixteen
 * bottom pieces at a time:
 *
 *   free_top -> [tree | root, first..last] -> [single] -> [tree ...] -> 0
 *                       |
 *                    [16 links]                 magazine: up to 24 cells that
 *                    /   |    \                 are handed out next
 *              [links] [links] [links]
 *               / | \               \
 *            16 pieces              the last 16 are taken first, then the
 *                                   piece of links above them
 *
 * Cells that were never used are taken last, so a small working set stays in
 * few cache lines and untouched pages stay untouched.
 */
#include "internal.h"

static void
magazine_put(struct region *r, uint32_t i)
{
	if (r->magazine_count < MAGAZINE)
		r->magazine[r->magazine_count++] = i;
}

/*
 * Takes the last bottom pieces of the tree on top, with the pieces of links
 * above them that they leave empty, and the tree's own cell with its last.
 * `group` is the number of their common parent among the pieces of level 1.
 */
static void
magazine_from_tree(struct kvr *k, uint32_t top, struct tree *t)
{
	struct region *r = k->region;
	uint32_t last = t->last, group = (last - 1) / PIECE;
	bool done = group <= t->first / PIECE;
	uint32_t from = done ? t->first : group * PIECE;
	uint32_t level = t->level % RUN_LEVELS, piece = t->run, i;

	put(t->last, from);
	if (done) {
		r->free_top = t->next;
		magazine_put(r, top);
	}
	for (; level > 0; level--) {
		uint32_t below = (UINT32_C(1) << (4 * (level - 1))) - 1;

		if (done || (group & below) == 0)
			magazine_put(r, piece);
		if (level == 1)
			break;
		i = (group >> (4 * (level - 2))) % PIECE;
		piece = cell_at(k, piece)->piece[i];
	}
	if (level == 0) {
		magazine_put(r, piece);
		return;
	}
	for (i = last; i-- > from;)
		magazine_put(r, cell_at(k, piece)->piece[i % PIECE]);
}

static void
magazine_refill(struct kvr *k)
{
	struct region *r = k->region;
	uint32_t top = r->free_top;
	struct tree *t = &cell_at(k, top)->tree;

	if (top == 0) {
		if (r->fresh < k->layout.cells)
			magazine_put(r, r->fresh++);
	} else if (t->kind == CELL_TREE) {
		magazine_from_tree(k, top, t);
	} else {
		r->free_top = t->next;
		magazine_put(r, top);
	}
}

/* cell_take, when the magazine is empty. */
uint32_t
cell_take_slowly(struct kvr *k)
{
	struct region *r = k->region;

	if (r->magazine_count == 0)
		magazine_refill(k);
	if (r->magazine_count == 0 || r->magazine_count > MAGAZINE)
		return 0;
	r->free_cells--;
	r->counts.cells++;
	return r->magazine[--r->magazine_count];
}

void
cell_give(struct kvr *k, uint32_t i)
{
	struct region *r = k->region;
	struct tree *t = &cell_at(k, i)->tree;

	r->free_cells++;
	if (r->magazine_count < MAGAZINE - RUN_LEVELS) {
		r->magazine[r->magazine_count++] = i;
		return;
	}
	put(t->kind, CELL_FREE);
	put(t->next, r->free_top);
	r->free_top = i;
}

/* Gives back a node's cell and all its pieces, touching only the cell. */
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
	r->free_cells +=
	    1 + run_cells(n->begin, n->begin + n->length, n->level);
	r->free_top = i;
	put_words(&cell_at(k, i)->tree, &t, sizeof(t));
}

/* ------------------------------------------------------------- buckets --- */

/*
 * Multilinear hashing under a key that never leaves the region (Lemire and
 * Kaser, "Strongly universal string hashing is fast", 2014): two different
 * keys meet in a bucket with the chance of a fair draw, whoever chose them.
 */
static uint32_t
bucket(const uint64_t *key, uint64_t a, uint32_t b, uint32_t buckets)
{
	uint64_t h = key[0] + key[1] * (uint32_t)a + key[2] * (a >> 32) +
	    key[3] * b;

	return (uint32_t)(((h >> 32) * buckets) >> 32);
}

uint32_t
bucket_of_node(const struct kvr *k, uint64_t prev, uint32_t first)
{
	return bucket(k->table_key, prev, first, k->layout.node_buckets);
}

uint32_t
bucket_of_hold(const struct kvr *k, uint32_t node, uint32_t slot)
{
	return bucket(k->table_key + 4, node, slot, k->layout.entry_buckets);
}

uint32_t
bucket_of_lease(const struct kvr *k, uint64_t number)
{
	return bucket(k->table_key + 8, number, 0, k->layout.entry_buckets);
}
