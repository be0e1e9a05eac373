/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * index.c - the radix tree over sequence hashes.
 *
 * A sequence hash covers the whole prefix up to its block, so equal hashes at
 * block i mean equal prefixes up to i. Nodes are runs of blocks; a child is
 * found in one table by (hash of the block before it, or the scope's root; low
 * half of its first hash). A node does not know its children, only their
 * number.
 *
 *   prompt A = h0..h6 to w1                     [h0 .. h6] w1
 *
 *   prompt B = h0..h3 g4 g5 to w2: B leaves     [h0 .. h3] w2
 *   A's run inside; the run is split, the          |== [h4 .. h6] w1
 *   lower part keeps its number and its            `-- [g4 g5]    w2
 *   entries, which are for both: cover.c
 *
 *   prompt C = A + h7 h8 to w1: A's end is a    [h0 .. h3] w2
 *   leaf, w1 is its only holder, nothing pins      |== [h4 .. h8] w1
 *   it: extended in place                          `-- [g4 g5]    w2
 *
 *   w2 expires: its entries go, deepest         [h0 .. h3]
 *   first, and nodes that nothing holds            `== [h4 .. h8] w1
 *
 *   C is refreshed: one child, no entries       [h0 .. h8] w1
 *   of its own: merged
 *
 * THE INVARIANT on which everything rests. An entry (one worker on one or more
 * nodes of a path) is live while it is pinned or its stamp is younger than the
 * TTL. Every operation that stamps, stamps the whole path from the root; every
 * operation that pins, pins it. Hence, for each worker, with the pins and the
 * stamp of the entry that covers a node,
 *
 *	pins(parent) >= pins(child),  stamp(parent) >= stamp(child)
 *
 * and a worker that is live at some depth is live at every smaller depth. So
 * the overlap of a worker ends where its deepest live entry on the prompt's
 * path ends; expiry is a comparison at read time; and eviction in order of
 * stamps removes children first.
 *
 * COST. A match visits the nodes on the path and the entries on them. A run
 * that matches whole is one comparison, of the 64-bit hash at its end; else the
 * point of divergence is found by bisection. An insertion visits the nodes, the
 * new blocks and, for a split, the blocks of its shorter part, which are no
 * more than the prompt's. Merging a long chain of short nodes from its end
 * would copy the same blocks repeatedly, so one refresh copies a limited number
 * and the next ones do the rest. The formulas are in kvroute-cost(7);
 * tests/lib/test_bounds.c checks calls against them.
 */
#include "index.h"

#include "cell.h"
#include "cover.h"
#include "entry.h"
#include "node.h"
#include "order.h"
#include "run.h"

enum {
	MERGE_BLOCKS = 1024, /* blocks copied by one merge, at most, */
	MERGE_STAMP = 16 * MERGE_BLOCKS, /* by all merges along one path, */
	MERGE_HOLDERS = 8,   /* and entries compared */
	WALK_SHARE = 16      /* of all steps of a call: 8 for each cell */
};

/* ----------------------------------------------------------------- walk --- */

/*
 * How many blocks of the node match the prompt's next ones. `hashes` are the
 * prompt's from the node's first block on, `rest` of them; the low half of the
 * first is known to be equal.
 */
static uint32_t
node_common(const struct kvr *k, const struct node *n, uint32_t length,
    const uint64_t *hashes, uint32_t rest)
{
	if (length == 0)
		return 0;
	if (rest < length)
		return run_common(k, n, hashes, rest);
	if (hashes[length - 1] == read_once(n->end))
		return length;
	return run_common(k, n, hashes, length - 1);
}

/* The next node of a path. Along a line of heirs no bucket is looked up. */
static uint32_t
walk_child(const struct kvr *k, struct path *path, uint64_t prev,
    uint32_t first)
{
	uint32_t heir = read_once(node_at(k, path->node)->heir);
	const struct node *n = node_at(k, heir);

	if (heir == 0 || read_once(n->first) != first ||
	    read_once(n->prev) != prev)
		return node_child(k, prev, first, &path->steps);
	path->steps++;
	return heir;
}

/* Goes on in the node where a path is; whether to its end. */
static bool
walk_inside(const struct kvr *k, const struct kvr_prompt *p, uint32_t want,
    struct path *path)
{
	const struct node *n = node_at(k, path->node);
	uint32_t length = read_once(n->length);
	uint64_t hash;

	while (path->inside < length && path->depth < want) {
		hash = *prompt_sequence(p, path->depth);
		if (path->inside + 1 == length ? read_once(n->end) != hash
		    : run_get(k, n, path->inside) != (uint32_t)hash)
			break;
		path->inside++;
		path->depth++;
		path->steps++;
	}
	return path->inside == length;
}

/*
 * Finds where the first `want` blocks of the prompt leave the tree. For a lease
 * that grows, the walk begins at its end: the path up to there is its own,
 * whatever else the table may find under the same 32 bits. A child of another
 * node that ends with the same hash is not on the path. A lease cannot end in a
 * node that is longer than its path: then nothing is on it.
 *
 * Even if half of the cells were nodes of the path, each lookup would take
 * three steps on average. A walk that takes much more stops: where chains were
 * made long, it would take thousands for each node. It also ends because each
 * node has a block at least.
 *
 * A resumed prompt does not know its first blocks, so it is walked from the end
 * of a lease only. If the lease is not where it was, nothing is on the path.
 */
void
index_walk(const struct kvr *k, const struct kvr_prompt *p, uint32_t want,
    const struct insert *how, struct path *path)
{
	uint64_t prev = p->root, most = steps_most(k) / WALK_SHARE;
	uint32_t inside;

	memset(path, 0, sizeof(*path));
	if (how->below != 0) {
		inside = read_once(node_at(k, how->below)->length);
		if (inside > how->depth && how->inside == 0)
			return;
		path->node = how->below;
		path->inside = how->inside == 0 ? inside : how->inside;
		path->depth = how->depth;
		path->nodes = 1;
		prev = node_at(k, path->node)->end;
		if (path->inside < inside && !walk_inside(k, p, want, path))
			return;
	}
	if (path->depth < p->first)
		return;
	while (path->depth < want && path->steps < most) {
		uint32_t i = walk_child(k, path, prev,
		    (uint32_t)*prompt_sequence(p, path->depth));
		const struct node *n = node_at(k, i);
		uint32_t length = read_once(n->length), common;

		if (i == 0 || read_once(n->parent) != path->node)
			break;
		__builtin_prefetch(cell_at(k, read_once(n->entries)));
		common = node_common(k, n, length,
		    prompt_sequence(p, path->depth), want - path->depth);
		if (common == 0)
			break;
		path->node = i;
		path->inside = common;
		path->depth += common;
		path->nodes++;
		if (common < length)
			break;
		prev = read_once(n->end);
	}
}

/* Blocks of the prompt from the root to the end of a node. */
uint32_t
index_position(const struct kvr *k, uint32_t node)
{
	uint32_t blocks = 0, limit = k->layout.cells;

	for (; node != 0 && limit > 0; limit--) {
		blocks += node_at(k, node)->length;
		node = node_at(k, node)->parent;
	}
	return blocks;
}

/* -------------------------------------------------------- making nodes --- */

/* Cells for the entries that the slot may have to get on the path. */
uint32_t
index_missing(const struct kvr *k, const struct path *path, uint32_t slot)
{
	uint32_t node = path->node, left = path->nodes, cells = 0, below = 0;

	add_once(k->region->counts.steps, left);
	for (; node != 0 && left > 0 && !region_broken(k); left--) {
		const struct node *n = node_at(k, node);

		if ((below == 0 || n->heir != below) &&
		    entry_find(k, node, slot) == 0)
			cells += pairs_cells_to_add(n->holders);
		below = node;
		node = n->parent;
	}
	return cells;
}

/*
 * At most so many cells are needed by index_insert and by entries on all of the
 * path: for the missing entries, a split and a new leaf.
 */
uint32_t
index_cells(const struct kvr *k, const struct path *path, uint32_t want,
    uint32_t missing)
{
	const struct node *n = node_at(k, path->node);
	uint32_t cells = missing;

	if (path->node != 0 && path->inside < n->length)
		cells += 1 + ENTRY_CELLS_MAX +
		    run_cells_to_split(n, path->inside);
	if (want > path->depth)
		cells += 2 + RUN_LEVELS + cell_tree_size(0, want - path->depth,
		    run_level(want - path->depth));
	return cells;
}

/* Whether the path parts inside a node that cannot be split: see cover.c. */
bool
index_line_full(const struct kvr *k, const struct path *path)
{
	return path->node != 0 &&
	    path->inside < node_at(k, path->node)->length &&
	    cover_line_full(k, path->node);
}

/*
 * Inserts the first `want` blocks of the prompt as whole nodes and returns the
 * last of them. The caller has made room (index_cells) and must put entries on
 * the whole path next: a new leaf has none yet. The end of a resumed prompt
 * without the path to it is damage.
 */
uint32_t
index_insert(struct kvr *k, const struct kvr_prompt *p,
    const struct path *path, uint32_t want, uint32_t slot,
    const struct insert *how)
{
	uint32_t node = path->node;

	if (path->depth < p->first) {
		region_break(k);
		return node;
	}
	if (node != 0 && path->inside < node_at(k, node)->length)
		node = node_split(k, p, node, path->inside, path->depth);
	if (want <= path->depth)
		return node;
	if (how->in_place && (how->below == 0 || how->below == node) &&
	    node_extendable(k, node, slot, how->below != 0 &&
	    how->inside == 0)) {
		node_extend(k, p, node, path->depth, want);
		return node;
	}
	return node_make(k, p, node, path->depth, want);
}

/* ------------------------------------------------------------- merging --- */

/*
 * Whether the upper node can be merged with its only child: that is its heir
 * and short enough, and the entries that end at the upper one, if they are few,
 * are the same as those at the child, and are absorbed.
 */
static bool
merge_fits(struct kvr *k, uint32_t upper, uint32_t lower, uint32_t most)
{
	const struct node *u = node_at(k, upper), *l = node_at(k, lower);
	uint32_t i = u->holders;

	if (u->children != 1 || u->heir != lower || i > MERGE_HOLDERS ||
	    l->length > MERGE_BLOCKS || l->length > most ||
	    k->region->free_cells < run_cells_to_append(u, l->length))
		return false;
	add_once(k->region->counts.steps, i);
	while (i-- > 0) {
		uint32_t slot = pairs_slot(k, u, i);
		uint32_t below = entry_find(k, lower, slot);

		if (below == 0 ||
		    !cover_absorb(k, entry_find(k, upper, slot), below))
			return false;
	}
	return true;
}

/* ------------------------------------------------- entries along a path --- */

/*
 * These all climb from a node to the root, so among entries listed at the same
 * time the child precedes its parent.
 */

/* A path that is being stamped, from its end to the root. */
struct climb {
	uint32_t node, entry; /* stamped last, and the entry that covers it */
	uint32_t left;        /* blocks further up that this covers, too */
	uint32_t line;        /* nodes of its line; 0: not counted */
	uint32_t spare;       /* cells that entries further up may need: */
	                      /* made, or parted from another line's */
	bool whole;           /* trimmed blocks are there again */
};

#define SPARE_UNKNOWN UINT32_MAX

/* Cells for entries on all nodes above. */
static uint32_t
cells_above(const struct kvr *k, uint32_t node)
{
	uint32_t cells = 0;

	while ((node = node_at(k, node)->parent) != 0 && !region_broken(k)) {
		add_once(k->region->counts.steps, 1);
		cells += ENTRY_CELLS_MAX;
	}
	return cells;
}

/* Stamps the entry that covers a node, and lets that below absorb it. */
static void
stamp_cover(struct kvr *k, struct climb *c, uint32_t node, uint32_t slot,
    int64_t now)
{
	uint32_t entry = cover_make(k, node, slot);
	const struct entry *h = entry_at(k, entry);

	entry_stamp(k, entry, c->entry, c->whole, now);
	c->left = h->blocks;
	if (c->node != 0 && c->spare == SPARE_UNKNOWN &&
	    node_at(k, node)->heir != c->node)
		c->spare = cells_above(k, node);
	if (c->node == 0 ||
	    !cover_adopt(k, node, c->node, &c->line, c->spare) ||
	    !cover_absorb(k, entry, c->entry))
		c->entry = entry;
}

static void
stamp_path(struct kvr *k, uint32_t node, uint32_t slot, bool whole, int64_t now)
{
	uint32_t most = MERGE_STAMP, length;
	struct climb c = { 0, 0, 0, 0, SPARE_UNKNOWN, whole };

	while (node != 0 && !region_broken(k)) {
		add_once(k->region->counts.steps, 1);
		if (c.left == 0)
			stamp_cover(k, &c, node, slot, now);
		length = node_at(k, node)->length;
		c.left -= length < c.left ? length : c.left;
		if (c.node != 0 && merge_fits(k, node, c.node, most)) {
			most -= node_at(k, c.node)->length;
			node_merge(k, node, c.node);
			node = node_at(k, c.node)->parent;
			continue;
		}
		if (node_at(k, node)->heir != c.node)
			c.line = 0;
		else if (c.line != 0)
			c.line++;
		c.node = node;
		node = node_at(k, node)->parent;
	}
	order_settle(k, slot);
}

/* Confirms and stamps the path; adds missing entries. */
void
index_stamp(struct kvr *k, uint32_t node, uint32_t slot, int64_t now)
{
	stamp_path(k, node, slot, true, now);
}

void
index_touch(struct kvr *k, uint32_t node, uint32_t slot, int64_t now)
{
	stamp_path(k, node, slot, false, now);
}

/* Pins the path up to, but excluding, `until`; new entries are unconfirmed. */
void
index_pin(struct kvr *k, uint32_t node, uint32_t slot, uint32_t until,
    int64_t now)
{
	while (node != 0 && node != until && !region_broken(k)) {
		uint32_t entry = cover_make(k, node, slot);

		add_once(k->region->counts.steps, 1);
		entry_pin(k, entry, now);
		node = cover_above(k, entry);
	}
}

/* Unpins the path; removes entries that nothing keeps, and their nodes. */
void
index_unpin(struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t below = 0; /* unpinned before, if it is still there */

	while (node != 0 && !region_broken(k)) {
		uint32_t entry = entry_find(k, node, slot);
		uint32_t above = entry != 0 ? cover_above(k, entry)
		    : node_at(k, node)->parent;

		add_once(k->region->counts.steps, 1);
		if (entry != 0 && entry_unpin(k, entry, below)) {
			node_leave(k, entry);
			entry = 0;
		}
		if (entry != 0)
			below = entry;
		node = above;
	}
	order_settle(k, slot);
}
