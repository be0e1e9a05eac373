/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hold.c - blocks that a worker holds by the events of its engine.
 *
 * Where events name the blocks that are stored and removed, and nothing was
 * lost since the cache was known to be empty, the worker holds those and no
 * others: absence is evidence. The entries live until their blocks are removed,
 * and a request adds none, but while it is in flight.
 *
 *   stored 77ab behind 04d2   s1 is known by the alias of 04d2, the tokens of
 *                             77ab give l2, and s1 with l2 gives s2: the path
 *                             grows by a block, and is stamped to the root
 *
 *   removed 77ab              the alias has the place of the block: the entry
 *                             that covers it there is trimmed from it on
 *
 *	aliases    9c1f <-- 04d2 <-- 77ab     the engine's tree
 *	                      `----- e0e0
 *	index      [h0 h1] w1                 the index's: both have the same
 *	              |== [h2] w1             blocks, cut at other places
 *	              `-- [g2] w1
 *
 * COPIES. An engine may have a block several times and in two tiers, with an
 * event for each that is stored or removed: a block is gone with its last copy.
 * Or its events name the tiers in which a block is, as often as it likes. A
 * stream that does both has lost count.
 *
 * PARTS. An engine's block may be several of the index. The last one has the
 * engine's name; those before it are shared by all that begin like it, so they
 * have a name of their own, and as many copies as such blocks are there.
 *
 * HOLES. Engines evict the last blocks of a prefix first. If one is removed
 * before those behind it, its alias stays, without copies, until they are gone,
 * and so does its part of the path: a node has no list of its children. Within
 * a batch the order of removals is of no matter. Nothing new is held behind it,
 * but copies of blocks that are known there count.
 *
 * Removing a block gives its place to the one before it: alias_place.c.
 *
 * NO ROOM. A full region evicts the entries used longest ago, of this worker
 * too. The aliases stay: blocks behind one that is not held are orphans, and a
 * block is held again when all blocks up to it are stored again. Blocks for
 * whose path or aliases there is no room are orphans, too. So a worker holds
 * less than its engine has, and never more.
 *
 * LOSING TRACK. A batch can take more steps than a call has, and a removal can
 * need a cell when none is left: then the worker is degraded, as if batches had
 * been lost.
 */
#include "hold.h"

#include "alias_place.h"
#include "cell.h"
#include "cover.h"
#include "entry.h"
#include "event_hash.h"
#include "fit.h"
#include "lease.h"
#include "mix.h"
#include "node.h"
#include "order.h"
#include "retain.h"
#include "run.h"
#include "window.h"

enum {
	ROOM = 512,        /* cells at hand before a path grows, beside its */
	                   /* run's, */
	ROOM_TRIM = 2 * ENTRY_CELLS_MAX, /* and before one is trimmed */
	DROPPED_MAX = 256, /* entries, by one call */
	BATCH_SHARE = 4     /* of all steps of a call: the rest is for what */
	                    /* the last event takes */
};

/* Of aliases to which no engine gives a name. */
#define ROOT_NAME UINT64_C(0x7074a8b6c1d5e39f)
#define PART_NAME UINT64_C(0x5b1e6f0d92c83a47)

bool
hold_nothing(struct kvr *k, uint32_t slot)
{
	if (event_tracks(k, slot)) /* until it is taken, nothing is known */
		retain_degrade(k, slot);
	return retain_drop(k, slot, DROPPED_MAX);
}

/* ------------------------------------------------------------- storing --- */

/* What goes on with one event that stores. */
struct storing {
	struct kvr *k;
	const struct event_batch *b;
	const struct kvr_event *e;
	uint32_t slot, each; /* blocks of the index in the engine's */
	uint32_t tokens;     /* in the engine's, by the stream */
	int64_t now;
	struct alias like;   /* of the next alias; its parent is the last */
	uint32_t above;      /* alias of the block before, or of the root */
	uint64_t *sequence;  /* [1 + blocks]: of the block before, and theirs */
	uint32_t blocks;
	struct window_run run; /* of events, that it belongs to */
};

