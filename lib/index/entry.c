/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * entry.c - the entries of a node: which workers have it, since when.
 *
 * A match reads, of each entry on its way, a stamp and a word (the slot, and
 * whether it is pinned), and nothing else. So these pairs stand together,
 * apart from the links and counts that only writers need. A node's only pair
 * stands in the node itself; two and more stand in groups of six, all full but
 * the last; above more than one group stand pieces of 16 links, so that they
 * can all be fetched at once and none waits for the one before:
 *
 *   node { holders = 8, holds } -> [ . . ]
 *                                   /    \
 *                [ 0 1 2 3 4 5 ]         [ 6 7 . . . . ]
 *
 * An entry may be TRIMMED: a cache that needs room gives up the last blocks of
 * a run before the first, so `gone` of the run's last blocks may be missing.
 * Who has more of the path has all of the run, so below a trimmed entry its
 * worker holds nothing. While it is pinned it counts as whole, for a request
 * brings the rest; should none of them be dispatched, what was gone is gone
 * again.
 *
 * An entry without a node (0) is NAMELESS: blocks of an answer, which fill an
 * engine's cache as any other, but nobody told their tokens, so nothing can
 * match them. It stands in the lists alone, and `gone` is how many they are.
 *
 * Removing a pair moves the last one into its place. An entry knows where its
 * pair is (group and lane); the way back is the table of entries, which finds
 * the entry of (node, slot) in one step however many holders a node has.
 */
#include "entry.h"

#include "cell.h"
#include "order.h"

/* --------------------------------------------------- table of entries --- */

static uint32_t *
table_head(struct kvr *k, uint32_t node, uint32_t slot)
{
	return &k->entry_buckets[bucket_of_entry(k, node, slot)];
}

/* Steps are counted where they are many: see BROKEN in region.h. */
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
		k->region->counts.steps += CHAIN_MAX - limit;
	return limit > 0 ? i : 0;
}

static void
table_remove(struct kvr *k, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);
	uint32_t *link = table_head(k, h->node, h->slot);
	uint32_t limit = CHAIN_MAX;

	for (; *link != 0 && limit > 0; limit--) {
		k->region->counts.steps++;
		if (*link == entry) {
			write_once(*link, h->next);
			return;
		}
		link = &entry_at(k, *link)->next;
	}
}

/* The same without the lock: 0, or any entry, if a writer is at work. */
uint32_t
entry_read(const struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t i, limit = CHAIN_MAX;

	i = read_once(k->entry_buckets[bucket_of_entry(k, node, slot)]);
	for (; i != 0 && limit > 0;
	     i = read_once(entry_at(k, i)->next), limit--) {
		const struct entry *h = entry_at(k, i);

		if (read_once(h->node) == node && read_once(h->slot) == slot &&
		    read_once(h->kind) == CELL_ENTRY)
			return i;
	}
	return 0;
}

/* 0 if the slot has no entry on the node. */
uint32_t
entry_find(const struct kvr *k, uint32_t node, uint32_t slot)
{
	const struct node *n = node_at(k, node);

	if (n->holders == 1)
		return (n->word & WORD_SLOT) == slot ? n->entries : 0;
	return table_find(k, node, slot);
}

/* --------------------------------------------------------------- pairs --- */

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

		write_once(g->word[h->lane % PAIRS], word);
		write_once(g->stamp[h->lane % PAIRS], h->stamp);
	}
}

/* Pieces of links are these many levels high above so many groups. */
static uint32_t
links_level(uint32_t groups)
{
	uint32_t level = 0;

	for (; groups > 1; groups = (groups + PIECE - 1) / PIECE)
		level++;
	return level;
}

/* Cells of the pairs of so many holders: the groups, and links to them. */
uint32_t
pairs_cells(uint32_t holders)
{
	uint32_t n = (holders + PAIRS - 1) / PAIRS, cells = n;

	if (holders < 2)
		return 0;
	for (; n > 1; n = (n + PIECE - 1) / PIECE)
		cells += (n + PIECE - 1) / PIECE;
	return cells;
}

