/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * retain.c - who leaves, and when; and how room is made for who comes.
 *
 * Nothing here is needed for a correct answer: what is due is not live, and
 * what is not live does not match. This is about memory. Three reasons to go,
 * in the order in which entries are taken:
 *
 *   voided    their worker was removed or reset
 *   expired   their life is over
 *   evicted   the region is full; who was stamped longest ago goes first
 *
 * And two that are a worker's own, because they say what its cache has lost:
 *
 *   outgrown  Its capacity is known. What runs there and what is idle would be
 *             more than fits, so the longest released goes, as in the engine:
 *
 *             idle [ a2 a1 a0 | x | b3 b2 b1 b0 ] + pinned + ahead > capacity
 *                     ^ goes first: tails stand before what they hang on;
 *                                x: an answer, anonymous, takes room too
 *
 *             Of the first hold only as many blocks go as are too many: it is
 *             trimmed, from the end of its run; from a cache that gives up
 *             whole leaves, the longest unused first, all of it goes.
 *   purged    Reports have said, and fenced evidence confirmed, that what was
 *             released up to a moment is gone: report.c.
 *
 * HOW LONG A HOLD LIVES after its stamp depends on what is known of the worker
 * (its mode): the region's TTL if nothing is, else the idle limit, because then
 * something better than time says what is gone.
 *
 * A pinned entry whose turn comes is taken off its list and left; it goes with
 * its last pin, unless it is stamped before. Each step takes one entry off a
 * list, so what one call reclaims was paid for by those that listed it.
 *
 * But no call pays for all. What is void or due goes a few at a time, and who
 * needs room takes one entry, at most, for each cell it needs: each gives at
 * least one. The pinned give none. Should they be the oldest, and many, then
 * one call passes over some of them and makes do with the room there is; the
 * next call goes on from there. Meanwhile leases live on cells that prefixes
 * have left to them.
 */
#include "retain.h"

#include "cell.h"
#include "entry.h"
#include "order.h"
#include "run.h"

enum {
	PASSED_MAX = 1024, /* pinned ones, in looking for room once */
	EVICTIONS_MAX = 1024, /* that one call takes of one worker */
	LEASE_CELLS = 128,  /* that prefixes leave to leases, */
	LEASE_SHARE = 32    /* at most one in so many */
};

/* The next to leave a full region; 0: nothing is there. */
static uint32_t
retain_stamped(struct kvr *k)
{
	if (k->region->dead.head != 0)
		return k->region->dead.head;
	return slot_at(k, order_stamped_slot(k))->by_stamp.head;
}

/* The next to leave, if it is void or due up to `until`; else 0. */
static uint32_t
retain_next(const struct kvr *k, int64_t until)
{
	uint32_t slot;

	if (k->region->dead.head != 0)
		return k->region->dead.head;
	slot = order_due_slot(k);
	if (k->due[slot] > until || k->due[slot] == INT64_MAX)
		return 0;
	return slot_at(k, slot)->by_stamp.head;
}

static void
retain_reclaim_head(struct kvr *k, uint32_t entry, int64_t now)
{
	const struct entry *h = entry_at(k, entry);
	struct counts *c = &k->region->counts;
	uint32_t slot = h->slot;
	bool orphan = slot_at(k, slot)->retired != 0;

	c->steps++;
	c->reclaimed++;
	if (h->pins > 0) {
		order_remove(k, entry);
	} else {
		if (orphan)
			c->orphaned++;
		else if (h->stamp <= horizon_of(k, slot, now))
			c->expired++;
		else
			c->evicted_region++;
		index_drop(k, entry);
	}
	if (!orphan)
		order_settle(k, slot);
}

/* This one goes; false: it is none. */
static bool
retain_reclaim(struct kvr *k, uint32_t entry, int64_t now)
{
	if (entry == 0 || region_broken(k))
		return false;
	if (!order_heads(k, entry)) {
		region_break(k);
		return false;
	}
	retain_reclaim_head(k, entry, now);
	return true;
}

