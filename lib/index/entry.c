/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * entry.c - the entries that end at a node: which workers have it, since when.
 * They may be for nodes above it, too: cover.c.
 *
 * A match reads, of each entry on its way, a stamp and a word (the slot, and
 * whether it is pinned or trimmed), and hardly anything else. So these pairs
 * are stored together, apart from the links and counts that only writers need.
 * A node's only pair is stored in the node itself; two or more are stored in
 * groups of six, all full but the last. Above more than one group are pieces of
 * 16 links, so that all groups can be prefetched at once and none waits for the
 * previous one:
 *
 *   node { holders = 8, entries } -> [ . . ]
 *                                     /    \
 *                  [ 0 1 2 3 4 5 ]         [ 6 7 . . . . ]
 *
 * An entry may be TRIMMED: a cache that needs room evicts the last blocks of a
 * path before the first, so the last `trimmed` blocks may be missing. A worker
 * that has more of the path has all its blocks, so it has no entry below a
 * trimmed one. While it is pinned, an entry counts as whole, since a request
 * brings the rest; if no such request is dispatched, the trimmed blocks are
 * missing again.
 *
 * An entry without a node (0) is ANONYMOUS: output blocks, which fill an
 * engine's cache like any others, but whose tokens are unknown, so nothing can
 * match them. It is in the lists only, and `trimmed` is the number of blocks.
 *
 * Most nodes of a path have few holders, and a worker is looked for at each of
 * them. So a node with several has 64 bits, and each slot has one by its hash:
 * where it is not set, the slot has no entry there. Bits of slots that left
 * stay until they are the most.
 *
 * Removing a pair moves the last one into its place. An entry has the place of
 * its pair (group and lane); for the way back, the table of entries finds
 * the entry of (node, slot) in one step however many holders a node has.
 */
#include "entry.h"

#include "cell.h"
#include "order.h"
#include "table.h"
#include "tenant.h"

/* --------------------------------------------------- table of entries --- */

static uint32_t *
table_head(struct kvr *k, uint32_t node, uint32_t slot)
{
	return &k->entry_buckets[bucket_of_entry(k, node, slot)];
}

/* The bit of a slot. */
static uint64_t
slot_bit(uint32_t slot)
{
	return UINT64_C(1) << (slot * UINT32_C(0x9e3779b1) >> 26);
}

/* May the slot be one of so many holders of a node? If there is one: is it? */
static bool
slot_may_hold(const struct node *n, uint32_t holders, uint32_t slot)
{
	if (holders <= 1)
		return holders == 1 &&
		    (read_once(n->word) & WORD_SLOT) == slot;
	return (read_once(n->slots) & slot_bit(slot)) != 0;
}

/* Only long chains are counted as steps: see BROKEN in region.h. */
static uint32_t
table_find(const struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t i = k->entry_buckets[bucket_of_entry(k, node, slot)];
	uint32_t limit = CHAIN_MAX;

	for (; i != 0 && limit > 0; i = entry_at(k, i)->next, limit--) {
		const struct entry *h = entry_at(k, i);

		if (h->kind == CELL_ENTRY && h->node == node && h->slot == slot)
			break;
	}
	if (limit < CHAIN_MAX - CHAIN_USUAL)
		add_once(k->region->counts.steps, CHAIN_MAX - limit);
	return limit > 0 ? i : 0;
}

static void
table_remove(struct kvr *k, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);

	bucket_remove(k, table_head(k, h->node, h->slot), entry);
}

/*
 * The same without the lock; 0 or any entry while a writer is active. *links:
 * how many it may follow, less those that it has.
 */
uint32_t
entry_seek(const struct kvr *k, uint32_t node, uint32_t slot, uint32_t *links)
{
	const struct node *n = node_at(k, node);
	uint32_t holders = read_once(n->holders), i;

	if (!slot_may_hold(n, holders, slot))
		return 0;
	i = holders == 1 ? read_once(n->entries)
	    : read_once(k->entry_buckets[bucket_of_entry(k, node, slot)]);
	for (; i != 0 && *links > 0;
	     i = read_once(entry_at(k, i)->next), (*links)--) {
		const struct entry *h = entry_at(k, i);

		if (read_once(h->node) == node && read_once(h->slot) == slot &&
		    read_once(h->kind) == CELL_ENTRY)
			return i;
	}
	return 0;
}

