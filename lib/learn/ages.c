/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ages.c - how old the blocks of a request's overlap were when it came.
 *
 * A report comes when the request is over, and what it shows is evidence about
 * the ages that the blocks had before: by then the request has used them. So
 * the claim has them from the beginning, in three parts, since what several
 * prompts share was used last and is at the root:
 *
 *	root          ends[0]         ends[1]        overlap
 *	|   ages[0]      |    ages[1]    |    ages[2]   |
 *
 * They are noted from the end of the path, and of more than three parts the
 * first ones are joined. Of fewer, those at the root have no blocks.
 */
#include "ages.h"

#include "cover.h"
#include "entry.h"
#include "stack.h"
#include "survival.h"

/* The way up, entry by entry. */
struct climb {
	uint32_t node;
	uint32_t depth; /* blocks above what was visited */
};

/* Visits what is above; returns the entry that covers it. */
static const struct entry *
climb_to_cover(const struct kvr *k, uint32_t slot, struct climb *at)
{
	uint32_t entry = entry_find(k, at->node, slot);
	const struct entry *h = entry_at(k, entry);
	const struct node *n = node_at(k, at->node);

	add_once(k->region->counts.steps, 1);
	if (entry == 0) { /* it ends further down */
		h = entry_at(k, cover_find(k, at->node, slot));
		at->depth -= n->length < at->depth ? n->length : at->depth;
		at->node = n->parent;
		return h;
	}
	at->depth -= h->blocks < at->depth ? h->blocks : at->depth;
	at->node = cover_above(k, entry);
	return h;
}

void
ages_note(const struct kvr *k, struct claim *c, const struct lease *l,
    uint32_t recorded)
{
	struct climb at = { l->node, recorded };
	uint32_t part = AGE_PARTS, end, age;

	while (at.depth > c->active && at.node != 0 && !region_broken(k)) {
		const struct entry *h;

		end = at.depth;
		h = climb_to_cover(k, l->slot, &at);
		if (at.depth >= c->overlap || h->pins > 0)
			continue;
		age = survival_bin(stack_depth(k, l->slot, h->released));
		if (part == 0 || (part < AGE_PARTS && c->ages[part] == age))
			continue;
		part--;
		put_once(c->ages[part], (uint8_t)age);
		if (part < AGE_PARTS - 1)
			write_once(c->ages_end[part], end);
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