static struct stream *
stream_of(const struct kvr *k, uint32_t slot)
{
	return stream_at(k, slot_at(k, slot)->name);
}

static void
count_orphans(struct kvr *k, uint32_t slot, uint64_t blocks)
{
	add_once(stream_of(k, slot)->orphans, blocks);
}

/*
 * The blocks of the index that are the engine's block but for its last one,
 * which has its name, count the engine's blocks of which they are a part. As
 * with copies, a number that is too large stays.
 */
static void
parts_count(struct kvr *k, uint32_t alias, uint32_t each, int more)
{
	struct alias *a = alias_at(k, alias);

	for (; each > 1 && a->parent != 0; each--) {
		a = alias_at(k, a->parent);
		if (a->parent == 0)
			break; /* a root */
		if (a->copies != UINT16_MAX && (more > 0 || a->copies > 0))
			write_once(a->copies, (uint16_t)(a->copies + more));
	}
}

/* One more copy of a block with an alias. FULL: one that may be counted. */
static void
copy_more(const struct storing *s, uint32_t alias)
{
	struct alias *a = alias_at(s->k, alias);
	uint16_t copies = a->copies;

	if (copies == 0)
		parts_count(s->k, alias, s->each, 1);
	if ((s->b->head.flags & KVR_BATCH_FULL) != 0)
		copies |= (uint16_t)(1u << s->e->tier);
	else if (copies < UINT16_MAX)
		copies++;
	write_once(a->copies, copies);
}

static bool
too_long(const struct kvr *k)
{
	return k->region->counts.steps > steps_most(k) / BATCH_SHARE;
}

/* It has no tokens: another copy of a known block. */
static void
store_copies(struct storing *s)
{
	uint64_t i;
	uint32_t a;

	for (i = 0; i < s->e->hashes && !too_long(s->k); i++) {
		add_once(s->k->region->counts.steps, 1);
		a = alias_find(s->k, s->like.life,
		    s->b->hashes[s->e->hashes_at + i]);
		if (a == 0 || alias_at(s->k, a)->parent == 0)
			count_orphans(s->k, s->slot, 1);
		else
			copy_more(s, a);
	}
}

/* The alias of the scope that the event names. */
static uint32_t
root_alias(struct storing *s)
{
	struct alias like = s->like;
	struct kvr_scope scope = { 0 };
	uint32_t a;

	/* event_hash has found it good */
	(void)hash_scope_get(&s->k->rule, &s->e->scope, &scope);
	like.parent = like.node = 0;
	like.sequence = hash_root(&s->k->rule, &scope);
	like.name = mix(like.sequence ^ ROOT_NAME);
	a = alias_find(s->k, like.life, like.name);
	return a != 0 ? a : alias_add(s->k, &like);
}

/* The alias before the first block; false: unknown, or no room for a root. */
static bool
store_behind(struct storing *s)
{
	const bool named = (s->e->flags & KVR_EVENT_PARENT) != 0;
	struct alias *l = &s->like;

	l->parent = named ? alias_find(s->k, l->life, s->e->parent)
	    : root_alias(s);
	s->above = l->parent;
	return l->parent != 0 &&
	    !(named && alias_at(s->k, l->parent)->copies == 0);
}

static void
store_hashes(struct storing *s, const uint64_t *local)
{
	const struct hash_rule *rule = &s->k->rule;
	const struct alias *above = alias_at(s->k, s->above);
	struct hash_chain chain;
	struct kvr_scope scope = { 0 };

	s->sequence[0] = above->sequence;
	(void)hash_scope_get(rule, &s->e->scope, &scope);
	if (above->parent != 0) {
		hash_resume(rule, &scope, s->sequence[0], &chain);
	} else {
		(void)hash_start(rule, &scope, &chain);
	}
	hash_chain_on(rule, &chain, local, s->blocks, s->sequence + 1);
}

/*
 * Does the worker hold the first block whose name is not known? Then the engine
 * has two names for one block of the index, as with images that stand in the
 * same tokens. Removing one would end the other.
 */