uint32_t
entry_read(const struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t links = CHAIN_MAX;

	return entry_seek(k, node, slot, &links);
}

/* 0 if the slot has no entry that ends at the node. */
uint32_t
entry_find(const struct kvr *k, uint32_t node, uint32_t slot)
{
	const struct node *n = node_at(k, node);

	if (!slot_may_hold(n, n->holders, slot))
		return 0;
	return n->holders == 1 ? n->entries : table_find(k, node, slot);
}

/* --------------------------------------------------------------- pairs --- */

static void
lane_write(struct entry *h, uint32_t lane)
{
	uint32_t flags = h->flags & ((1U << ENTRY_LANE) - 1);

	write_once(h->flags, (uint8_t)(flags | lane << ENTRY_LANE));
}

static void
pair_write(struct kvr *k, const struct entry *h)
{
	uint16_t word = h->slot;

	if (h->pins > 0)
		word |= WORD_PINNED;
	else if (h->trimmed > 0)
		word |= WORD_TRIMMED;
	if (h->group == 0) {
		write_once(node_at(k, h->node)->word, word);
		write_once(node_at(k, h->node)->stamp, h->stamp);
	} else {
		struct group *g = &cell_at(k, h->group)->group;

		uint32_t lane = entry_lane(h) % PAIRS;

		write_once(g->word[lane], word);
		write_once(g->stamp[lane], h->stamp);
	}
}

static uint32_t
pairs_slot_of(const struct kvr *k, uint32_t group, uint32_t lane)
{
	return cell_at(k, group)->group.word[lane % PAIRS] & WORD_SLOT;
}

/* The group of the i-th pair of `holders`. */
static uint32_t
group_at(const struct kvr *k, const struct node *n, uint32_t holders,
    uint32_t i)
{
	return links_at(k, n->entries,
	    links_level((holders + PAIRS - 1) / PAIRS), i / PAIRS);
}

/* The slot of the i-th pair. */
uint32_t
pairs_slot(const struct kvr *k, const struct node *n, uint32_t i)
{
	if (n->holders == 1)
		return n->word & WORD_SLOT;
	return pairs_slot_of(k, group_at(k, n, n->holders, i), i % PAIRS);
}

/* Appends a new group to the `i` that exist. */
static uint32_t
group_add(struct kvr *k, struct node *n, uint32_t i)
{
	uint32_t level = links_level(i + 1), group = cell_take(k), piece;

	if (i == 0) {
		write_once(n->entries, group);
		return group;
	}
	if (level > links_level(i)) {
		piece = cell_take(k);
		write_once(cell_at(k, piece)->piece[0], n->entries);
		write_once(n->entries, piece);
	}
	for (piece = n->entries; level > 1; level--) {
		uint32_t *link = &cell_at(k, piece)->piece[(i >>
		    (4 * (level - 1))) % PIECE];

		if ((i & ((UINT32_C(1) << (4 * (level - 1))) - 1)) == 0)
			write_once(*link, cell_take(k));
		piece = *link;
	}
	write_once(cell_at(k, piece)->piece[i % PIECE], group);
	return group;
}

/* Removes the last group, which is the i-th, and links to it alone. */
static void
group_remove(struct kvr *k, struct node *n, uint32_t i)
{
	uint32_t level = links_level(i + 1), at = n->entries, next;
	bool lower = level > links_level(i);

	if (lower && level > 0)
		write_once(n->entries, cell_at(k, at)->piece[0]);
	for (; level > 0; level--) {
		next = cell_at(k, at)->piece[(i >> (4 * (level - 1))) % PIECE];
		if (lower || (i & ((UINT32_C(1) << (4 * level)) - 1)) == 0)
			cell_give(k, at);
		lower = false;
		at = next;
	}
	cell_give(k, at);
}

/* Stores the pair of an entry in the next free place. */
static void
pair_add(struct kvr *k, struct node *n, uint32_t entry)
{
	struct entry *h = entry_at(k, entry), *only;
	uint32_t place = n->holders;

	write_once(h->group, 0);
	lane_write(h, 0);
	if (place == 0) {
		write_once(n->entries, entry);
	} else {
		if (place == 1) { /* the first one's pair leaves the node */
			only = entry_at(k, n->entries);
			write_once(only->group, group_add(k, n, 0));
			pair_write(k, only);
			write_once(n->slots, slot_bit(only->slot));
		}
		write_once(n->slots, n->slots | slot_bit(h->slot));
		lane_write(h, place % PAIRS);
		write_once(h->group, place % PAIRS != 0
		    ? group_at(k, n, place, place)
		    : group_add(k, n, place / PAIRS));
	}
	write_once(n->holders, (uint16_t)(place + 1));
	pair_write(k, h);
}