/* Reclaims up to `budget` entries that are void or due. */
void
retain_expire(struct kvr *k, int64_t now, uint32_t budget)
{
	for (; budget > 0 && retain_reclaim(k, retain_next(k, now), now);
	    budget--)
		continue;
	__builtin_prefetch(entry_at(k, retain_stamped(k)));
}

bool
retain_due(const struct kvr *k, int64_t now)
{
	return !region_broken(k) && retain_next(k, now) != 0;
}

/* Reclaims one entry of a retired slot. */
bool
retain_reclaim_orphan(struct kvr *k)
{
	return k->region->dead.head != 0 &&
	    retain_reclaim(k, k->region->dead.head, 0);
}

/* Tries to have so many cells free; who is pinned stays. */
void
retain_make_room(struct kvr *k, int64_t now, uint32_t cells)
{
	const struct region *r = k->region;
	uint32_t passed = 0, before = r->free_cells;

	while (before < cells && passed < PASSED_MAX &&
	    retain_reclaim(k, retain_stamped(k), now)) {
		passed += r->free_cells == before;
		before = r->free_cells;
	}
}

/* ----------------------------------------------- what a cache has lost --- */

/* By what is known of a worker: how long it is believed to hold anything. */
void
retain_decide(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);
	uint8_t mode = s->retain;

	if (mode == KVR_RETAIN_AUTO)
		mode = s->capacity > 0 ? KVR_RETAIN_CAPACITY
		    : s->shown != 0 ? KVR_RETAIN_FEEDBACK : KVR_RETAIN_TTL;
	write_once(s->mode, mode);
	s->ttl = mode == KVR_RETAIN_TTL ? region_ttl(k)
	    : k->region->seal.idle_limit;
	order_settle(k, slot);
}

/* Blocks that a worker is believed to have in its cache beyond its capacity. */
static uint64_t
retain_excess(const struct kvr *k, const struct slot *s)
{
	double blocks = (double)s->capacity / hash_block_tokens(&k->rule);
	uint64_t used = s->held + s->anonymous + s->output + s->ahead;

	if (s->mode != KVR_RETAIN_CAPACITY || (double)used <= blocks)
		return 0;
	return used - (uint64_t)blocks;
}

/* Takes so many blocks of an entry, the last ones, or all of it. */
static void
retain_shrink(struct kvr *k, uint32_t entry, uint64_t blocks)
{
	const struct entry *h = entry_at(k, entry);
	uint32_t has = h->node != 0 ? entry_blocks(k, h) : h->trimmed;

	if (blocks < has) {
		entry_trim(k, entry, (uint32_t)blocks);
		return;
	}
	k->region->counts.reclaimed++;
	k->region->counts.evicted_capacity++;
	index_drop(k, entry);
}

/* Was this released up to where a purge goes? */
static bool
retain_purged(const struct kvr *k, const struct slot *s)
{
	return s->purge > 0 && s->by_release.head != 0 &&
	    entry_at(k, s->by_release.head)->released < s->purge;
}

/* What a worker's cache has lost goes; what is too much for one call later. */
void
retain_evict_lost(struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);
	uint64_t excess;
	bool whole;
	uint32_t i;

	for (i = 0; i < EVICTIONS_MAX && !region_broken(k); i++) {
		whole = s->eviction == KVR_EVICT_LEAF || retain_purged(k, s);
		excess = retain_excess(k, s);
		if (s->by_release.head == 0 ||
		    (excess == 0 && !retain_purged(k, s)))
			break;
		k->region->counts.steps++;
		/* nobody's cache has what has been idle longest */
		index_prefetch(
		    k, entry_at(k, s->by_release.head)->release_next);
		retain_shrink(k, s->by_release.head,
		    whole ? UINT64_MAX : excess);
	}
	if (i > 0)
		order_settle(k, slot);
}

/* A prompt has been observed; the worker held so many blocks before. */
void
retain_used(struct kvr *k, uint32_t slot, uint64_t held)
{
	struct slot *s = slot_at(k, slot);
	double fresh = s->held > held ? (double)(s->held - held) *
	    hash_block_tokens(&k->rule) : 0;

	/* more: a damaged region */
	write_once(
	    s->volume, s->volume + (fresh < 0x1p63 ? (uint64_t)fresh : 0));
	retain_evict_lost(k, slot);
}

