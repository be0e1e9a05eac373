/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cell.h - allocation of cells.
 */
#ifndef KVR_CELL_H
#define KVR_CELL_H

#include "region.h"

void cell_fetch(struct kvr *k);
void cell_give(struct kvr *k, uint32_t i);
void cell_give_tree(struct kvr *k, uint32_t node);
void cell_prefetch(const struct kvr *k);

uint32_t cell_tree_size(uint32_t begin, uint32_t end, uint32_t level);

/* Returns 0 if none is free; callers make room before they begin a change. */
static inline uint32_t
cell_take(struct kvr *k)
{
	struct region *r = k->region;
	uint32_t first, count;

	if (r->magazine_count - MAGAZINE_LOW > MAGAZINE - MAGAZINE_LOW)
		cell_fetch(k);
	count = r->magazine_count;
	if (count - 1 >= MAGAZINE)
		return 0;
	sub_once(r->free_cells, 1);
	add_once(r->counts.cells, 1);
	write_once(r->magazine_count, count - 1);
	first = r->magazine_first;
	write_once(r->magazine_first, first + 1);
	return r->magazine[first % MAGAZINE];
}

/*
 * Takes `count` cells, at most MAGAZINE_LOW, into a row of links. If there are
 * not so many, the region is broken and the links are 0.
 */
static inline void
cell_take_row(struct kvr *k, uint32_t *links, uint32_t count)
{
	struct region *r = k->region;
	uint32_t first, i;

	if (r->magazine_count - MAGAZINE_LOW > MAGAZINE - MAGAZINE_LOW)
		cell_fetch(k);
	if (r->magazine_count - count > MAGAZINE - count) {
		region_break(k);
		for (i = 0; i < count; i++)
			write_once(links[i], 0);
		return;
	}
	first = r->magazine_first;
	for (i = 0; i < count; i++)
		write_once(links[i], r->magazine[(first + i) % MAGAZINE]);
	put_once(r->magazine_first, first + count);
	sub_once(r->magazine_count, count);
	sub_once(r->free_cells, count);
	add_once(r->counts.cells, count);
}

#endif
