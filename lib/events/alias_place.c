/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alias_place.c - where in the index the block of an alias is.
 *
 * An alias has the node that got the block. Nodes are split, and merged, and
 * then this may be another's: so it is a hint. The node is searched for the
 * block; failing that, the way up the aliases leads to a block with which a
 * node begins, and that is found in the table of nodes, or to one from which
 * other blocks go on, too, and that is found by its hint. All on the way get a
 * new hint, so that it is walked once.
 *
 *	node       [h0 h1 h2 h3]                 hint of s3: this one
 *	split      [h0 h1] == [h2 h3]            of s1, too, but it is above
 *	s1?        s1 <- s0 <- root: after the root, a node begins with h0
 *
 * A full region evicts entries, and their nodes may go with them. Then the way
 * up leads to a node that ends too early, or to the root in vain; all aliases
 * on it that are behind that end are marked as not held:
 *
 *	node       [h0 h1]                     s2 and s3 were in another one
 *	s3?        s3 <- s2 <- s1 <- s0        nor is s2 held
 *
 * Nothing is stored behind a block that is not held, so a worker holds it again
 * only when it is stored again, which gives its alias a node.
 */
#include "alias_place.h"

#include "cover.h"
#include "entry.h"
#include "node.h"
#include "run.h"

enum { WALK_SHARE = 16 }; /* of all steps of a call, for one block */

static bool
block_is(const struct kvr *k, uint32_t node, uint32_t at, uint64_t sequence)
{
	const struct node *n = node_at(k, node);

	if (at >= n->length)
		return false;
	return at + 1 == n->length ? n->end == sequence
	    : run_get(k, n, at) == (uint32_t)sequence;
}

/*
 * Looks where it is most likely, and then everywhere in the node. The cell may
 * be anything by now: then it has no length; or, where hashes stand in it which
 * look like a node, one that no node has.
 */
static bool
find_in(const struct kvr *k, uint32_t node, uint32_t slot, uint64_t sequence,
    uint64_t *steps, struct place *out)
{
	const struct node *n = node_at(k, node);
	const struct entry *h = entry_at(k, entry_find(k, node, slot));
	uint32_t at = n->length, pieces = at / PIECE;

	if (n->kind != CELL_NODE || at == 0 ||
	    pieces > steps_most(k) / WALK_SHARE)
		return false;
	if (h->kind == CELL_ENTRY && h->trimmed < at)
		at -= h->trimmed;
	out->node = node;
	out->at = at - 1;
	if (block_is(k, node, at - 1, sequence))
		return true;
	*steps += pieces;
	out->at = run_find(k, n, (uint32_t)sequence);
	return block_is(k, node, out->at, sequence);
}

/*
 * Looks for a block whose place is known, on the way up: one with which
 * a node begins, or where the way branches and the hint is right. Blocks behind
 * one that is not held are not held. *way: aliases up to there; then out is
 * where this block is, or would be if that node were longer; node 0: nowhere.
 */
static bool
find_above(const struct kvr *k, uint32_t alias, uint32_t slot,
    uint64_t *steps, struct place *out, uint32_t *way)
{
	uint64_t sequence = alias_at(k, alias)->sequence;
	uint64_t most = steps_most(k) / WALK_SHARE;

	out->node = 0;
	for (*way = 0; *steps < most; (*steps)++) {
		const struct alias *a = alias_at(k, alias), *above;

		alias = read_once(a->parent);
		above = alias_at(k, alias);
		if (alias == 0 || alias > k->layout.aliases)
			break;
		out->at = (*way)++;
		out->node = node_child(k, above->sequence,
		    (uint32_t)a->sequence, steps);
		if (out->node != 0)
			break;
		if (above->parent != 0 && above->node == 0)
			break;
		if (above->children > 1 && find_in(k, above->node, slot,
		    above->sequence, steps, out)) {
			out->at += *way;
			break;
		}
		out->node = 0;
	}
	if (*steps >= most)
		*way = 0; /* it was not walked to its end */
	return out->node != 0 && block_is(k, out->node, out->at, sequence);
}

/* Notes where all on the way are, from this block on; 0: they are not held. */
static void
note_places(struct kvr *k, uint32_t alias, uint32_t way, struct place last)
{
	for (; way > 0 && alias - 1 < k->layout.aliases; way--, last.at--) {
		struct alias *a = alias_at(k, alias);

		write_once(a->node, block_is(k, last.node, last.at,
		    a->sequence) ? last.node : 0);
		alias = read_once(a->parent);
	}
}

bool
alias_place(struct kvr *k, uint32_t alias, uint32_t slot, struct place *out)
{
	struct alias *a = alias_at(k, alias);
	uint64_t steps = 0;
	uint32_t way;
	bool found;

	if (a->node == 0)
		return false;
	found = find_in(k, a->node, slot, a->sequence, &steps, out);
	if (!found) {
		found = find_above(k, alias, slot, &steps, out, &way);
		note_places(k, alias, way, *out);
		steps += way;
	}
	add_once(k->region->counts.steps, 1 + steps);
	return found;
}

