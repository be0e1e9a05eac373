/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cover.c - an entry is for a part of a path, not for a node.
 *
 * A prefix that all workers hold is cut into as many nodes as there are places
 * at which prompts part from it. With an entry for each worker on each node,
 * 250 short prompts would turn a thousand entries into 250,000. So a node may
 * have an HEIR, one of its children ("=="), and an entry on the heir is for the
 * node, too:
 *
 *   [h0 .. h3] w3           w1's entry covers 8 blocks, w2's 7;
 *     |== [h4 .. h6] w2     w3 holds no heir and has two entries, of 4 and of 1
 *     |     `== [h7] w1
 *     `-- [g4] w3
 *
 * An entry ENDS at its node and COVERS `blocks` blocks of the path, upwards:
 * that node, and those above it in its LINE of heirs, up to the top of the line
 * or to a node at which the worker has another entry. The nodes above are
 * covered by that one, or by one further down another line. So a worker has
 * several entries in a line only if it has used its beginning later than its
 * end, or pins it more often:
 *
 *   line       [h0][h1][h2][h3][h4][h5][h6]
 *   stamped      9   9   9   5   5   5   2
 *   entries     ---------^9 ---------^5 -^2
 *
 * A split makes no entries: the lower part is the heir of the upper part. An
 * entry is PARTED where its worker uses less than it covers; it ABSORBS the one
 * above when both are the same again (cover_same), which stamping does, since
 * it stamps the whole path. So refreshing a path leaves one entry for it.
 *
 * The entries that hold a node are found there and down the line from it, so a
 * line has at most LINE_MAX nodes. A node becomes the heir of its parent by a
 * split, as the only child, or by having many more holders than the old heir;
 * the few entries there are parted. So it does not matter which of two prompts
 * came first.
 *
 * THE INVARIANTS, beside the one of index.c:
 *   1. An heir is a child. A line has at most LINE_MAX nodes.
 *   2. A node at which no entry ends has an heir. So something covers it.
 *   3. An entry covers whole nodes of one line, and none at which its worker
 *      has another one.
 *   4. If there is a node above these, another entry of the worker covers it:
 *      with no older stamp, no fewer pins, and nothing trimmed, or pinned.
 *   5. Where the path of a lease ends, and where it leaves a line, an entry of
 *      its worker ends.
 *
 * Nothing is trimmed but the end of an entry. When less than its node is left,
 * it RISES to the node above, at once or, if a cell was lacking or that node
 * was made by a split since, when it is trimmed next. So `trimmed` is less than
 * `blocks`, unless it is pinned, but may be more than the node has.
 */
#include "cover.h"

#include "entry.h"
#include "node.h"

enum {
	CUT_PAIRS = 2 * LINE_MAX, /* looked at, to cut a line, */
	CUT_MAX = 64,         /* and of them, parted */
	POPULAR = 4,  /* holders, at least, of a new heir, and for each of */
	POPULAR_MAX = 8 /* the old one's; which has at most so many */
};

/* ------------------------------------------------------------- finding --- */

/*
 * The entry that covers a node, looked for down its line; 0: the slot does not
 * hold it, or it may follow no more links. Without the lock, 0 or any entry
 * while a writer is active.
 */
uint32_t
cover_seek(const struct kvr *k, uint32_t node, uint32_t slot, struct cover *at)
{
	uint32_t entry = entry_seek(k, node, slot, &at->links);
	uint32_t limit = LINE_MAX;

	at->beyond = 0;
	while (entry == 0 && --limit > 0 && at->links > 0) {
		node = read_once(node_at(k, node)->heir);
		if (node == 0)
			break;
		at->links--;
		at->beyond += read_once(node_at(k, node)->length);
		entry = entry_seek(k, node, slot, &at->links);
	}
	return entry;
}

uint32_t
cover_find(const struct kvr *k, uint32_t node, uint32_t slot)
{
	struct cover at = COVER_ANY;

	return cover_seek(k, node, slot, &at);
}

/* The node above all that an entry covers. */
uint32_t
cover_above(const struct kvr *k, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);
	uint32_t node = h->node, left = h->blocks;

	while (node != 0 && left > 0 && !region_broken(k)) {
		const struct node *n = node_at(k, node);

		left -= n->length < left ? n->length : left;
		add_once(k->region->counts.steps, 1);
		node = n->parent;
	}
	return node;
}

/* -------------------------------------------------------------- making --- */

/*
 * Makes an entry end at `node`, for the part of another entry's cover that ends
 * there. The other keeps the `blocks` further down; if it had lost these, it
 * goes.
 */
static uint32_t
cover_part(struct kvr *k, uint32_t entry, uint32_t node, uint32_t blocks)
{
	uint32_t above = entry_copy(k, node, entry);
	struct entry *h = entry_at(k, entry), *a = entry_at(k, above);

	write_once(a->blocks, h->blocks - blocks);
	write_once(h->blocks, blocks);
	if (h->trimmed < blocks)
		return above;
	entry_set_trimmed(k, above, h->trimmed - blocks);
	entry_set_trimmed(k, entry, blocks);
	if (h->pins == 0)
		node_leave(k, entry);
	return above;
}

