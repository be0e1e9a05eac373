/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ages.c - how old the blocks of a request's overlap were when it came.
 *
 * A report comes when the request is over, and is evidence about the ages that
 * the blocks had before: by then the request has used them. So the claim has
 * the ages from the beginning, in three parts, since blocks that several
 * prompts share were used last and are at the root:
 *
 *	root          ends[0]         ends[1]        overlap
 *	|   ages[0]      |    ages[1]    |    ages[2]   |
 *
 * They are noted from the end of the path. If there are more than three parts,
 * the first ones are joined; if there are fewer, those at the root have no
 * blocks.
 */
#include "ages.h"

#include "cover.h"
#include "stack.h"
#include "survival.h"

enum { LINKS_MOST = 256 }; /* followed to find covers */

/* Goes up from a node by the nodes of so many blocks, or by one node. */
static uint32_t
climb_above(const struct kvr *k, uint32_t node, uint32_t blocks,
    uint32_t *depth)
{
	do {
		uint32_t length = node_at(k, node)->length;

		add_once(k->region->counts.steps, 1);
		*depth -= length < *depth ? length : *depth;
		blocks -= length < blocks ? length : blocks;
		node = node_at(k, node)->parent;
	} while (blocks > 0 && node != 0 && !region_broken(k));
	return node;
}

/* Notes the age of blocks that end at this depth, before earlier notes. */
static uint32_t
part_note(struct claim *c, uint32_t part, uint32_t age, uint32_t end)
{
	if (part < AGE_PARTS && c->ages[part] == age)
		return part;
	part--;
	put_once(c->ages[part], (uint8_t)age);
	if (part < AGE_PARTS - 1)
		write_once(c->ages_end[part], end);
	return part;
}

/*
 * Visits the entries that cover the path, from its end up, until all parts are
 * noted. New blocks have no entry yet. If an entry is too far down a line, its
 * blocks count as old as those behind them.
 */
void
ages_note(const struct kvr *k, struct claim *c, const struct lease *l,
    uint32_t recorded)
{
	struct cover at = { LINKS_MOST, 0 };
	uint32_t node = l->node, depth = recorded, part = AGE_PARTS;

	while (depth > c->active && node != 0 && part > 0 && at.links > 0 &&
	    !region_broken(k)) {
		const struct node *n = node_at(k, node);
		uint32_t entry = 0, covers = 0, links = at.links;

		if (n->length > depth || depth - n->length < c->overlap)
			entry = cover_seek(k, node, l->slot, &at);
		add_once(k->region->counts.steps, links - at.links);
		if (entry != 0 && entry_at(k, entry)->blocks > at.beyond)
			covers = entry_at(k, entry)->blocks - at.beyond;
		if (entry != 0 && entry_at(k, entry)->pins == 0)
			part = part_note(c, part, survival_bin(stack_depth(k,
			    l->slot, entry_at(k, entry)->released)), depth);
		node = climb_above(k, node, covers, &depth);
	}
}

static uint32_t
part_of(const struct claim *c, uint64_t block)
{
	uint32_t i = 0;

	while (i < AGE_PARTS - 1 && block >= c->ages_end[i])
		i++;
	return i;
}

uint32_t
ages_of(const struct claim *c, uint64_t block)
{
	return c->ages[part_of(c, block)];
}

uint32_t
ages_end(const struct claim *c, uint64_t block)
{
	uint32_t part = part_of(c, block);

	return part < AGE_PARTS - 1 ? c->ages_end[part] : UINT32_MAX;
}
