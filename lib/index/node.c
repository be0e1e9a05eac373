/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * node.c - nodes: runs of blocks, linked to their parents, and found in a table
 * by the block before them and their first one. index.c is about the tree that
 * they form, and cover.c about the nodes that an entry is for.
 *
 *	made       [h0 .. h6]
 *	split      [h0 .. h3]              the upper is new; the lower keeps
 *	              `== [h4 .. h6]       its number, and is the heir
 *	extended   [h0 .. h3]
 *	              `== [h4 .. h8]
 *	merged     [h0 .. h8]              under the number of the lower
 *
 * A node that nothing holds, and that has no heir, is dropped, and such nodes
 * above it.
 */
#include "node.h"

#include "cell.h"
#include "entry.h"
#include "order.h"
#include "run.h"
#include "tenant.h"

/* ------------------------------------------------------- table of nodes --- */

static void
child_link(struct kvr *k, uint32_t node)
{
	struct node *n = node_at(k, node);
	uint32_t *head;

	node_table_grow(k);
	head = &k->node_buckets[bucket_of_node(k, n->prev, n->first)];
	write_once(n->next, *head);
	write_once(*head, node);
}

static void
child_unlink(struct kvr *k, uint32_t node)
{
	const struct node *n = node_at(k, node);

	bucket_remove(k, &k->node_buckets[bucket_of_node(k, n->prev,
	    n->first)], node);
}

/* Counts a child more or less; beyond CHILDREN_MANY they are not counted. */
static void
children_add(struct kvr *k, uint32_t parent, int more)
{
	struct node *n = node_at(k, parent);

	if (parent != 0 && n->children != CHILDREN_MANY)
		write_once(n->children, (uint16_t)(n->children + more));
}

/* Replaces a node as the heir of its parent, if it is that. */
static void
heir_pass(struct kvr *k, uint32_t parent, uint32_t from, uint32_t to)
{
	struct node *n = node_at(k, parent);

	if (parent != 0 && n->heir == from)
		write_once(n->heir, to);
}

/* -------------------------------------------------------------- making --- */

/* Makes a node of blocks [from, to) of the prompt, below `parent`. */
uint32_t
node_make(struct kvr *k, const struct kvr_prompt *p, uint32_t parent,
    uint32_t from, uint32_t to)
{
	uint32_t free = k->region->free_cells, i = cell_take(k);
	struct node *n = node_at(k, i);

	write_once_zeros(n, sizeof(*n));
	write_once(n->kind, CELL_NODE);
	write_once(n->prev, from > 0 ? *prompt_sequence(p, from - 1) : p->root);
	write_once(n->first, (uint32_t)*prompt_sequence(p, from));
	write_once(n->end, *prompt_sequence(p, to - 1));
	write_once(n->parent, parent);
	run_append(k, n, prompt_sequence(p, from), to - from);
	child_link(k, i);
	children_add(k, parent, 1);
	add_once(k->region->counts.nodes, 1);
	add_once(k->region->counts.blocks, to - from);
	if (parent != 0)
		tenant_take(k, i, parent);
	else
		tenant_take_root(k, i, prompt_tenant(p));
	tenant_charge(k, tenant_of(k, i), free);
	return i;
}

/*
 * Splits a node after its first `at` blocks, which end at the prompt's block
 * `depth`. The lower part keeps the node's number, so leases, entries and
 * children stay right; the upper part is new, and the lower one its heir.
 */
uint32_t
node_split(struct kvr *k, const struct kvr_prompt *p, uint32_t lower,
    uint32_t at, uint32_t depth)
{
	uint32_t free = k->region->free_cells, upper = cell_take(k);
	struct node *u = node_at(k, upper), *l = node_at(k, lower);

	child_unlink(k, lower);
	write_once_zeros(u, sizeof(*u));
	write_once(u->kind, CELL_NODE);
	write_once(u->prev, l->prev);
	write_once(u->first, l->first);
	write_once(u->end, *prompt_sequence(p, depth - 1));
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
	tenant_take(k, upper, lower);
	tenant_charge(k, tenant_of(k, lower), free);
	return upper;
}