/* Does the worker's entry still reach to this block? */
static bool
entry_reaches(const struct kvr *k, uint32_t entry, const struct cover *c,
    const struct place *at)
{
	return entry != 0 && entry_at(k, entry)->trimmed <=
	    c->beyond + node_at(k, at->node)->length - at->at - 1;
}

bool
alias_held(struct kvr *k, uint32_t alias, uint32_t slot, struct place *out)
{
	struct cover c = COVER_ANY;
	uint32_t entry;

	if (!alias_place(k, alias, slot, out))
		return false;
	entry = cover_seek(k, out->node, slot, &c);
	return entry_reaches(k, entry, &c, out) &&
	    (entry_at(k, entry)->flags & ENTRY_UNCONFIRMED) == 0;
}

/* ------------------------------------------------ damage of the table --- */

/* One in use that no other check has met: it is counted at its parent. */
static bool
one_sound(const struct kvr *k, uint32_t i, uint32_t *children)
{
	const struct alias *a = alias_at(k, i);
	uint32_t parent = read_once(a->parent);

	if (a->worker - 1u >= k->layout.names || a->life == 0)
		return false;
	if (alias_dead(k, a))
		return true;
	if (parent == 0)
		return a->copies == 0;
	if (parent > k->layout.aliases ||
	    alias_at(k, parent)->life != a->life)
		return false;
	children[parent]++;
	return true;
}

/* Aliases in buckets and free ones. */
static bool
all_met(const struct kvr *k, uint32_t *children, uint32_t *count)
{
	uint32_t b, i, most = k->region->alias_fresh - 1;

	for (b = 0; b < k->layout.aliases; b++)
		for (i = k->alias_buckets[b]; i != 0; i = alias_at(k, i)->next)
			if (i > most || ++*count > most ||
			    alias_bucket(k, alias_at(k, i)->life,
			    alias_at(k, i)->name) != b ||
			    !one_sound(k, i, children))
				return false;
	for (i = k->region->alias_free; i != 0; i = alias_at(k, i)->next)
		if (i > most || ++*count > most || alias_at(k, i)->life != 0)
			return false;
	return *count == most;
}

/* Is the one that stands for none as it was made? */
static bool
none_is_blank(const struct kvr *k)
{
	return k->layout.aliases == 0 ||
	    struct_known(alias_at(k, 0), sizeof(struct alias), 0);
}

bool
alias_sound(const struct kvr *k, uint32_t *children)
{
	const struct region *r = k->region;
	uint32_t i, count = 0, living = 0, fresh = read_once(r->alias_fresh);
	uint32_t ended = 0;
	uint64_t said = 0;

	if (fresh - 1u > k->layout.aliases ||
	    r->alias_sweep > k->layout.aliases ||
	    !none_is_blank(k) ||
	    !all_met(k, children, &count))
		return false;
	for (i = 1; i < fresh; i++) {
		const struct alias *a = alias_at(k, i);

		ended += alias_dead(k, a);
		if (a->life == 0 || alias_dead(k, a))
			continue;
		if (a->children != children[i] ||
		    a->life > r->alias_life)
			return false;
		living++;
	}
	for (i = 0; i < k->layout.names; i++)
		said += k->streams[i].aliases;
	return said == living && ended == r->alias_dead;
}

/* ----------------------------------------------- damage of the places --- */

/*
 * Is a block at the place of its alias, or before a child's; and does the
 * worker have it? Sets the place of the block before.
 */
static bool
block_held(const struct kvr *k, uint32_t alias, uint64_t *places)
{
	const struct alias *a = alias_at(k, alias);
	uint32_t slot = k->names[(a->worker - 1u) % k->layout.names].slot;
	struct place place = { (uint32_t)(places[alias] >> 32),
		(uint32_t)places[alias] };
	struct cover c = COVER_ANY;
	uint32_t above, way;
	uint64_t steps = 0;

	if (!block_is(k, place.node, place.at, a->sequence) &&
	    !find_in(k, a->node, slot, a->sequence, &steps, &place) &&
	    !find_above(k, alias, slot, &steps, &place, &way))
		return false;
	above = read_once(a->parent);
	if (place.at > 0 && above <= k->layout.aliases)
		places[above] = (uint64_t)place.node << 32 | (place.at - 1);
	return entry_reaches(k, cover_seek(k, place.node, slot, &c), &c,
	    &place);
}

/* Children mostly have higher numbers, and know where their parents are. */
bool
alias_places_sound(const struct kvr *k, uint64_t *places)
{
	uint32_t i = read_once(k->region->alias_fresh);

	if (i > k->layout.aliases + 1)
		return false;
	while (i-- > 1) {
		const struct alias *a = alias_at(k, i);

		if (a->life != 0 && a->parent != 0 &&
		    stream_at(k, a->worker)->life == a->life &&
		    stream_at(k, a->worker)->lacks == 0 &&
		    !block_held(k, i, places))
			return false;
	}
	return true;
}
