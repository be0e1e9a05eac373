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
#include "order.h"
#include "run.h"

enum {
	MERGE_BLOCKS = 1024, /* blocks copied by one merge, at most, */
	MERGE_STAMP = 16 * MERGE_BLOCKS, /* by all merges along one path, */
	MERGE_HOLDERS = 8    /* and entries compared */
};

/* ------------------------------------------------------- table of nodes --- */

static uint32_t
child_find(const struct kvr *k, uint64_t prev, uint32_t first,
    uint32_t *steps)
{
	uint32_t i = read_once(k->node_buckets[bucket_of_node(k, prev, first)]);
	uint32_t limit = CHAIN_MAX;

	for (; i != 0 && limit > 0; limit--) {
		const struct node *n = node_at(k, i);

		(*steps)++;
		if (read_once(n->prev) == prev && read_once(n->first) == first)
			return i;
		i = read_once(n->next);
	}
	return 0;
}

static void
child_link(struct kvr *k, uint32_t node)
{
	struct node *n = node_at(k, node);
	uint32_t *head = &k->node_buckets[bucket_of_node(k, n->prev, n->first)];

	write_once(n->next, *head);
	write_once(*head, node);
}

static void
child_unlink(struct kvr *k, uint32_t node)
{
	const struct node *n = node_at(k, node);
	uint32_t *link = &k->node_buckets[bucket_of_node(k, n->prev, n->first)];
	uint32_t limit = CHAIN_MAX;

	for (; *link != 0 && limit > 0; limit--) {
		k->region->counts.steps++;
		if (*link == node) {
			write_once(*link, n->next);
			return;
		}
		link = &node_at(k, *link)->next;
	}
}

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
		return child_find(k, prev, first, &path->steps);
	path->steps++;
	return heir;
}

/*
 * Finds where the first `want` blocks of the prompt leave the tree. For a lease
 * that grows, the walk begins at its end: the path up to there is its own,
 * whatever else the table may find under the same 32 bits. A child of another
 * node that ends with the same hash is not on the path.
 */
