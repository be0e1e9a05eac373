/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layout.h - the arrays of a region, in their order: a row each.
 *
 *	name      member of struct kvr; where it begins is name_at of the layout
 *	type      of an element
 *	count     of elements, by the layout l
 *	align     LINE: it begins a cache line
 *	begin     CLEAR: a new region has zeros there; else KEEP
 */
#ifndef KVR_LAYOUT_H
#define KVR_LAYOUT_H

#include "format.h"

enum { LAYOUT_WORD = 1, LAYOUT_LINE = CELL };
enum { LAYOUT_KEEP, LAYOUT_CLEAR };

/* Bytes that struct loads has of each slot. */
struct load_row {
	char bytes[8 * sizeof(double) + 5 * sizeof(uint64_t) +
	    2 * sizeof(uint32_t)];
};

#define LAYOUT_FIXED(ROW) \
	ROW(seats, struct seat, l->seats, LINE, CLEAR) \
	ROW(slots, struct slot, l->slots, LINE, CLEAR) \
	ROW(generations, uint32_t, l->slots, WORD, CLEAR) \
	ROW(names, struct name, l->names, LINE, CLEAR) \
	ROW(name_buckets, uint32_t, l->name_buckets, WORD, CLEAR) \
	ROW(dp_groups, struct dp_group, l->names, LINE, CLEAR) \
	ROW(outside, struct outside, l->names, LINE, KEEP) \
	ROW(load_rows, struct load_row, l->slots, LINE, CLEAR) \
	ROW(survival, struct survival, l->names, LINE, CLEAR) \
	ROW(streams, struct stream, l->names, WORD, CLEAR) \
	ROW(stacks, struct stack, l->names, WORD, CLEAR) \
	ROW(due, int64_t, l->leaves, WORD, KEEP) \
	ROW(stamped, int64_t, l->leaves, WORD, KEEP) \
	ROW(due_winner, uint16_t, l->leaves, WORD, KEEP) \
	ROW(stamped_winner, uint16_t, l->leaves, WORD, KEEP) \
	ROW(bindings, struct binding, l->bindings, LINE, CLEAR) \
	ROW(aliases, struct alias, l->aliases == 0 ? 0 \
	    : l->aliases + UINT64_C(1), LINE, KEEP) \
	ROW(alias_buckets, uint32_t, l->aliases, WORD, CLEAR) \
	ROW(tenants, struct tenant, l->tenants == 0 ? 0 \
	    : l->tenant_leaves, LINE, KEEP) \
	ROW(tenant_winner, uint16_t, l->tenants == 0 ? 0 \
	    : l->tenant_leaves, WORD, KEEP) \
	ROW(journal, uint64_t, l->journal_bytes / sizeof(uint64_t), \
	    LINE, CLEAR) \
	ROW(user, struct user_line, (l->user_bytes + CELL - 1) / CELL, \
	    LINE, CLEAR)

/* Arrays whose sizes depend on the number of cells. */
#define LAYOUT_CELLS(ROW) \
	ROW(node_buckets, uint32_t, l->node_buckets, LINE, KEEP) \
	ROW(entry_buckets, uint32_t, l->entry_buckets, LINE, KEEP) \
	ROW(cells, union cell, l->cells, LINE, KEEP) \
	ROW(belonging, union belonging, l->tenants == 0 ? 0 \
	    : l->cells, WORD, KEEP)

#endif
