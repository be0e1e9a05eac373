/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * entry.h - the entries of a node: which workers hold it.
 */
#ifndef KVR_ENTRY_H
#define KVR_ENTRY_H

#include "region.h"

/* The number of holders; never more than slots, even if it is damaged. */
static inline uint32_t
node_holders(const struct kvr *k, const struct node *n)
{
	uint32_t holders = read_once(n->holders);

	return holders < k->layout.slots ? holders : k->layout.slots;
}

/* Which of its group's pairs is the entry's. */
static inline uint32_t
entry_lane(const struct entry *h)
{
	return (uint32_t)h->flags >> ENTRY_LANE;
}

/* Takes marks from its end, which is another one or lost now. */
static inline void
entry_unmark(struct entry *h, uint8_t marks)
{
	if ((h->flags & marks) != 0)
		write_once(h->flags, h->flags & (uint8_t)~marks);
}

uint32_t entry_find(const struct kvr *k, uint32_t node, uint32_t slot);
uint32_t entry_add(struct kvr *k, uint32_t node, uint32_t slot);
uint32_t entry_copy(struct kvr *k, uint32_t node, uint32_t from);
void entry_prefetch(const struct kvr *k, const struct entry *h);
void entry_move(struct kvr *k, uint32_t entry, uint32_t node);
void entry_resize(struct kvr *k, uint32_t entry, uint32_t blocks);
void entry_remove(struct kvr *k, uint32_t entry);
/* Below: the entry of the same path stamped, or unpinned, just before; or 0. */
/* whole: so are the blocks that it had lost. */
void entry_stamp(struct kvr *k, uint32_t entry, uint32_t below, bool whole,
    int64_t now);
void entry_pin(struct kvr *k, uint32_t entry, int64_t now);
void entry_whole(struct kvr *k, uint32_t entry);
void entry_set_trimmed(struct kvr *k, uint32_t entry, uint32_t blocks);
void entry_trim(struct kvr *k, uint32_t entry, uint32_t blocks);
/* Blocks of the path that the worker has by this entry. */
static inline uint32_t
entry_blocks(const struct entry *h)
{
	return h->blocks - (h->pins > 0 ? 0 : h->trimmed);
}

uint32_t entry_seek(const struct kvr *k, uint32_t node, uint32_t slot,
    uint32_t *links);
uint32_t entry_read(const struct kvr *k, uint32_t node, uint32_t slot);
void entry_add_anonymous(struct kvr *k, uint32_t slot, uint32_t blocks,
    int64_t now);
bool entry_unpin(struct kvr *k, uint32_t entry, uint32_t below);
void entry_count_blocks(struct kvr *k, uint32_t slot, uint64_t blocks);
void entry_retire_slot(struct kvr *k, uint32_t slot);

uint32_t pairs_slot(const struct kvr *k, const struct node *n, uint32_t i);

/* Levels of pieces of links above so many groups. */
static inline uint32_t
links_level(uint32_t groups)
{
	uint32_t level = 0;

	for (; groups > 1; groups = (groups + PIECE - 1) / PIECE)
		level++;
	return level;
}

/* Cells of the pairs of so many holders: groups and links to them. */
static inline uint32_t
pairs_cells(uint32_t holders)
{
	uint32_t n = (holders + PAIRS - 1) / PAIRS, cells = n;

	if (holders < 2)
		return 0;
	for (; n > 1; n = (n + PIECE - 1) / PIECE)
		cells += (n + PIECE - 1) / PIECE;
	return cells;
}

/* Cells that one more holder takes, including its entry. */
static inline uint32_t
pairs_cells_to_add(uint32_t holders)
{
	return 1 + pairs_cells(holders + 1) - pairs_cells(holders);
}

/*
 * Iterates over the groups of a node with more than one holder:
 * 	struct groups at = groups_of(n, read_once(n->holders));
 * 	while ((n_pairs = groups_next(k, &at, &g)) > 0)
 * 		use(g->word, g->stamp, n_pairs);
 * All groups under one piece of links are prefetched when it is reached.
 */
struct groups {
	uint32_t top, level, i, left;
	const uint32_t *links; /* to 16 groups, the i-th among them */
};

static inline struct groups
groups_of(const struct node *n, uint32_t holders)
{
	return (struct groups){ read_once(n->entries),
		links_level((holders + PAIRS - 1) / PAIRS), 0, holders,
		&n->entries };
}

static inline void
groups_ahead(const struct kvr *k, struct groups *at)
{
	uint32_t i;

	at->links = cell_at(k, links_at(k, at->top, at->level - 1,
	    at->i / PIECE))->piece;
	for (i = 0; i < PIECE && i * PAIRS < at->left; i++)
		__builtin_prefetch(cell_at(k, read_once(at->links[i])));
}

static inline uint32_t
groups_next(const struct kvr *k, struct groups *at, const struct group **g)
{
	uint32_t pairs = at->left < PAIRS ? at->left : PAIRS;

	if (pairs > 0 && at->level > 0 && at->i % PIECE == 0)
		groups_ahead(k, at);
	if (pairs > 0)
		*g = &cell_at(k, read_once(at->links[at->i % PIECE]))->group;
	at->i++;
	at->left -= pairs;
	return pairs;
}

#endif