/* Cells that one holder more takes, the entry itself among them. */
uint32_t
pairs_cells_to_add(uint32_t holders)
{
	return 1 + pairs_cells(holders + 1) - pairs_cells(holders);
}

static uint32_t
pairs_slot_of(const struct kvr *k, uint32_t group, uint32_t lane)
{
	return cell_at(k, group)->group.word[lane % PAIRS] & WORD_SLOT;
}

/* The group of a pair, by its place among all `holders`. */
static uint32_t
group_at(const struct kvr *k, const struct node *n, uint32_t holders,
    uint32_t i)
{
	return links_at(k, n->entries,
	    links_level((holders + PAIRS - 1) / PAIRS), i / PAIRS);
}

/* Whose pair is the i-th. */
uint32_t
pairs_slot(const struct kvr *k, const struct node *n, uint32_t i)
{
	if (n->holders == 1)
		return n->word & WORD_SLOT;
	return pairs_slot_of(k, group_at(k, n, n->holders, i), i % PAIRS);
}

/* Hangs a new group behind the `i` there are. */
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

/* Takes away the last group, which is the i-th, and links to it alone. */
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

/* Gives an entry the next free place. */
static void
pair_add(struct kvr *k, struct node *n, uint32_t entry)
{
	struct entry *h = entry_at(k, entry), *only;
	uint32_t place = n->holders;

	write_once(h->group, 0);
	write_once(h->lane, 0);
	if (place == 0) {
		write_once(n->entries, entry);
	} else {
		if (place == 1) { /* the first one's pair leaves the node */
			only = entry_at(k, n->entries);
			write_once(only->group, group_add(k, n, 0));
			pair_write(k, only);
		}
		write_once(h->lane, place % PAIRS);
		write_once(h->group, place % PAIRS != 0
		    ? group_at(k, n, place, place)
		    : group_add(k, n, place / PAIRS));
	}
	write_once(n->holders, (uint16_t)(place + 1));
	pair_write(k, h);
}

/* One of two holders has gone: the other's pair moves into the node. */
static void
pairs_gather(struct kvr *k, uint32_t node)
{
	struct node *n = node_at(k, node);
	uint32_t group = n->entries;
	uint32_t only = table_find(k, node, pairs_slot_of(k, group, 0));

	write_once(n->entries, only);
	write_once(entry_at(k, only)->group, 0);
	write_once(entry_at(k, only)->lane, 0);
	pair_write(k, entry_at(k, only));
	cell_give(k, group);
}

/* Takes an entry's pair away; the last pair fills the gap. */
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
	if (h->group != group || h->lane != lane) {
		struct entry *moved = entry_at(k,
		    table_find(k, h->node, pairs_slot_of(k, group, lane)));

		write_once(moved->group, h->group);
		write_once(moved->lane, h->lane);
		pair_write(k, moved);
	}
	if (lane == 0)
		group_remove(k, n, last / PAIRS);
	write_once(n->holders, (uint16_t)last);
	if (last == 1)
		pairs_gather(k, h->node);
}

/* --------------------------------------------------------------- holds --- */

/*
 * One entry more, or less, and its blocks. What a retired slot still has is
 * its own affair: it left the totals when the slot retired (entry_void_slot).
 */
static void
entry_count(struct kvr *k, uint32_t slot, int32_t entries, uint64_t blocks)
{
	struct slot *s = slot_at(k, slot);

	s->entries += (uint32_t)entries;
	s->held += blocks;
	if (s->retired != 0)
		return;
	k->region->counts.entries += (uint64_t)(int64_t)entries;
	k->region->counts.held += blocks;
}

/* Blocks that the worker has of the node. */
uint32_t
entry_blocks(const struct kvr *k, const struct entry *h)
{
	return node_at(k, h->node)->length - (h->pins > 0 ? 0 : h->trimmed);
}

/* Blocks that entries of the slot have gained, or lost. */
void
entry_count_blocks(struct kvr *k, uint32_t slot, uint64_t blocks)
{
	entry_count(k, slot, 0, blocks);
}