void
index_walk(const struct kvr *k, const struct kvr_prompt *p, uint32_t want,
    const struct insert *how, struct path *path)
{
	uint64_t prev = p->root;

	memset(path, 0, sizeof(*path));
	if (how->lease_end != 0) {
		path->node = how->lease_end;
		path->inside = node_at(k, path->node)->length;
		path->depth = how->depth;
		path->nodes = 1;
		prev = node_at(k, path->node)->end;
	}
	while (path->depth < want && path->nodes < k->layout.cells) {
		uint32_t i = walk_child(k, path, prev,
		    (uint32_t)p->sequence[path->depth]);
		const struct node *n = node_at(k, i);
		uint32_t length = read_once(n->length), common;

		if (i == 0 || read_once(n->parent) != path->node)
			break;
		__builtin_prefetch(cell_at(k, read_once(n->entries)));
		common = node_common(k, n, length, p->sequence + path->depth,
		    want - path->depth);
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

/* The node that contains a block of the prompt, counted from 1; 0: none. */
uint32_t
index_find(const struct kvr *k, const struct kvr_prompt *p, uint32_t block)
{
	static const struct insert as_it_is;
	struct path path;

	index_walk(k, p, block, &as_it_is, &path);
	return path.depth == block ? path.node : 0;
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

	k->region->counts.steps += left;
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

/* Counts a child more or less; beyond CHILDREN_MANY they are not counted. */
static void
children_add(struct kvr *k, uint32_t parent, int more)
{
	struct node *n = node_at(k, parent);

	if (parent != 0 && n->children != CHILDREN_MANY)
		write_once(n->children, (uint16_t)(n->children + more));
}

/* Whether the path parts inside a node that cannot be split: see cover.c. */
bool
index_line_full(const struct kvr *k, const struct path *path)
{
	return path->node != 0 &&
	    path->inside < node_at(k, path->node)->length &&
	    cover_line_full(k, path->node);
}

/* Makes a node of blocks [from, to) of the prompt, below `parent`. */
static uint32_t
node_make(struct kvr *k, const struct kvr_prompt *p, uint32_t parent,
    uint32_t from, uint32_t to)
{
	uint32_t i = cell_take(k);
	struct node *n = node_at(k, i);

	write_once_zeros(n, sizeof(*n));
	write_once(n->kind, CELL_NODE);
	write_once(n->prev, from > 0 ? p->sequence[from - 1] : p->root);
	write_once(n->first, (uint32_t)p->sequence[from]);
	write_once(n->end, p->sequence[to - 1]);
	write_once(n->parent, parent);
	run_append(k, n, p->sequence + from, to - from);
	child_link(k, i);
	children_add(k, parent, 1);
	add_once(k->region->counts.nodes, 1);
	add_once(k->region->counts.blocks, to - from);
	return i;
}

/* Replaces a node as the heir of its parent, if it is that. */
static void
heir_pass(struct kvr *k, uint32_t parent, uint32_t from, uint32_t to)
{
	struct node *n = node_at(k, parent);

	if (parent != 0 && n->heir == from)
		write_once(n->heir, to);
}

/* Frees a node without holders. */
static void
node_drop(struct kvr *k, uint32_t node)
{
	const struct node *n = node_at(k, node);

	child_unlink(k, node);
	children_add(k, n->parent, -1);
	heir_pass(k, n->parent, node, 0);
	sub_once(k->region->counts.nodes, 1);
	sub_once(k->region->counts.blocks, n->length);
	cell_give_tree(k, node);
}

/*
 * Splits a node after its first `at` blocks, which end at the prompt's block
 * `depth`. The lower part keeps the node's number, so leases, entries and
 * children stay right; the upper part is new, and the lower one its heir.
 */
static uint32_t
node_split(struct kvr *k, const struct kvr_prompt *p, uint32_t lower,
    uint32_t at, uint32_t depth)
{
	uint32_t upper = cell_take(k);
	struct node *u = node_at(k, upper), *l = node_at(k, lower);

	child_unlink(k, lower);
	write_once_zeros(u, sizeof(*u));
	write_once(u->kind, CELL_NODE);
	write_once(u->prev, l->prev);
	write_once(u->first, l->first);
	write_once(u->end, p->sequence[depth - 1]);
	write_once(u->parent, l->parent);
	write_once(u->children, 1);
	write_once(u->heir, lower);
	run_split(k, l, at, u);
	write_once(l->prev, u->end);
	write_once(l->first, run_get(k, l, 0));
	write_once(l->parent, upper);
	child_link(k, upper);
	child_link(k, lower);
	heir_pass(k, u->parent, lower, upper);
	add_once(k->region->counts.nodes, 1);
	add_once(k->region->counts.splits, 1);
	return upper;
}

/*
 * Whether new blocks may be appended to this leaf: its only holder is the slot,
 * and it has no pins but the caller's own.
 */
static bool
node_extendable(const struct kvr *k, uint32_t node, uint32_t slot,
    uint32_t pins)
{
	const struct node *n = node_at(k, node);

	return node != 0 && n->children == 0 && n->holders == 1 &&
	    (n->word & WORD_SLOT) == slot &&
	    entry_at(k, n->entries)->pins == pins;
}

static void
node_extend(struct kvr *k, const struct kvr_prompt *p, uint32_t node,
    uint32_t from, uint32_t to)
{
	struct node *n = node_at(k, node);
	struct entry *h = entry_at(k, n->entries);
	struct slot *s = slot_at(k, h->slot);
	uint32_t blocks = to - from;

	entry_whole(k, n->entries);
	write_once(h->anchor, 0); /* it belongs to the old end */
	write_once(h->blocks, h->blocks + blocks);
	run_append(k, n, p->sequence + from, blocks);
	write_once(n->end, p->sequence[to - 1]);
	entry_count_blocks(k, h->slot, blocks);
	if (h->pins > 0) {
		add_once(s->active, blocks);
		add_once(s->blocks, blocks);
	}
	add_once(k->region->counts.blocks, blocks);
	add_once(k->region->counts.extensions, 1);
}

/*
 * Inserts the first `want` blocks of the prompt as whole nodes and returns the
 * last of them. The caller has made room (index_cells) and must put entries on
 * the whole path next: a new leaf has none yet.
 */
uint32_t
index_insert(struct kvr *k, const struct kvr_prompt *p,
    const struct path *path, uint32_t want, uint32_t slot,
    const struct insert *how)
{
	uint32_t node = path->node;

	if (node != 0 && path->inside < node_at(k, node)->length)
		node = node_split(k, p, node, path->inside, path->depth);
	if (want <= path->depth)
		return node;
	if (how->in_place && (how->lease_end == 0 || how->lease_end == node) &&
	    node_extendable(k, node, slot, how->lease_end != 0)) {
		node_extend(k, p, node, path->depth, want);
		return node;
	}
	return node_make(k, p, node, path->depth, want);
}

/* ---------------------------------------------------- removal, merging --- */

/*
 * Prefetches what index_drop of this entry will read. An entry stamped a TTL
 * ago is in no CPU cache, and every link there waits for the previous one.
 */
void
index_prefetch(const struct kvr *k, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);

	entry_prefetch(k, h);
	__builtin_prefetch(node_at(k, h->node));
}

/* Removes a node that nothing holds, and such nodes above it. */
void
index_prune(struct kvr *k, uint32_t node)
{
	while (node != 0 && !region_broken(k)) {
		const struct node *n = node_at(k, node);
		uint32_t above = n->parent;

		if (n->holders > 0 || n->heir != 0)
			return;
		k->region->counts.steps++;
		node_drop(k, node);
		node = above;
	}
}

/* Removes an entry, and the nodes that nothing else holds. */
void
index_drop(struct kvr *k, uint32_t entry)
{
	uint32_t node = entry_at(k, entry)->node;

	entry_remove(k, entry);
	index_prune(k, node);
}

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
	k->region->counts.steps += i;
	while (i-- > 0) {
		uint32_t slot = pairs_slot(k, u, i);
		uint32_t below = entry_find(k, lower, slot);

		if (below == 0 ||
		    !cover_absorb(k, entry_find(k, upper, slot), below))
			return false;
	}
	return true;
}

/*
 * Merges a node at which no entry ends with its only child. The lower keeps its
 * number for the leases that end there: none ends at the upper, or its pins
 * would differ, and entries would end there.
 */
static void
node_merge(struct kvr *k, uint32_t upper, uint32_t lower)
{
	struct node *u = node_at(k, upper), *l = node_at(k, lower);
	struct node old = *l;
	uint32_t above = u->length;

	child_unlink(k, upper);
	child_unlink(k, lower);
	run_append_run(k, u, &old, 0, old.length);
	write_once(l->prev, u->prev);
	write_once(l->first, u->first);
	write_once(l->parent, u->parent);
	write_once(l->run, u->run);
	write_once(l->level, u->level);
	write_once(l->begin, u->begin);
	write_once(l->length, above + old.length);
	child_link(k, lower);
	heir_pass(k, l->parent, upper, lower);
	/* the cell of the upper now frees the old run */
	write_once(u->run, old.run);
	write_once(u->level, old.level);
	write_once(u->begin, old.begin);
	write_once(u->length, old.length);
	cell_give_tree(k, upper);
	sub_once(k->region->counts.nodes, 1);
	add_once(k->region->counts.merges, 1);
}

/* ------------------------------------------------- entries along a path --- */

/*
 * These all climb from a node to the root, so among entries listed at the same
 * time the child precedes its parent.
 */

/* A path that is being stamped, from its end to the root. */
struct climb {
	uint32_t node, entry; /* stamped last, and what covers it */
	uint32_t left;        /* blocks further up that this covers, too */
	uint32_t line;        /* nodes of its line; 0: not counted */
	uint32_t spare;       /* cells that entries further up may need */
};

/* Cells for entries on all nodes above. */
static uint32_t
cells_above(const struct kvr *k, uint32_t node)
{
	uint32_t cells = 0;

	while ((node = node_at(k, node)->parent) != 0 && !region_broken(k)) {
		k->region->counts.steps++;
		cells += ENTRY_CELLS_MAX;
	}
	return cells;
}

/* Stamps what covers a node, and lets the entry below absorb it. */
static void
stamp_cover(struct kvr *k, struct climb *c, uint32_t node, uint32_t slot,
    int64_t now)
{
	uint32_t entry = cover_make(k, node, slot);
	const struct entry *h = entry_at(k, entry);

	/* where a worker has an entry, it has those above */
	if (c->node == 0 && h->pins == 0 && h->stamp == STAMP_NONE)
		c->spare = cells_above(k, node);
	entry_stamp(k, entry, now);
	c->left = h->blocks;
	if (c->node == 0 ||
	    !cover_adopt(k, node, c->node, &c->line, c->spare) ||
	    !cover_absorb(k, entry, c->entry))
		c->entry = entry;
}

/* Confirms and stamps the path; adds missing entries. */
void
index_stamp(struct kvr *k, uint32_t node, uint32_t slot, int64_t now)
{
	uint32_t most = MERGE_STAMP, length;
	struct climb c = { 0, 0, 0, 0, 0 };

	while (node != 0 && !region_broken(k)) {
		k->region->counts.steps++;
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

/* Pins the path up to, but excluding, `until`; new entries are unconfirmed. */
void
index_pin(struct kvr *k, uint32_t node, uint32_t slot, uint32_t until,
    int64_t now)
{
	while (node != 0 && node != until && !region_broken(k)) {
		uint32_t entry = cover_make(k, node, slot);

		k->region->counts.steps++;
		entry_pin(k, entry, now);
		node = cover_above(k, entry);
	}
}

/* Unpins the path; removes entries that nothing keeps, and their nodes. */
void
index_unpin(struct kvr *k, uint32_t node, uint32_t slot)
{
	while (node != 0 && !region_broken(k)) {
		uint32_t entry = entry_find(k, node, slot);
		uint32_t above = entry != 0 ? cover_above(k, entry)
		    : node_at(k, node)->parent;

		k->region->counts.steps++;
		if (entry != 0 && entry_unpin(k, entry))
			index_drop(k, entry);
		node = above;
	}
	order_settle(k, slot);
}