static bool
has_other_name(const struct storing *s, const struct kvr_prompt *p,
    const struct insert *how)
{
	const struct kvr *k = s->k;
	struct cover c = COVER_ANY;
	struct path path;
	uint32_t want = how->depth + s->each, entry;
	uint64_t i;

	for (i = 0; want <= how->depth + s->blocks; want += s->each, i++)
		if (alias_find(k, s->like.life,
		    s->b->hashes[s->e->hashes_at + i]) == 0)
			break;
	if (want > how->depth + s->blocks)
		return false;
	index_walk(k, p, want, how, &path);
	add_once(k->region->counts.steps, path.steps);
	if (path.depth < want)
		return false;
	entry = cover_seek(k, path.node, s->slot, &c);
	return entry != 0 &&
	    (entry_at(k, entry)->flags & ENTRY_UNCONFIRMED) == 0 &&
	    entry_at(k, entry)->trimmed <= c.beyond +
	    node_at(k, path.node)->length - path.inside;
}

/*
 * Makes the path longer by the blocks. Returns the node where they end. 0:
 * there is no room for all of them, or they have another name, or the block
 * before them is not held. Room is made first, as that may evict the
 * path's beginning.
 */
static uint32_t
store_path(struct storing *s)
{
	struct kvr *k = s->k;
	struct insert how = { .in_place = true, .keep = true };
	struct kvr_prompt p = { .root = s->sequence[0] };
	struct place place = { 0, 0 };
	uint32_t recorded, node;

	retain_make_room(k, s->now, ROOM + fit_spare(k) + cell_tree_size(0,
	    s->blocks, run_level(s->blocks)));
	if (alias_at(k, s->above)->parent != 0) {
		if (!alias_held(k, s->above, s->slot, &place))
			return 0;
		how.below = place.node;
		how.inside = place.at + 1;
		how.depth = index_position(k, place.node) -
		    (node_at(k, place.node)->length - how.inside);
		if (how.depth < how.inside || how.depth > RECORD_MAX)
			return 0; /* it is damaged */
	}
	p.sequence = how.depth > 0 ? s->sequence : s->sequence + 1;
	p.first = how.depth;
	p.base = how.depth - (how.depth > 0);
	p.blocks = how.depth + s->blocks;
	how.want = lease_blocks(k, &p);
	if (how.want < p.blocks || has_other_name(s, &p, &how))
		return 0;
	window_begin(k, s->slot, &how, &s->run);
	node = fit_insert(k, &p, s->slot, &how, s->now, &recorded);
	if (node != 0) /* its part that is there has no entry yet */
		window_store(k, node, s->slot, &s->run, s->now);
	return node;
}

/* A block that was not held has been stored again. */
static void
place_again(const struct storing *s, uint32_t alias)
{
	if (alias_at(s->k, alias)->node == 0)
		write_once(alias_at(s->k, alias)->node, s->like.node);
}

/* false: there are no more aliases, or a name is of another block. */
static bool
store_aliases(struct storing *s)
{
	struct alias *l = &s->like;
	uint32_t i, a;
	bool last;

	for (i = 0; i < s->blocks; i++) {
		last = i % s->each + 1 == s->each;
		l->sequence = s->sequence[1 + i];
		l->name = last ? s->b->hashes[s->e->hashes_at + i / s->each]
		    : mix(l->sequence ^ PART_NAME);
		a = alias_find(s->k, l->life, l->name);
		if (a == 0)
			a = alias_add(s->k, l);
		if (a == 0 || alias_at(s->k, a)->sequence != l->sequence)
			return false;
		place_again(s, a);
		if (last)
			copy_more(s, a);
		l->parent = a;
	}
	return true;
}

/* How many of its blocks have no alias. Sets *last to that of its last one. */
static uint64_t
count_unknown(const struct storing *s, uint32_t *last)
{
	uint64_t i, unknown = 0;

	for (*last = 0, i = 0; i < s->e->hashes && !too_long(s->k); i++) {
		*last = alias_find(s->k, s->like.life,
		    s->b->hashes[s->e->hashes_at + i]);
		unknown += *last == 0;
		add_once(s->k->region->counts.steps, 1);
	}
	return unknown;
}