/* A slot retires: its counts are taken from the totals. */
void
entry_void_slot(struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	k->region->counts.entries -= s->entries;
	k->region->counts.held -= s->held;
	order_retire(k, slot);
	region_slot_free(k, slot);
}

/* Makes an entry that is neither listed nor counted. */
static uint32_t
entry_make(struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t i = cell_take(k), *head = table_head(k, node, slot);
	struct entry *h = entry_at(k, i);

	write_once_zeros(h, sizeof(*h));
	write_once(h->kind, CELL_ENTRY);
	write_once(h->flags, ENTRY_UNCONFIRMED);
	write_once(h->slot, (uint16_t)slot);
	write_once(h->node, node);
	write_once(h->stamp, STAMP_NONE);
	write_once(h->next, *head);
	write_once(*head, i);
	return i;
}

/* A new entry: unconfirmed, without pins, on no list. Needs up to 2 cells. */
uint32_t
entry_add(struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t i = entry_make(k, node, slot);

	pair_add(k, node_at(k, node), i);
	entry_count(k, slot, 1, node_at(k, node)->length);
	return i;
}

/*
 * A split gives `node`, the upper part, an entry like that on the lower part:
 * same stamp, same pins, just younger in every list. The blocks of both parts
 * have been counted before.
 */
uint32_t
entry_copy(struct kvr *k, uint32_t node, uint32_t from)
{
	const struct entry *o = entry_at(k, from);
	uint32_t i = entry_make(k, node, o->slot);
	struct entry *h = entry_at(k, i);

	write_once(h->stamp, o->stamp);
	write_once(h->pins, o->pins);
	write_once(h->flags, o->flags & ENTRY_UNCONFIRMED);
	write_once(h->released, o->released);
	pair_add(k, node_at(k, node), i);
	order_copy(k, i, from);
	entry_count(k, h->slot, 1, 0);
	return i;
}

/*
 * A node that has been split is the lower part now. Who held it holds both
 * parts; who had lost the lower part holds the upper one alone. Backwards,
 * because an entry that leaves is replaced by the last one.
 */
void
entry_split(struct kvr *k, uint32_t lower, uint32_t upper)
{
	const struct node *l = node_at(k, lower);
	uint32_t i = node_holders(k, l);

	k->region->counts.steps += i;
	while (i-- > 0 && !region_broken(k)) {
		uint32_t from = entry_find(k, lower, pairs_slot(k, l, i));
		uint32_t above = entry_copy(k, upper, from);
		struct entry *h = entry_at(k, from), *u = entry_at(k, above);

		if (h->trimmed < l->length)
			continue;
		write_once(u->trimmed, h->trimmed - l->length);
		write_once(h->trimmed, l->length);
		pair_write(k, u);
		if (h->pins == 0)
			entry_remove(k, from);
	}
}

/* All of the run again. */
void
entry_whole(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);

	if (h->trimmed == 0)
		return;
	if (h->pins == 0)
		entry_count(k, h->slot, 0, h->trimmed);
	write_once(h->trimmed, 0);
	pair_write(k, h);
}

/* So many of the blocks that are left go; fewer than all. */
void
entry_trim(struct kvr *k, uint32_t entry, uint32_t blocks)
{
	struct entry *h = entry_at(k, entry);

	if (h->node == 0) {
		slot_at(k, h->slot)->anonymous -= blocks;
		write_once(h->trimmed, h->trimmed - blocks);
		return;
	}
	entry_count(k, h->slot, 0, -(uint64_t)blocks);
	write_once(h->trimmed, h->trimmed + blocks);
	pair_write(k, h);
}

/* Blocks of an answer become idle: a cell in the lists, if there is one. */
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
	slot_at(k, slot)->anonymous += blocks;
	entry_count(k, slot, 1, 0);
	order_append(k, i);
	order_release(k, i);
	order_settle(k, slot);
}