/* Lets a new entry cover the line above, up to the slot's next entry. */
static void
cover_extend(struct kvr *k, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);
	uint32_t node = h->node, blocks = h->blocks, above;

	while (!region_broken(k)) {
		above = node_at(k, node)->parent;
		if (above == 0 || node_at(k, above)->heir != node ||
		    entry_find(k, above, h->slot) != 0)
			break;
		add_once(k->region->counts.steps, 1);
		blocks += node_at(k, above)->length;
		node = above;
	}
	if (blocks == h->blocks)
		return;
	add_once(k->region->counts.gained, blocks - h->blocks);
	entry_resize(k, entry, blocks);
}

/*
 * The slot's entry that ends at `node`: the one there is, a part of the one
 * that covers the node, or a new one. Needs pairs_cells_to_add cells.
 */
uint32_t
cover_make(struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t at = node, limit = LINE_MAX, blocks = 0, entry;

	for (; at != 0 && limit > 0; limit--) {
		entry = entry_find(k, at, slot);
		if (entry != 0)
			return at == node ? entry
			    : cover_part(k, entry, node, blocks);
		at = node_at(k, at)->heir;
		blocks += node_at(k, at)->length;
		add_once(k->region->counts.steps, 1);
	}
	entry = entry_add(k, node, slot);
	cover_extend(k, entry);
	return entry;
}

/*
 * No entry may be trimmed that covers a node from which another part of the
 * path goes on: so an entry that covers such a node above this one is parted
 * there. blocks: those that the entry covers above this one. false: there is no
 * cell.
 */
bool
cover_part_above(struct kvr *k, uint32_t slot, uint32_t node, uint32_t blocks)
{
	while (blocks > 0 && !region_broken(k)) {
		node = node_at(k, node)->parent;
		add_once(k->region->counts.steps, 1);
		if (node == 0 || node_at(k, node)->children != 1)
			break;
		blocks -= node_at(k, node)->length < blocks
		    ? node_at(k, node)->length : blocks;
	}
	if (blocks == 0 || node == 0)
		return true;
	if (k->region->free_cells < ENTRY_CELLS_MAX)
		return false;
	(void)cover_make(k, node, slot);
	return true;
}

/* Whether the end of an entry must stay one though the path goes on. */
static bool
keeps_end(const struct kvr *k, const struct entry *h)
{
	return (h->flags & ENTRY_MARKED) != 0 ||
	    (h->anchor != 0 && node_at(k, h->node)->children != 1);
}

/*
 * Whether two entries of one worker, at a node (one) and further down (other),
 * differ only in where they end. They must agree in the time of release, which
 * is the age of their blocks, unless retention goes by time alone. They must be
 * adjacent in the lists, or joining them would move blocks past others that
 * were stamped or released in between, and may be below the first.
 */
bool
cover_same(const struct kvr *k, uint32_t one, uint32_t other)
{
	const struct entry *a = entry_at(k, one), *b = entry_at(k, other);

	return a->stamp == b->stamp && a->pins == b->pins &&
	    ((a->flags ^ b->flags) & (ENTRY_MARKED - 1)) == 0 &&
	    (a->trimmed | b->trimmed) == 0 &&
	    ((a->flags & ENTRY_LISTED) == 0 || a->stamp_prev == other) &&
	    ((a->flags & ENTRY_IDLE) == 0 || a->release_prev == other) &&
	    (a->released == b->released ||
	    slot_at(k, a->slot)->mode == KVR_RETAIN_TTL);
}

/*
 * Joins an entry with the one of its worker just below in the line, if they are
 * the same. An anchor is lost only where the nodes could be merged, too.
 */
bool
cover_absorb(struct kvr *k, uint32_t above, uint32_t below)
{
	const struct entry *a = entry_at(k, above);
	uint32_t blocks = a->blocks;

	if (!cover_same(k, above, below) || keeps_end(k, a))
		return false;
	entry_remove(k, above);
	entry_resize(k, below, entry_at(k, below)->blocks + blocks);
	return true;
}

/*
 * Moves an entry that was trimmed too much to the node where it ends, if
 * there is a cell for its pair.
 */
void
cover_rise(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);
	uint32_t from = h->node, node = from, lost = 0;

	if (from == 0 || h->pins > 0 || h->trimmed >= h->blocks)
		return;
	while (h->trimmed - lost >= node_at(k, node)->length &&
	    node_at(k, node)->parent != 0 && !region_broken(k)) {
		lost += node_at(k, node)->length;
		node = node_at(k, node)->parent;
		add_once(k->region->counts.steps, 1);
	}
	if (node == from || k->region->free_cells + 1 <
	    pairs_cells_to_add(node_at(k, node)->holders))
		return;
	write_once(h->blocks, h->blocks - lost);
	write_once(h->trimmed, h->trimmed - lost);
	entry_move(k, entry, node);
	node_prune(k, from);
}