/* One of two holders is gone: the other's pair moves into the node. */
static void
pairs_gather(struct kvr *k, uint32_t node)
{
	struct node *n = node_at(k, node);
	uint32_t group = n->entries;
	uint32_t only = table_find(k, node, pairs_slot_of(k, group, 0));

	write_once(n->entries, only);
	write_once(entry_at(k, only)->group, 0);
	lane_write(entry_at(k, only), 0);
	pair_write(k, entry_at(k, only));
	cell_give(k, group);
}

/* Forgets the bits of slots that have left, if they may be the most. */
static void
pairs_refresh(struct kvr *k, struct node *n)
{
	uint64_t slots = 0;
	uint32_t i;

	if ((uint32_t)__builtin_popcountll(n->slots) <= 2u * n->holders)
		return;
	for (i = 0; i < n->holders; i++)
		slots |= slot_bit(pairs_slot(k, n, i));
	write_once(n->slots, slots);
}

/* Removes an entry's pair; the last pair fills the gap. */
static void
pair_remove(struct kvr *k, const struct entry *h)
{
	struct node *n = node_at(k, h->node);
	uint32_t last = n->holders - 1u, group, lane = last % PAIRS;

	if (last == 0) {
		write_once(n->holders, 0);
		write_once(n->entries, 0);
		return;
	}
	group = group_at(k, n, last + 1, last);
	if (h->group != group || entry_lane(h) != lane) {
		struct entry *moved = entry_at(k,
		    table_find(k, h->node, pairs_slot_of(k, group, lane)));

		write_once(moved->group, h->group);
		lane_write(moved, entry_lane(h));
		pair_write(k, moved);
	}
	if (lane == 0)
		group_remove(k, n, last / PAIRS);
	write_once(n->holders, (uint16_t)last);
	if (last == 1)
		pairs_gather(k, h->node);
	else
		pairs_refresh(k, n);
}

/* ------------------------------------------------------------- entries --- */

/*
 * Adds to the counts of entries and of held blocks. A retired slot only counts
 * for itself: it left the totals when it retired (entry_retire_slot).
 */
static void
entry_count(struct kvr *k, uint32_t slot, int32_t entries, uint64_t blocks)
{
	struct slot *s = slot_at(k, slot);

	add_once(s->entries, (uint32_t)entries);
	add_once(s->held, blocks);
	if (s->retired != 0)
		return;
	add_once(k->region->counts.entries, (uint64_t)(int64_t)entries);
	add_once(k->region->counts.held, blocks);
}

/* Counts blocks that entries of the slot have gained or lost. */
void
entry_count_blocks(struct kvr *k, uint32_t slot, uint64_t blocks)
{
	entry_count(k, slot, 0, blocks);
}

/* Retires a slot and takes its counts from the totals. */
void
entry_retire_slot(struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	sub_once(k->region->counts.entries, s->entries);
	sub_once(k->region->counts.held, s->held);
	order_retire(k, slot);
	region_slot_free(k, slot);
}

static void
table_add(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);
	uint32_t *head;

	entry_table_grow(k);
	head = table_head(k, h->node, h->slot);
	write_once(h->next, *head);
	write_once(*head, entry);
}

/* Makes an entry that is neither listed nor counted. */
static uint32_t
entry_make(struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t i = cell_take(k);
	struct entry *h = entry_at(k, i);

	write_once_zeros(h, sizeof(*h));
	write_once(h->kind, CELL_ENTRY);
	write_once(h->flags, ENTRY_UNCONFIRMED);
	write_once(h->slot, (uint16_t)slot);
	write_once(h->node, node);
	write_once(h->stamp, STAMP_NONE);
	table_add(k, i);
	return i;
}

/*
 * A new entry: unconfirmed, without pins, on no list. Needs pairs_cells_to_add
 * cells.
 */