/* ------------------------------------------------------- making room --- */

/* A path to be inserted for a slot, as far as there is room. */
struct fitting {
	struct kvr *k;
	const struct kvr_prompt *p;
	const struct insert *how;
	uint32_t slot;
	struct path path;
	uint32_t missing; /* cells of entries on it */
};

/*
 * Cells that prefixes leave to leases: a request whose prefix finds no room
 * still counts as load.
 */
uint32_t
retain_spare(const struct kvr *k)
{
	uint32_t share = k->layout.cells / LEASE_SHARE;

	return share < LEASE_CELLS ? share : LEASE_CELLS;
}

static uint32_t
fit_cells(const struct fitting *f, uint32_t want)
{
	uint32_t cells = index_cells(f->k, &f->path, want, f->missing);

	return cells == 0 ? 0 : cells + retain_spare(f->k);
}

/* Walks, and says whether the first `want` blocks have room. */
static bool
fit_walk(struct fitting *f, uint32_t want)
{
	index_walk(f->k, f->p, want, f->how, &f->path);
	f->k->region->counts.steps += f->path.steps;
	/* at most; enough if cells abound */
	f->missing = f->path.nodes * ENTRY_CELLS_MAX;
	if (fit_cells(f, want) <= f->k->region->free_cells)
		return true;
	f->missing = index_missing(f->k, &f->path, f->slot);
	return fit_cells(f, want) <= f->k->region->free_cells;
}

/* The most blocks below `want`, for which there is no room, that have some. */
static uint32_t
fit_less(const struct fitting *f, uint32_t want)
{
	const struct path *path = &f->path;
	uint32_t low = path->depth, high = want - 1;

	if (low >= want || fit_cells(f, low) > f->k->region->free_cells) {
		/* not even a split or the entries: stop before this node */
		if (path->inside < node_at(f->k, path->node)->length)
			return path->depth - path->inside;
		return 0;
	}
	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;

		if (fit_cells(f, middle) <= f->k->region->free_cells)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/*
 * Making room may take nodes of the very path. So what is lacking is asked for
 * first, and only if the path has become shorter as much as the whole prompt
 * could need; then less of it is recorded.
 */
static uint32_t
retain_fit(struct fitting *f, int64_t now)
{
	uint32_t want = f->how->want, cells;

	if (want == 0 || fit_walk(f, want))
		return want;
	cells = fit_cells(f, want);
	retain_make_room(f->k, now, cells);
	if (fit_walk(f, want))
		return want;
	cells += 2 + RUN_LEVELS + cell_tree_size(0, want, run_level(want));
	retain_make_room(f->k, now, cells);
	while (want > 0 && !region_broken(f->k) && !fit_walk(f, want))
		want = fit_less(f, want);
	return want;
}

/*
 * index_insert with room made for it: records up to `want` blocks, says how
 * many, and gives the node where they end (0: no more than there was).
 */
uint32_t
retain_insert(struct kvr *k, const struct kvr_prompt *p, uint32_t slot,
    const struct insert *how, int64_t now, uint32_t *recorded)
{
	struct fitting f;
	uint32_t want;

	memset(&f, 0, sizeof(f));
	cell_prefetch(k);
	index_prefetch(k, retain_stamped(k));
	__builtin_prefetch(entry_at(k, slot_at(k, slot)->by_release.head));
	f.k = k;
	f.p = p;
	f.how = how;
	f.slot = slot;
	want = retain_fit(&f, now);
	if (slot_at(k, slot)->mode == KVR_RETAIN_CAPACITY)
		index_prefetch(k, slot_at(k, slot)->by_release.head);
	*recorded = want;
	if (want < p->blocks)
		k->region->counts.truncated++;
	return want > how->depth ? index_insert(k, p, &f.path, want, slot, how)
	    : 0;
}
