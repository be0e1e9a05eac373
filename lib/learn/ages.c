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
#include "stack.h"
#include "survival.h"

enum { LINKS_MOST = 65536 }; /* followed to find covers */

/*
 * Visits the entries that cover the path, from its end up, node by node, until
 * all parts are noted.
 */
void
ages_note(const struct kvr *k, struct claim *c, const struct lease *l,
    uint32_t recorded)
{
	struct cover at = { 0, 0, 0, 0 };
	uint32_t node = l->node, depth = recorded, part = AGE_PARTS;
	uint32_t noted = 0, end, age;

	while (depth > c->active && node != 0 && part > 0 &&
	    at.links < LINKS_MOST && !region_broken(k)) {
		const struct node *n = node_at(k, node);
		uint32_t entry = cover_climb(k, &at, node, l->slot);
		const struct entry *h = entry_at(k, entry);

		add_once(k->region->counts.steps, 1);
		end = depth;
		depth -= n->length < depth ? n->length : depth;
		node = n->parent;
		if (depth >= c->overlap || h->pins > 0 || entry == noted)
			continue;
		noted = entry;
		age = survival_bin(stack_depth(k, l->slot, h->released));
		if (part < AGE_PARTS && c->ages[part] == age)
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
