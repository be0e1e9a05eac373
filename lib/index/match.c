/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * match.c - how much of a prompt each worker is believed to have cached.
 *
 * Walks down to where the prompt leaves the tree, then up again: by the
 * invariant of index.c a worker is live at every depth above its deepest, so
 * its overlap is where it is met first. A match reads only the pair of an
 * entry, unless it is trimmed.
 *
 *	[h0 .. h3] w3              3rd: w3 has 4
 *	   `== [h4 .. h6] w2         2nd: w2 has 7
 *	          `== [h7] w1          1st: w1 has 8
 *
 * An entry ends at its node and covers those above it (cover.c). So the holders
 * of the last node that matches, and of each from which the path leaves the
 * line of heirs, are also found down that line.
 *
 * A match for a choice holds the lock. So it visits a limited number of nodes
 * and groups, and as many nodes of the path as a choice can use, from the end
 * of the path on: beyond these a worker counts as holding nothing.
 */
#include "match.h"

#include "entry.h"

enum {
	MATCH_STEPS = 4096,  /* of a match for a choice, */
	MATCH_SHARE = 2      /* and one for so many workers */
};

static uint32_t
tokens_fitting(uint64_t tokens)
{
	return tokens < UINT32_MAX ? (uint32_t)tokens : UINT32_MAX;
}

/* The state of a match on its way from node to node. */
struct matching {
	const struct kvr *k;
	const struct kvr_prompt *p;
	struct found_set *set;
	int64_t now;
	int64_t horizon;     /* of workers with the region's TTL */
	const int64_t *ttl;  /* of each worker, if they differ; else NULL */
	uint32_t node;       /* of the pairs that are read, */
	uint32_t beyond;     /* its blocks below those that match */
	uint64_t most;       /* steps: no sound region takes more */
	struct kvr_overlap unpinned; /* of a worker first met in this node */
};

/* A worker found deeper is pinned here but was not pinned there. */
static void
match_pinned(struct matching *m, uint32_t slot)
{
	const struct found_set *set = m->set;
	struct kvr_overlap *o = &set->rows[set->places[slot] - set->base];

	if (o->active_blocks == 0)
		o->active_blocks = m->unpinned.blocks;
}

/* A trimmed entry covers less. */
static void
match_trimmed(const struct matching *m, uint32_t slot, struct kvr_overlap *o)
{
	const struct kvr *k = m->k;
	uint32_t trimmed =
	    read_once(entry_at(k, entry_read(k, m->node, slot))->trimmed);
	uint32_t lost = trimmed > m->beyond ? trimmed - m->beyond : 0;

	o->blocks -= lost < o->blocks ? lost : o->blocks;
	o->tokens = tokens_fitting(prompt_blocks_tokens(m->p, o->blocks));
}

/*
 * Adds the workers that are live among some pairs; one met before was met
 * deeper. `own_ttl`: whether workers differ in their TTL.
 */
static inline __attribute__((always_inline)) void
match_some(struct matching *m, const uint16_t *words, const int64_t *stamps,
    uint32_t pairs, bool own_ttl)
{
	struct found_set *set = m->set;
	uint32_t count = set->count, *places = set->places, i;
	const uint32_t slots = m->k->layout.slots, room = set->room;
	const uint32_t base = set->base;
	const uint64_t *ids = m->k->loads.id;
	const struct kvr_overlap unpinned = m->unpinned;
	const int64_t horizon = m->horizon;
	struct kvr_overlap *o = &set->rows[count];

	for (i = 0; i < pairs; i++) {
		uint32_t word = read_once(words[i]), slot = word & WORD_SLOT;
		bool pinned = (word & WORD_PINNED) != 0;
		uint64_t id;

		if (slot >= slots)
			continue;
		if (((read_once(stamps[i]) >
			 (own_ttl ? (int64_t)((uint64_t)m->now -
					(uint64_t)read_once(m->ttl[slot]))
				  : horizon)) |
			pinned) == 0)
			continue;
		if (places[slot] >= base) {
			if (pinned)
				match_pinned(m, slot);
			continue;
		}
		id = read_once(ids[slot]);
		if (id == 0 || count == room)
			continue;
		places[slot] = base + count++;
		if (set->stamps != NULL)
			set->stamps[count - 1] = read_once(stamps[i]);
		*o = unpinned;
		o->worker = id;
		if (pinned)
			o->active_blocks = unpinned.blocks;
		if ((word & WORD_TRIMMED) != 0)
			match_trimmed(m, slot, o);
		o++;
	}
	set->count = count;
}

static inline void
match_pairs(struct matching *m, const uint16_t *words, const int64_t *stamps,
    uint32_t pairs)
{
	if (m->ttl == NULL)
		match_some(m, words, stamps, pairs, false);
	else
		match_some(m, words, stamps, pairs, true);
}

