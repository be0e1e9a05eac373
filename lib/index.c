/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * index.c - the radix tree over sequence hashes.
 *
 * A sequence hash stands for the whole prefix up to its block, so equal hashes
 * at block i mean equal prefixes up to i. Nodes are runs of blocks; a child is
 * found through one table by (hash of the block before it, or the scope's
 * root; low half of its first hash). No node knows its children, only how
 * many they are.
 *
 *   prompt A = h0..h6 to w1                     [h0 .. h6] w1
 *
 *   prompt B = h0..h3 g4 g5 to w2: B leaves     [h0 .. h3] w1 w2
 *   A's run inside; the run is split, the          |-- [h4 .. h6] w1
 *   lower part keeps its number                    `-- [g4 g5]    w2
 *
 *   prompt C = A + h7 h8 to w1: A's end is a    [h0 .. h3] w1 w2
 *   leaf, w1 is its only holder, nothing pins      |-- [h4 .. h8] w1
 *   it: extended in place                          `-- [g4 g5]    w2
 *
 *   w2's time is over: its holds go, deepest    [h0 .. h3] w1
 *   first, and nodes that nobody holds             `-- [h4 .. h8] w1
 *
 *   C is refreshed: one child, equal holders    [h0 .. h8] w1
 *   with equal stamps and pins: merged
 *
 * THE INVARIANT on which everything rests. An entry (a worker's hold on a
 * node) is live while it is pinned or its stamp is younger than the time to
 * live. Every operation that stamps stamps the whole path from the root, and
 * every operation that pins pins it. Hence, for each worker,
 *
 *	pins(parent) >= pins(child),  stamp(parent) >= stamp(child)
 *
 * and a worker that is live at some depth is live at every smaller depth. So
 * the overlap of a worker is where its deepest live hold on the prompt's path
 * ends; expiry is a comparison at read time; and whoever leaves in order of
 * stamps leaves children first.
 *
 * COST. A match: the nodes on the path, and the holds on them. A run that
 * matches whole is one comparison, of the 64-bit hash at its end; else the
 * parting is found by bisection. An insertion: the nodes, the new blocks, and
 * for a split the holders of the node that is split.
 */
#include "internal.h"

enum {
	MERGE_BLOCKS = 1024, /* at most so many are copied by one merge */
	MERGE_HOLDERS = 8    /* and so many holders compared */
};

/* ------------------------------------------------------- table of nodes --- */

static uint32_t
child_find(const struct kvr *k, uint64_t prev, uint32_t first)
{
	uint32_t i = k->node_buckets[bucket_of_node(k, prev, first)];
	uint32_t limit = k->layout.cells;

	for (; i != 0 && limit > 0; i = node_at(k, i)->next, limit--) {
		const struct node *n = node_at(k, i);

		if (n->prev == prev && n->first == first)
			return i;
	}
	return 0;
}

static void
child_link(struct kvr *k, uint32_t node)
{
	struct node *n = node_at(k, node);
	uint32_t *head = &k->node_buckets[bucket_of_node(k, n->prev, n->first)];

	n->next = *head;
	*head = node;
}

static void
child_unlink(struct kvr *k, uint32_t node)
{
	const struct node *n = node_at(k, node);
	uint32_t *link = &k->node_buckets[bucket_of_node(k, n->prev, n->first)];
	uint32_t limit = k->layout.cells;

	for (; *link != 0 && limit > 0; limit--) {
		if (*link == node) {
			*link = n->next;
			return;
		}
		link = &node_at(k, *link)->next;
	}
}

/* ---------------------------------------------------------------- match --- */

/*
 * How many blocks of the node are the prompt's next ones. `hashes` are the
 * prompt's from the node's first block on, of which there are `rest`; the low
 * half of the first is known to be equal.
 */
static uint32_t
node_common(const struct kvr *k, const struct node *n, const uint64_t *hashes,
    uint32_t rest)
{
	if (rest < n->length)
		return run_common(k, n, hashes, rest);
	if (hashes[n->length - 1] == n->end)
		return n->length;
	return run_common(k, n, hashes, n->length - 1);
}

/* What one match carries from node to node. */
struct matching {
	struct found_set *set;
	int64_t horizon;
	uint32_t slots;
	uint32_t node, depth; /* where the prompt has got to */
};

static inline bool
pair_live(const struct matching *m, uint32_t word, int64_t stamp)
{
	return ((stamp > m->horizon) | ((word & WORD_PINNED) != 0)) &&
	    (word & WORD_SLOT) < m->slots;
}

/*
 * Holders of the first node: whoever is not here is nowhere. There may be as
 * many as there are workers, so this loop writes each once and reads nothing
 * back. Gives the new count.
 */
static uint32_t
match_first(const struct matching *m, const uint16_t *words,
    const int64_t *stamps, uint32_t pairs, uint32_t count)
{
	struct found *found = m->set->found;
	uint32_t *at = m->set->at, depth = m->depth, node = m->node, i;

	for (i = 0; i < pairs && count < m->slots; i++) {
		uint32_t word = words[i], slot = word & WORD_SLOT;

		if (!pair_live(m, word, stamps[i]))
			continue;
		at[slot] = count;
		found[count].slot = slot;
		found[count].blocks = depth;
		found[count].active = (word & WORD_PINNED) != 0 ? depth : 0;
		found[count].deepest = node;
		count++;
	}
	return count;
}

/* Holders of a later node. */
static void
match_next(const struct matching *m, const uint16_t *words,
    const int64_t *stamps, uint32_t pairs, uint32_t count)
{
	struct found *found = m->set->found;
	uint32_t i, at;

	for (i = 0; i < pairs; i++) {
		uint32_t slot = words[i] & WORD_SLOT;

		if (!pair_live(m, words[i], stamps[i]))
			continue;
		at = m->set->at[slot];
		if (at >= count || found[at].slot != slot)
			continue;
		found[at].blocks = m->depth;
		found[at].deepest = m->node;
		if ((words[i] & WORD_PINNED) != 0)
			found[at].active = m->depth;
	}
}

static uint32_t
match_pairs(const struct matching *m, const uint16_t *words,
    const int64_t *stamps, uint32_t pairs, uint32_t count, bool first)
{
	if (first)
		return match_first(m, words, stamps, pairs, count);
	match_next(m, words, stamps, pairs, count);
	return count;
}

/* Every live holder of the node has the prompt up to m->depth. */
static void
match_node(const struct kvr *k, const struct matching *m, bool first)
{
	const struct node *n = node_at(k, m->node);
	uint32_t left = n->holders, group = n->holds, pairs;
	uint32_t count = m->set->count;

	if (left == 1) {
		count = match_pairs(m, &n->word, &n->stamp, 1, count, first);
		left = 0;
	}
	for (; left > 0; left -= pairs) {
		const struct group *g = &cell_at(k, group)->group;

		group = g->next;
		__builtin_prefetch(cell_at(k, group));
		pairs = (left - 1) % PAIRS + 1;
		count = match_pairs(m, g->word, g->stamp, pairs, count,
		    first);
	}
	m->set->count = count;
}

/*
 * Overlap of every slot that has any. By the invariant the holders of the
 * first node are all there are. Retired slots are found too: callers look.
 */
void
index_match(const struct kvr *k, const struct kvr_prompt *p, int64_t horizon,
    struct found_set *set)
{
	struct matching m = { set, horizon, k->layout.slots, 0, 0 };
	uint64_t prev = p->root;
	uint32_t common;

	set->count = 0;
	while (m.depth < p->blocks) {
		const struct node *n;
		bool first = m.depth == 0;

		m.node = child_find(k, prev, (uint32_t)p->sequence[m.depth]);
		n = node_at(k, m.node);
		if (m.node == 0 || n->length == 0)
			break;
		common = node_common(k, n, p->sequence + m.depth,
		    p->blocks - m.depth);
		if (common == 0)
			break;
		m.depth += common;
		match_node(k, &m, first);
		if (common < n->length)
			break;
		prev = n->end;
	}
}

/*
 * Where the first `want` blocks of the prompt leave the tree. A lease that
 * grows is walked from its end: the way there is its own, whatever else the
 * table may find under the same 32 bits. A child of another node that ends
 * with the same hash is not on the path.
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
	while (path->depth < want) {
		uint32_t i = child_find(k, prev,
		    (uint32_t)p->sequence[path->depth]);
		const struct node *n = node_at(k, i);
		uint32_t common;

		if (i == 0 || n->length == 0 || n->parent != path->node)
			break;
		common = node_common(k, n, p->sequence + path->depth,
		    want - path->depth);
		if (common == 0)
			break;
		path->node = i;
		path->inside = common;
		path->depth += common;
		path->nodes++;
		if (common < n->length)
			break;
		prev = n->end;
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

/* Nodes of the path on which the slot has no hold yet. */
uint32_t
index_missing(const struct kvr *k, const struct path *path, uint32_t slot)
{
	uint32_t node = path->node, left = path->nodes, missing = 0;

	for (; node != 0 && left > 0; left--) {
		missing += hold_find(k, node, slot) == 0;
		node = node_at(k, node)->parent;
	}
	return missing;
}

/*
 * Cells that index_insert and holds on all of the path may need at most: two
 * for each hold that is missing (a group may begin with it), and what a split
 * and a new leaf take.
 */
uint32_t
index_cells(const struct kvr *k, const struct path *path, uint32_t want,
    uint32_t missing)
{
	const struct node *n = node_at(k, path->node);
	uint32_t cells = 2 * missing;

	if (path->node != 0 && path->inside < n->length)
		cells += 4 + n->holders + n->holders / (uint32_t)PAIRS +
		    run_cells_to_split(n, path->inside);
	if (want > path->depth)
		cells += 2 + RUN_LEVELS + run_cells(0, want - path->depth,
		    run_level(want - path->depth));
	return cells;
}

/* A node of blocks [from, to) of the prompt, below `parent`. */
static uint32_t
node_make(struct kvr *k, const struct kvr_prompt *p, uint32_t parent,
    uint32_t from, uint32_t to)
{
	uint32_t i = cell_take(k);
	struct node *n = node_at(k, i);

	memset(n, 0, sizeof(*n));
	n->kind = CELL_NODE;
	n->prev = from > 0 ? p->sequence[from - 1] : p->root;
	n->first = (uint32_t)p->sequence[from];
	n->end = p->sequence[to - 1];
	n->parent = parent;
	run_append(k, n, p->sequence + from, to - from);
	child_link(k, i);
	if (parent != 0)
		node_at(k, parent)->children++;
	k->region->counts.nodes++;
	k->region->counts.blocks += to - from;
	return i;
}

/* All holders of the lower part of a split hold the upper part, alike. */
static void
split_holds(struct kvr *k, uint32_t upper, uint32_t lower)
{
	struct pairs at = pairs_of(node_at(k, lower));

	while (pairs_next(k, &at))
		(void)hold_copy(k, upper,
		    hold_find(k, lower, at.word & WORD_SLOT));
}

/*
 * Splits a node after its first `at` blocks, which end at the prompt's block
 * `depth`. The lower part keeps the node's number, so leases, holds and
 * children stay right; the upper part is new.
 */
static uint32_t
node_split(struct kvr *k, const struct kvr_prompt *p, uint32_t lower,
    uint32_t at, uint32_t depth)
{
	uint32_t upper = cell_take(k);
	struct node *u = node_at(k, upper), *l = node_at(k, lower);

	child_unlink(k, lower);
	memset(u, 0, sizeof(*u));
	u->kind = CELL_NODE;
	u->prev = l->prev;
	u->first = l->first;
	u->end = p->sequence[depth - 1];
	u->parent = l->parent;
	u->children = 1;
	run_split(k, l, at, u);
	l->prev = u->end;
	l->first = run_get(k, l, 0);
	l->parent = upper;
	child_link(k, upper);
	child_link(k, lower);
	split_holds(k, upper, lower);
	k->region->counts.nodes++;
	k->region->counts.splits++;
	return upper;
}

/*
 * May new blocks just be appended to this leaf? Its only holder is the slot,
 * and no more pins are on it than the caller's own.
 */
static bool
node_extendable(const struct kvr *k, uint32_t node, uint32_t slot,
    uint32_t pins)
{
	const struct node *n = node_at(k, node);

	return node != 0 && n->children == 0 && n->holders == 1 &&
	    (n->word & WORD_SLOT) == slot && hold_at(k, n->holds)->pins == pins;
}

static void
node_extend(struct kvr *k, const struct kvr_prompt *p, uint32_t node,
    uint32_t from, uint32_t to)
{
	struct node *n = node_at(k, node);
	const struct hold *h = hold_at(k, n->holds);
	struct slot *s = slot_at(k, h->slot);
	uint32_t blocks = to - from;

	run_append(k, n, p->sequence + from, blocks);
	n->end = p->sequence[to - 1];
	slot_hold_blocks(k, h->slot, blocks);
	if (h->pins > 0) {
		s->active += blocks;
		s->blocks += blocks;
	}
	k->region->counts.blocks += blocks;
	k->region->counts.extensions++;
}

/*
 * Makes the tree hold the first `want` blocks of the prompt as whole nodes,
 * and gives the last of them. The caller has made room (index_cells), and
 * puts holds on the whole path next, before anything else: a new leaf has
 * none yet.
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

/* ---------------------------------------------------- leaving, merging --- */

/* Takes a hold away, and its node if it was the last. */
void
index_drop(struct kvr *k, uint32_t hold)
{
	uint32_t node = hold_at(k, hold)->node;
	struct node *n = node_at(k, node);

	hold_remove(k, hold);
	if (n->holders > 0)
		return;
	child_unlink(k, node);
	if (n->parent != 0)
		node_at(k, n->parent)->children--;
	k->region->counts.nodes--;
	k->region->counts.blocks -= n->length;
	cell_give_tree(k, node);
}

/* Is the upper node held exactly as its only child is? */
static bool
merge_fits(const struct kvr *k, uint32_t upper, uint32_t lower)
{
	const struct node *u = node_at(k, upper), *l = node_at(k, lower);
	struct pairs at;

	if (u->children != 1 || u->holders != l->holders ||
	    l->holders > MERGE_HOLDERS || l->length > MERGE_BLOCKS ||
	    k->region->free_cells < run_cells_to_append(u, l->length))
		return false;
	at = pairs_of(l);
	while (pairs_next(k, &at)) {
		uint32_t slot = at.word & WORD_SLOT;
		uint32_t above = hold_find(k, upper, slot);

		if (above == 0 || !hold_same(k, above,
		    hold_find(k, lower, slot)))
			return false;
	}
	return true;
}

/* The upper node's holds go; their blocks are the lower's from now on. */
static void
merge_holds(struct kvr *k, uint32_t upper)
{
	struct node *u = node_at(k, upper);
	uint32_t blocks = u->length, limit = u->holders;

	for (; u->holders > 0 && limit > 0; limit--) {
		struct pairs at = pairs_of(u);
		uint32_t slot;

		(void)pairs_next(k, &at);
		slot = at.word & WORD_SLOT;
		hold_remove(k, hold_find(k, upper, slot));
		slot_hold_blocks(k, slot, blocks);
	}
}

/*
 * Joins a node with its only child. The lower keeps its number, for the
 * leases that end there: none ends at the upper, or its pins would differ.
 */
static void
node_merge(struct kvr *k, uint32_t upper, uint32_t lower)
{
	struct node *u = node_at(k, upper), *l = node_at(k, lower);
	struct node old = *l;
	uint32_t above;

	merge_holds(k, upper);
	child_unlink(k, upper);
	child_unlink(k, lower);
	above = u->length;
	run_append_run(k, u, &old, 0, old.length);
	l->prev = u->prev;
	l->first = u->first;
	l->parent = u->parent;
	l->run = u->run;
	l->level = u->level;
	l->begin = u->begin;
	l->length = above + old.length;
	child_link(k, lower);
	u->run = old.run; /* the cell of the upper takes the old run away */
	u->level = old.level;
	u->begin = old.begin;
	u->length = old.length;
	cell_give_tree(k, upper);
	k->region->counts.nodes--;
	k->region->counts.merges++;
}

/* --------------------------------------------------- holds along a path --- */

/*
 * All of these climb from a node to the root, so that of holds that are
 * listed at one instant the child stands before its parent.
 */

/* Confirms and stamps the path; makes the holds that are missing. */
void
index_stamp(struct kvr *k, uint32_t node, uint32_t slot, int64_t now)
{
	uint32_t below = 0, limit = k->layout.cells;

	for (; node != 0 && limit > 0; limit--) {
		uint32_t hold = hold_find(k, node, slot);

		if (hold == 0)
			hold = hold_add(k, node, slot);
		hold_stamp(k, hold, now);
		if (below != 0 && merge_fits(k, node, below)) {
			node_merge(k, node, below);
			node = node_at(k, below)->parent;
			continue;
		}
		below = node;
		node = node_at(k, node)->parent;
	}
	order_settle(k, slot);
}

/* Pins the path up to but without `until`; new holds are unconfirmed. */
void
index_pin(struct kvr *k, uint32_t node, uint32_t slot, uint32_t until,
    int64_t now)
{
	int64_t horizon = horizon_at(k, now);
	uint32_t limit = k->layout.cells;

	for (; node != 0 && node != until && limit > 0; limit--) {
		uint32_t hold = hold_find(k, node, slot);

		if (hold == 0)
			hold = hold_add(k, node, slot);
		hold_pin(k, hold, horizon);
		node = node_at(k, node)->parent;
	}
}

/* Unpins the path; holds that nothing keeps go, and nodes with them. */
void
index_unpin(struct kvr *k, uint32_t node, uint32_t slot)
{
	uint32_t limit = k->layout.cells;

	for (; node != 0 && limit > 0; limit--) {
		uint32_t hold = hold_find(k, node, slot);
		uint32_t above = node_at(k, node)->parent;

		if (hold != 0 && hold_unpin(k, hold))
			index_drop(k, hold);
		node = above;
	}
	order_settle(k, slot);
}