/*
 * Does the worker hold all of them, or is there no room for new ones? Blocks
 * that a full region has evicted come back under the names that they have.
 */
static bool
has_or_lacks_room(const struct storing *s)
{
	struct place place;
	uint32_t last;
	uint64_t unknown = count_unknown(s, &last);

	if (unknown > 0)
		return !alias_at_hand(s->k, unknown * s->each +
		    ((s->e->flags & KVR_EVENT_PARENT) == 0)); /* a root */
	return stream_of(s->k, s->slot)->lacks == 0 ||
	    alias_held(s->k, last, s->slot, &place);
}

/* Nothing new is on record. */
static void
store_nothing(struct storing *s)
{
	const struct alias *l = alias_at(s->k, s->like.parent);

	if (l->parent == 0 && l->children == 0)
		alias_drop(s->k, s->like.parent);
	s->like.node = 0;
	store_copies(s);
}

/* Can no prompt match it, as none has had its scope? */
static void
note_scope(const struct storing *s)
{
	struct kvr_scope scope = { 0 };

	if ((s->e->flags & KVR_EVENT_PARENT) != 0)
		return;
	(void)hash_scope_get(&s->k->rule, &s->e->scope, &scope);
	if (!scope_seen(s->k, hash_root(&s->k->rule, &scope)))
		add_once(stream_of(s->k, s->slot)->unseen, s->e->hashes);
}

static void
store_event(struct storing *s, const uint64_t *local)
{
	note_scope(s);
	s->like.copies = 0;
	s->like.parent = 0;
	if (local == NULL || has_or_lacks_room(s)) {
		store_nothing(s);
		return;
	}
	if (!store_behind(s)) { /* known blocks have a copy more */
		store_copies(s);
		return;
	}
	store_hashes(s, local);
	s->like.node = s->blocks > 0 ? store_path(s) : 0;
	if (s->blocks > 0 && s->like.node == 0)
		store_nothing(s);
	else if (!store_aliases(s))
		retain_degrade(s->k, s->slot);
}

/* ------------------------------------------------------------ removing --- */

/* The worker has nothing from this block on, if it held it. */
static void
trim_from(struct kvr *k, uint32_t slot, const struct place *place)
{
	struct cover c = COVER_ANY;
	uint32_t entry = cover_seek(k, place->node, slot, &c), gone;
	const struct entry *h = entry_at(k, entry);

	if (entry == 0 || (h->flags & ENTRY_UNCONFIRMED) != 0)
		return;
	gone = c.beyond + node_at(k, place->node)->length;
	if (gone - place->at <= h->trimmed)
		return;
	if (gone < h->blocks && !cover_part_above(k, slot, place->node,
	    h->blocks - gone)) {
		retain_degrade(k, slot);
		return;
	}
	gone -= place->at;
	if (h->pins > 0) {
		entry_set_trimmed(k, entry, gone < h->blocks ? gone
		    : h->blocks);
	} else if (gone >= h->blocks) {
		node_leave(k, entry);
	} else {
		entry_trim(k, entry, gone - h->trimmed);
		cover_rise(k, entry);
	}
}

/*
 * The last copy of a block is gone, and nothing is behind it. So may be those
 * before it that waited for this. An entry that covers a node may not cover the
 * one above, so each node is trimmed by itself.
 */
static void
leave_block(struct kvr *k, uint32_t slot, uint32_t alias)
{
	struct place place, last = { 0, 0 };

	while (!too_long(k) && !region_broken(k) && event_tracks(k, slot)) {
		uint32_t parent = alias_at(k, alias)->parent;
		struct alias *p = alias_at(k, parent);

		if (parent != 0 && alias_place(k, alias, slot, &place)) {
			if (last.node != 0 && last.node != place.node)
				trim_from(k, slot, &last);
			last = place;
			write_once(p->node, place.at > 0 ? place.node
			    : node_at(k, place.node)->parent);
		}
		add_once(k->region->counts.steps, 1);
		alias_drop(k, alias);
		if (parent == 0 || p->copies > 0 || p->children > 0)
			break;
		alias = parent;
	}
	if (last.node != 0)
		trim_from(k, slot, &last);
}