/* --------------------------------------------------------------- lines --- */

/* Nodes of the line from this one down. */
uint32_t
cover_line_below(const struct kvr *k, uint32_t node)
{
	uint32_t nodes = 0;

	for (; node != 0 && nodes < LINE_MAX; nodes++)
		node = node_at(k, node)->heir;
	add_once(k->region->counts.steps, nodes);
	return nodes;
}

/* Nodes of the line above this one. */
static uint32_t
line_above(const struct kvr *k, uint32_t node)
{
	uint32_t nodes = 0, above = node_at(k, node)->parent;

	while (above != 0 && node_at(k, above)->heir == node &&
	    nodes < LINE_MAX) {
		nodes++;
		node = above;
		above = node_at(k, node)->parent;
	}
	add_once(k->region->counts.steps, nodes);
	return nodes;
}

/* Whether the line of a node can take no further one. */
bool
cover_line_full(const struct kvr *k, uint32_t node)
{
	return line_above(k, node) + cover_line_below(k, node) >= LINE_MAX;
}

/*
 * Finds, or parts, entries that cover `node` from further down its line; false
 * if there are many.
 */
static bool
cut_pass(struct kvr *k, uint32_t node, bool part)
{
	uint32_t at = node_at(k, node)->heir, blocks = 0, pairs = 0, most = 0;

	while (at != 0 && !region_broken(k)) {
		const struct node *n = node_at(k, at);
		uint32_t below = n->heir, i = n->holders;

		blocks += n->length;
		pairs += i;
		add_once(k->region->counts.steps, 1 + i);
		if (pairs > CUT_PAIRS)
			return false;
		while (i-- > 0) {
			uint32_t entry = entry_find(k, at, pairs_slot(k, n, i));

			if (entry_at(k, entry)->blocks <= blocks)
				continue;
			if (++most > CUT_MAX)
				return false;
			if (part)
				(void)cover_part(k, entry, node, blocks);
		}
		at = below;
	}
	return part || most * ENTRY_CELLS_MAX <= k->region->free_cells / 2;
}

/*
 * Cuts the line of a node in two, near it: entries of both halves are parted.
 * Where many workers hold the lower one, it stays as it is.
 */
void
cover_cut(struct kvr *k, uint32_t node)
{
	if (line_above(k, node) >= cover_line_below(k, node))
		node = node_at(k, node)->parent;
	if (cut_pass(k, node, false) && cut_pass(k, node, true))
		write_once(node_at(k, node)->heir, 0);
}

/*
 * Whether the heir of a node may be replaced: it has few entries, whole ones,
 * and no heir itself; and there is room for parting them, beside the cells that
 * must be spared.
 */
static bool
heir_replaceable(const struct kvr *k, uint32_t heir, uint32_t spare)
{
	const struct node *n = node_at(k, heir);
	uint32_t i;

	if (n->heir != 0 || n->holders > POPULAR_MAX ||
	    k->region->free_cells < spare + n->holders * ENTRY_CELLS_MAX)
		return false;
	for (i = 0; i < n->holders; i++)
		if (entry_at(k, entry_find(k, heir, pairs_slot(k, n, i)))
		    ->trimmed > 0)
			return false;
	return true;
}

static void
heir_replace(struct kvr *k, uint32_t node, uint32_t child)
{
	const struct node *n = node_at(k, node);
	const struct node *old = node_at(k, n->heir);
	uint32_t i;

	add_once(k->region->counts.steps, old->holders);
	for (i = 0; i < old->holders && !region_broken(k); i++) {
		uint32_t slot = pairs_slot(k, old, i);
		uint32_t entry = entry_find(k, n->heir, slot);

		if (entry == 0)
			region_break(k);
		else if (entry_find(k, node, slot) == 0)
			(void)cover_part(k, entry, node, old->length);
	}
	write_once(node_at(k, node)->heir, child);
}

/*
 * Whether the child is its parent's heir now. *line: nodes of the child's line,
 * from it down; 0: not counted yet. spare: cells that are needed further up.
 */
bool
cover_adopt(struct kvr *k, uint32_t node, uint32_t child, uint32_t *line,
    uint32_t spare)
{
	const struct node *n = node_at(k, node), *c = node_at(k, child);
	uint32_t old = n->heir;

	if (old == child)
		return true;
	if (n->children != 1 && c->holders < POPULAR * (old != 0 &&
	    node_at(k, old)->holders > 1 ? node_at(k, old)->holders : 1U))
		return false;
	if (old != 0 && !heir_replaceable(k, old, spare))
		return false;
	if (*line == 0)
		*line = cover_line_below(k, child);
	if (line_above(k, node) + 1 + *line > LINE_MAX)
		return false;
	heir_replace(k, node, child);
	return true;
}