uint32_t
entry_add(struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t free = k->region->free_cells, i = entry_make(k, node, slot);

	write_once(entry_at(k, i)->blocks, node_at(k, node)->length);
	pair_add(k, node_at(k, node), i);
	entry_count(k, slot, 1, node_at(k, node)->length);
	add_once(k->region->counts.gained, node_at(k, node)->length);
	tenant_charge(k, tenant_of(k, node), free);
	return i;
}

/*
 * `node` gets an entry like one further down: same stamp, same pins, just
 * younger in every list. The blocks are already counted; the caller parts them.
 */
uint32_t
entry_copy(struct kvr *k, uint32_t node, uint32_t from)
{
	const struct entry *o = entry_at(k, from);
	uint32_t free = k->region->free_cells, i = entry_make(k, node, o->slot);
	struct entry *h = entry_at(k, i);

	write_once(h->stamp, o->stamp);
	write_once(h->pins, o->pins);
	write_once(h->flags, o->flags & ENTRY_UNCONFIRMED);
	write_once(h->released, o->released);
	pair_add(k, node_at(k, node), i);
	order_copy(k, i, from);
	entry_count(k, h->slot, 1, 0);
	tenant_charge(k, tenant_of(k, node), free);
	return i;
}

/* Makes a trimmed entry whole again. */
void
entry_whole(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);

	if (h->trimmed == 0)
		return;
	order_uncount(k, entry);
	if (h->pins == 0)
		entry_count(k, h->slot, 0, h->trimmed);
	add_once(k->region->counts.gained, h->trimmed);
	write_once(h->trimmed, 0);
	order_count(k, entry);
	pair_write(k, h);
}

/* Trims so many more blocks; fewer than are left. */
void
entry_trim(struct kvr *k, uint32_t entry, uint32_t blocks)
{
	struct entry *h = entry_at(k, entry);

	order_uncount(k, entry);
	if (h->node == 0) {
		sub_once(slot_at(k, h->slot)->anonymous, blocks);
		write_once(h->trimmed, h->trimmed - blocks);
		order_count(k, entry);
		return;
	}
	entry_count(k, h->slot, 0, -(uint64_t)blocks);
	write_once(h->trimmed, h->trimmed + blocks);
	order_count(k, entry);
	entry_unmark(h, ENTRY_MARKED | ENTRY_WHOLE);
	pair_write(k, h);
}

void
entry_set_trimmed(struct kvr *k, uint32_t entry, uint32_t blocks)
{
	struct entry *h = entry_at(k, entry);

	write_once(h->trimmed, blocks);
	if (blocks > 0)
		entry_unmark(h, ENTRY_MARKED | ENTRY_WHOLE);
	pair_write(k, h);
}

/* Records idle output blocks: one cell in the lists, if one is free. */
void
entry_add_anonymous(struct kvr *k, uint32_t slot, uint32_t blocks, int64_t now)
{
	uint32_t i = cell_take(k);
	struct entry *h = entry_at(k, i);

	if (i == 0)
		return;
	write_once_zeros(h, sizeof(*h));
	write_once(h->kind, CELL_ENTRY);
	write_once(h->slot, (uint16_t)slot);
	write_once(h->stamp, now);
	write_once(h->trimmed, blocks);
	add_once(slot_at(k, slot)->anonymous, blocks);
	entry_count(k, slot, 1, 0);
	tenant_charge(k, 0, k->region->free_cells + 1);
	order_append(k, i);
	order_release(k, i, 0);
	order_settle(k, slot);
}

/* Makes an entry end at another node; its pair follows. */
void
entry_move(struct kvr *k, uint32_t entry, uint32_t node)
{
	struct entry *h = entry_at(k, entry);
	uint32_t free = k->region->free_cells;

	table_remove(k, entry);
	pair_remove(k, h);
	write_once(h->node, node);
	write_once(h->anchor, 0); /* it belongs to the old end */
	entry_unmark(h, ENTRY_MARKED | ENTRY_WHOLE);
	table_add(k, entry);
	pair_add(k, node_at(k, node), entry);
	tenant_charge(k, tenant_of(k, node), free);
}