/* Asks for what taking this entry away will look at. */
void
entry_prefetch(const struct kvr *k, const struct entry *h)
{
	__builtin_prefetch(&k->entry_buckets[bucket_of_entry(k, h->node,
	    h->slot)]);
	__builtin_prefetch(cell_at(k, h->stamp_next));
	__builtin_prefetch(cell_at(k, h->release_next));
	__builtin_prefetch(cell_at(k, h->group));
}

/* Takes an entry away from everything but its node's existence: index.c. */
void
entry_remove(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);
	uint32_t slot = h->slot;

	order_remove(k, entry);
	order_unrelease(k, entry);
	if (h->node != 0) {
		entry_count(k, slot, -1, -(uint64_t)entry_blocks(k, h));
		table_remove(k, entry);
		pair_remove(k, h);
	} else {
		entry_count(k, slot, -1, 0);
		slot_at(k, slot)->anonymous -= h->trimmed;
	}
	write_once(h->kind, CELL_FREE);
	cell_give(k, entry);
	region_slot_free(k, slot);
}

/* The youngest of its worker now, and confirmed. */
void
entry_stamp(struct kvr *k, uint32_t entry, int64_t now)
{
	struct entry *h = entry_at(k, entry);

	write_once(h->stamp, now);
	write_once(h->flags, h->flags & (uint8_t)~ENTRY_UNCONFIRMED);
	entry_whole(k, entry);
	pair_write(k, h);
	order_remove(k, entry);
	order_append(k, entry);
	if (h->pins == 0) {
		order_unrelease(k, entry);
		order_release(k, entry);
	}
}

/*
 * What was due, and merely not reclaimed yet, is not made live by a pin: it is
 * unconfirmed again. It stays where it is listed: what hangs below may not
 * have been reclaimed either, and must go first.
 */
void
entry_pin(struct kvr *k, uint32_t entry, int64_t now)
{
	struct entry *h = entry_at(k, entry);
	struct slot *s = slot_at(k, h->slot);

	write_once(h->pins, h->pins + 1);
	if (h->pins > 1)
		return;
	order_unrelease(k, entry);
	entry_count(k, h->slot, 0, h->trimmed);
	if (h->stamp <= horizon_of(k, h->slot, now))
		write_once(h->flags, h->flags | ENTRY_UNCONFIRMED);
	pair_write(k, h);
	s->active += node_at(k, h->node)->length;
	s->blocks += node_at(k, h->node)->length;
}

/*
 * True if the entry must go now: nothing holds it, and it is on no list,
 * because it was never confirmed or its time came while it was pinned; or all
 * of it was gone, and has not come back.
 */
bool
entry_unpin(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);
	struct slot *s = slot_at(k, h->slot);

	if (h->pins == 0)
		return false;
	write_once(h->pins, h->pins - 1);
	if (h->pins > 0)
		return false;
	pair_write(k, h);
	s->active -= node_at(k, h->node)->length;
	s->blocks -= node_at(k, h->node)->length;
	entry_count(k, h->slot, 0, -(uint64_t)h->trimmed);
	if ((h->flags & ENTRY_LISTED) == 0 ||
	    h->trimmed == node_at(k, h->node)->length)
		return true;
	write_once(h->flags, h->flags & (uint8_t)~ENTRY_UNCONFIRMED);
	order_release(k, entry);
	return false;
}

/*
 * Two entries of one worker that nothing but their node tells apart, of a node
 * and of its child. What is in use keeps the moment of its release, for
 * reports are evidence of that age; where time is all that counts, nobody
 * asks. What is idle must stand side by side, or joining them would put what
 * was given up since behind what was released long before.
 */
bool
entry_same(const struct kvr *k, uint32_t one, uint32_t other)
{
	const struct entry *a = entry_at(k, one), *b = entry_at(k, other);

	return a->stamp == b->stamp && a->pins == b->pins &&
	    a->flags == b->flags && (a->trimmed | b->trimmed) == 0 &&
	    ((a->flags & ENTRY_IDLE) == 0 || a->release_prev == other) &&
	    (a->released == b->released ||
	    slot_at(k, a->slot)->mode == KVR_RETAIN_TTL);
}