/* Rows that were added belong to this node, rows before them to another. */
static inline void
match_ended(const struct matching *m, uint32_t before)
{
	struct found_set *set = m->set;

	if (set->ends == NULL || set->count == before)
		return;
	set->ends[set->n_ends++] = (struct found_end){ before, m->node,
		m->unpinned.blocks, set->n_nodes - 1, m->beyond };
}

const struct found_end *
found_end(const struct found_set *set, uint32_t slot)
{
	uint32_t low = 0, high = set->n_ends, middle, row;

	if (!found_has(set, slot) || high == 0)
		return NULL;
	row = set->places[slot] - set->base;
	while (high - low > 1) {
		middle = low + (high - low) / 2;
		if (set->ends[middle].row <= row)
			low = middle;
		else
			high = middle;
	}
	return &set->ends[low];
}

/* The workers whose entries end at the node. */
static inline __attribute__((always_inline)) void
match_node(struct matching *m, const struct node *n)
{
	uint32_t holders = node_holders(m->k, n), pairs, before = m->set->count;
	struct groups at;
	const struct group *g;

	m->set->steps++;
	if (holders <= 1) {
		match_pairs(m, &n->word, &n->stamp, holders);
	} else {
		at = groups_of(n, holders);
		m->set->steps += holders / PAIRS;
		while ((pairs = groups_next(m->k, &at, &g)) > 0)
			match_pairs(m, g->word, g->stamp, pairs);
	}
	match_ended(m, before);
}

/* And those whose entries end further down the line: they cover it. */
static void
match_line(struct matching *m, uint32_t node)
{
	uint32_t limit = LINE_MAX;

	for (; node != 0 && limit > 0 && m->set->steps < m->most; limit--) {
		const struct node *n = node_at(m->k, node);
		uint32_t heir = read_once(n->heir);

		__builtin_prefetch(node_at(m->k, heir));
		m->node = node;
		m->beyond += read_once(n->length);
		match_node(m, n);
		node = heir;
	}
}

/* Nodes that a match may visit, and full groups. */
static uint64_t
match_most(const struct kvr *k, const struct found_set *set)
{
	/* each is visited once */
	return set->nodes == NULL ? k->layout.cells
	    : MATCH_STEPS + slots_used(k) / MATCH_SHARE;
}

/* Whether the match may go on to this node, which it notes for a choice. */
static bool
match_goes_on(const struct matching *m, uint32_t node)
{
	struct found_set *set = m->set;

	if (set->steps >= m->most)
		return false;
	if (set->nodes == NULL)
		return true;
	if (set->n_nodes == PATH_NODES)
		return false;
	set->nodes[set->n_nodes++] = (struct path_node){ node,
		m->unpinned.blocks };
	return true;
}

/* The way up. The path that the walk down has found may have changed. */
void
match_climb(const struct kvr *k, const struct kvr_prompt *p, int64_t now,
    struct found_set *set)
{
	struct matching m = { k, p, set, now, now - region_ttl(k),
		read_once(k->region->own_ttl) == 0 ? NULL : k->loads.ttl, 0, 0,
		0, { 0 } };
	uint32_t left, node, here, below = 0;

	set->steps = set->path.steps;
	m.most = set->steps + match_most(k, set);
	m.unpinned.blocks = set->path.depth;
	here = set->path.inside;
	node = set->path.node;
	for (left = set->path.nodes; left > 0 && match_goes_on(&m, node);
	     left--) {
		const struct node *n = node_at(k, node);
		uint32_t heir = read_once(n->heir);

		if (read_once(n->holders) > 0 || heir != below)
			m.unpinned.tokens = tokens_fitting(
			    prompt_blocks_tokens(p, m.unpinned.blocks));
		m.node = node;
		m.beyond = read_once(n->length) - here;
		match_node(&m, n);
		if (heir != below)
			match_line(&m, heir);
		/* more than is left: not the path that was walked */
		if (here >= m.unpinned.blocks)
			break;
		m.unpinned.blocks -= here;
		below = node;
		node = read_once(n->parent);
		here = read_once(node_at(k, node)->length);
	}
}

/*
 * Finds the overlap of every worker that has any; see above. May run while a
 * writer changes the index: the result is then worthless, but stays within
 * bounds, and no overlap is longer than the prompt.
 */
void
match_overlaps(const struct kvr *k, const struct kvr_prompt *p, int64_t now,
    struct found_set *set)
{
	static const struct insert as_it_is;

	found_none(k, set);
	index_walk(k, p, p->blocks, &as_it_is, &set->path);
	match_climb(k, p, now, set);
}