static void
copy_less(const struct storing *s, uint32_t alias)
{
	struct alias *a = alias_at(s->k, alias);
	uint16_t copies = a->copies;

	if (copies == 0)
		return;
	if ((s->b->head.flags & KVR_BATCH_FULL) != 0)
		copies &= (uint16_t)~(1u << s->e->tier);
	else if (copies < UINT16_MAX)
		copies--;
	write_once(a->copies, copies);
	if (copies > 0)
		return;
	parts_count(s->k, alias, s->each, -1);
	if (a->children == 0)
		leave_block(s->k, s->slot, alias);
}

static void
take_away(const struct storing *s)
{
	const uint64_t *names = &s->b->hashes[s->e->hashes_at];
	uint64_t i;
	uint32_t a;

	for (i = s->e->hashes; i-- > 0 && !region_broken(s->k) &&
	     !too_long(s->k);) {
		alias_prefetch(s->k, s->like.life, &names[i], i + 1, -1);
		add_once(s->k->region->counts.steps, 1);
		if (s->k->region->free_cells < ROOM_TRIM)
			retain_make_room(s->k, s->now, ROOM_TRIM);
		a = alias_find(s->k, s->like.life, names[i]);
		if (a != 0)
			copy_less(s, a);
	}
}

/* ------------------------------------------------------------ a batch --- */

static void
apply_event(struct storing *s, const uint64_t *local)
{
	if (s->e->tier >= TIERS || s->e->hashes == 0)
		return;
	if (s->e->kind == KVR_EVENT_REMOVED)
		take_away(s);
	else if (s->e->kind != KVR_EVENT_STORED)
		return;
	else if (s->e->block_tokens == 0 || s->e->block_tokens == s->tokens)
		store_event(s, local);
	else
		count_orphans(s->k, s->slot, s->e->hashes);
}

/*
 * The blocks are hashed, are whole ones of the index, and are counted as
 * before. Not hashed: the worker's retention was set meanwhile.
 */
static bool
is_understood(struct kvr *k, uint32_t slot, const struct event_batch *b,
    uint32_t tokens)
{
	if (b->local == NULL || !event_same_copies(k, slot, b))
		return false;
	return tokens == 0 || event_each(k, tokens) > 0;
}

void
hold_apply(struct kvr *k, uint32_t slot, const struct event_batch *b,
    int64_t now)
{
	uint32_t tokens = stream_of(k, slot)->block_tokens;
	struct storing s = { .k = k, .b = b, .slot = slot, .now = now,
		.sequence = b->sequence, .each = event_each(k, tokens),
		.tokens = tokens };
	size_t i, first = event_first_valid(b);
	uint64_t at = 0, blocks;
	struct kvr_event e;

	s.e = &e;
	s.like.worker = (uint16_t)slot_at(k, slot)->name;
	s.run.goes_on = s.run.many = b->goes_on;
	if (event_tracks(k, slot) && b->n > first &&
	    !is_understood(k, slot, b, tokens))
		retain_degrade(k, slot);
	for (i = 0; i < b->n && event_tracks(k, slot) && !region_broken(k);
	     i++, at += blocks) {
		/* else the caller changes it meanwhile: GCOVR_EXCL_BR_START */
		if (event_get(b, i, &e) != KVR_OK)
			break;
		blocks = event_blocks_given(k, &e);
		if (blocks > b->n_sequence || blocks > b->n_local - at)
			break;
		/* GCOVR_EXCL_BR_STOP */
		if (i < first)
			continue;
		s.like.life = stream_of(k, slot)->life;
		s.blocks = (uint32_t)blocks;
		window_count(&s.run, e.hashes, tokens, event_goes_on(b, i));
		apply_event(&s, blocks > 0 ? b->local + at : NULL);
		if (too_long(k) && !region_broken(k))
			retain_degrade(k, slot);
	}
	order_settle(k, slot);
}