/* Makes an entry cover more or less; the blocks of its pins stay counted. */
void
entry_resize(struct kvr *k, uint32_t entry, uint32_t blocks)
{
	struct entry *h = entry_at(k, entry);

	order_uncount(k, entry);
	entry_count(k, h->slot, 0, (uint64_t)blocks - h->blocks);
	write_once(h->blocks, blocks);
	order_count(k, entry);
}

/* Prefetches the cells that removing this entry will read. */
void
entry_prefetch(const struct kvr *k, const struct entry *h)
{
	__builtin_prefetch(&k->entry_buckets[bucket_of_entry(k, h->node,
	    h->slot)]);
	__builtin_prefetch(cell_at(k, h->stamp_next));
	__builtin_prefetch(cell_at(k, h->release_next));
	__builtin_prefetch(cell_at(k, h->group));
}

/* Removes an entry, but not its node, even if it was the last: index.c. */
void
entry_remove(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);
	uint32_t slot = h->slot, tenant = tenant_of_entry(k, entry);
	uint32_t free = k->region->free_cells;

	order_remove(k, entry);
	order_unrelease(k, entry);
	if (h->node != 0) {
		entry_count(k, slot, -1, -(uint64_t)entry_blocks(h));
		table_remove(k, entry);
		pair_remove(k, h);
	} else {
		entry_count(k, slot, -1, 0);
		sub_once(slot_at(k, slot)->anonymous, h->trimmed);
	}
	write_once(h->kind, CELL_FREE);
	cell_give(k, entry);
	tenant_charge(k, tenant, free);
	region_slot_free(k, slot);
}

/* Confirms an entry and makes it the youngest of its worker. */
void
entry_stamp(struct kvr *k, uint32_t entry, uint32_t below, bool whole,
    int64_t now)
{
	struct entry *h = entry_at(k, entry);

	if (h->pins == 0 && h->stamp > STAMP_NONE &&
	    h->stamp <= horizon_of(k, h->slot, now))
		add_once(k->region->counts.gained, entry_blocks(h));
	write_once(h->stamp, now);
	write_once(h->flags, h->flags & (uint8_t)~ENTRY_UNCONFIRMED);
	if (whole)
		entry_whole(k, entry);
	pair_write(k, h);
	order_remove(k, entry);
	order_append(k, entry);
	order_unrelease(k, entry);
	if (h->pins == 0)
		order_release(k, entry, below);
}

/*
 * A pinned entry keeps its place among the idle ones until it is stamped, so
 * that a request that is never dispatched leaves it where it was.
 *
 * An entry that is due but not reclaimed yet is not revived by a pin: it
 * becomes unconfirmed again. It keeps its place in the list: entries below it
 * may not have been reclaimed either, and must go first.
 */
void
entry_pin(struct kvr *k, uint32_t entry, int64_t now)
{
	struct entry *h = entry_at(k, entry);
	struct slot *s = slot_at(k, h->slot);

	order_uncount(k, entry);
	write_once(h->pins, h->pins + 1);
	if (h->pins > 1)
		return;
	entry_count(k, h->slot, 0, h->trimmed);
	if (h->stamp <= horizon_of(k, h->slot, now))
		write_once(h->flags, h->flags | ENTRY_UNCONFIRMED);
	pair_write(k, h);
	add_once(s->active, h->blocks);
	add_once(s->blocks, h->blocks);
}

/*
 * True if the entry must be removed now: nothing pins it, and it is on no list,
 * because it was never confirmed or came due while pinned; or all of it was
 * trimmed and has not come back.
 */
bool
entry_unpin(struct kvr *k, uint32_t entry, uint32_t below)
{
	struct entry *h = entry_at(k, entry);
	struct slot *s = slot_at(k, h->slot);

	if (h->pins == 0)
		return false;
	write_once(h->pins, h->pins - 1);
	if (h->pins > 0)
		return false;
	pair_write(k, h);
	sub_once(s->active, h->blocks);
	sub_once(s->blocks, h->blocks);
	entry_count(k, h->slot, 0, -(uint64_t)h->trimmed);
	if ((h->flags & ENTRY_LISTED) == 0 ||
	    h->trimmed >= h->blocks) {
		order_count(k, entry);
		return true;
	}
	write_once(h->flags, h->flags & (uint8_t)~ENTRY_UNCONFIRMED);
	if ((h->flags & ENTRY_IDLE) == 0)
		order_release(k, entry, below);
	else
		order_count(k, entry);
	return false;
}