/*
 * Whether new blocks may be appended to this leaf: its only holder is the slot,
 * it has no pins but the caller's own, and its end need not be remembered.
 */
bool
node_extendable(const struct kvr *k, uint32_t node, uint32_t slot,
    uint32_t pins)
{
	const struct node *n = node_at(k, node);

	return node != 0 && n->children == 0 && n->holders == 1 &&
	    (n->word & WORD_SLOT) == slot &&
	    (entry_at(k, n->entries)->flags & ENTRY_MARKED) == 0 &&
	    entry_at(k, n->entries)->pins == pins;
}

void
node_extend(struct kvr *k, const struct kvr_prompt *p, uint32_t node,
    uint32_t from, uint32_t to)
{
	struct node *n = node_at(k, node);
	struct entry *h = entry_at(k, n->entries);
	struct slot *s = slot_at(k, h->slot);
	uint32_t blocks = to - from, free = k->region->free_cells;

	entry_whole(k, n->entries);
	write_once(h->anchor, 0); /* it belongs to the old end */
	order_uncount(k, n->entries);
	write_once(h->blocks, h->blocks + blocks);
	order_count(k, n->entries);
	run_append(k, n, prompt_sequence(p, from), blocks);
	write_once(n->end, *prompt_sequence(p, to - 1));
	entry_count_blocks(k, h->slot, blocks);
	add_once(k->region->counts.gained, blocks);
	if (h->pins > 0) {
		add_once(s->active, blocks);
		add_once(s->blocks, blocks);
	}
	add_once(k->region->counts.blocks, blocks);
	add_once(k->region->counts.extensions, 1);
	tenant_charge(k, tenant_of(k, node), free);
}

/*
 * Merges a node at which no entry ends with its only child. The lower keeps its
 * number for the leases that end there: none ends at the upper, or its pins
 * would differ, and entries would end there.
 */
void
node_merge(struct kvr *k, uint32_t upper, uint32_t lower)
{
	struct node *u = node_at(k, upper), *l = node_at(k, lower);
	struct node old = *l;
	uint32_t above = u->length, free = k->region->free_cells;

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
	tenant_charge(k, tenant_of(k, lower), free);
}

/* ------------------------------------------------------------- dropping --- */

/* Frees a node without holders. */
static void
node_drop(struct kvr *k, uint32_t node)
{
	const struct node *n = node_at(k, node);
	uint32_t free = k->region->free_cells, tenant = tenant_of(k, node);

	child_unlink(k, node);
	children_add(k, n->parent, -1);
	heir_pass(k, n->parent, node, 0);
	sub_once(k->region->counts.nodes, 1);
	sub_once(k->region->counts.blocks, n->length);
	cell_give_tree(k, node);
	tenant_charge(k, tenant, free);
}

/*
 * Prefetches the cells that node_leave of this entry will read. An entry
 * stamped a TTL ago is in no CPU cache, and every link there waits for the
 * previous one.
 */
void
node_prefetch(const struct kvr *k, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);

	entry_prefetch(k, h);
	__builtin_prefetch(node_at(k, h->node));
}

/* Removes a node that nothing holds, and such nodes above it. */
void
node_prune(struct kvr *k, uint32_t node)
{
	while (node != 0 && !region_broken(k)) {
		const struct node *n = node_at(k, node);
		uint32_t above = n->parent;

		if (n->holders > 0 || n->heir != 0)
			return;
		add_once(k->region->counts.steps, 1);
		node_drop(k, node);
		node = above;
	}
}

/* Removes an entry, and the nodes that nothing else holds. */
void
node_leave(struct kvr *k, uint32_t entry)
{
	uint32_t node = entry_at(k, entry)->node;

	entry_remove(k, entry);
	node_prune(k, node);
}
