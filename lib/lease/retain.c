/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * retain.c - which entries are removed, and when; and room for new ones.
 *
 * None of this is needed for correct results: an entry that is due is not live,
 * and only live entries match. It is about memory. Entries are removed for
 * three reasons, in this order:
 *
 *   orphaned  their worker was removed or reset
 *   expired   their TTL is over
 *   evicted   the region is full; the one stamped longest ago goes first, of
 *             the tenant with most for its share, if tenants share it:
 *             tenant.c
 *
 * And for two that concern one worker, because its cache has lost something:
 *
 *   capacity  Its capacity is known, told or learnt: trust.c. What runs there
 *             and what is idle would exceed it, so the longest released goes
 *             first, as in the engine:
 *
 *             idle [ a2 a1 a0 | x | b3 b2 b1 b0 ] + pinned + ahead > capacity
 *                     ^ goes first: a child precedes its parent;
 *                                x: output, anonymous, takes room too
 *
 *             The first entry is trimmed by the excess, from its end. If the
 *             cache evicts whole leaves, least recently used first, all of the
 *             node goes at which the entry ends. One that a request has pinned,
 *             and has not used yet, is passed over.
 *   outlived  Since it was released, events have stored as much as the cache
 *             can hold: event.c.
 *
 * THE TTL OF AN ENTRY depends on what is known of its worker (the mode): the
 * region's TTL if nothing is; none if events name its blocks (hold.c); else the
 * idle limit, because something better than time tells what is lost.
 *
 * A pinned entry that reaches the head of its list is taken off; it goes with
 * its last pin, unless it is stamped before. Each step takes one entry off a
 * list, so the cost of reclaiming is paid for by the calls that listed entries.
 *
 * The work of one call is bounded. Orphaned and due entries are reclaimed a few
 * at a time. A call that needs room takes at most one entry per cell it needs,
 * since each gives at least one cell. Pinned entries give none: if many of the
 * oldest are pinned, a call passes over a limited number and makes do with the
 * room there is, and the next call continues from there. Until then, leases use
 * the cells that prefixes leave to them.
 */
#include "retain.h"

#include "cell.h"
#include "cover.h"
#include "entry.h"
#include "event_stream.h"
#include "load.h"
#include "node.h"
#include "order.h"
#include "run.h"
#include "tenant.h"
#include "trust.h"
#include "window.h"

enum {
	PASSED_MAX = 256,     /* pinned entries, when making room once */
	EVICTIONS_MAX = 256,  /* by one call from one worker, */
	WAITING_MAX = 64,     /* and pinned ones that it passes over */
	NODES_EACH = 128,     /* that leave, for each entry that may expire */
	NODES_MAX = 256,      /* that leave, until no more is evicted */
	LEASE_CELLS = 128,    /* that prefixes leave to leases, */
	LEASE_SHARE = 32      /* at most one in so many */
};
#define MOSTLY_FULL 0.75

/* The next entry that is orphaned, or due by `until`; else 0. */
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

/*
 * What a tenant may take where several share: the oldest of the one that has
 * most. That may have less for its share than the one that asks, if all that
 * this has is pinned: then it gives nothing.
 */
static uint32_t
retain_shared(const struct kvr *k, uint32_t asks)
{
	uint32_t tenant = tenant_fullest(k);

	if (asks != TENANT_ANY && tenant != asks &&
	    tenant_fill(tenant_at(k, tenant)) <
	    tenant_fill(tenant_at(k, asks)))
		return 0;
	return tenant_oldest(k, tenant);
}

/* The next to evict from a full region; 0: there is none. */
static uint32_t
retain_stamped(struct kvr *k, int64_t now, uint32_t asks)
{
	uint32_t due;

	if (!tenant_on(k))
		return k->region->dead.head != 0 ? k->region->dead.head
		    : slot_at(k, order_stamped_slot(k))->by_stamp.head;
	due = retain_next(k, now);
	return due != 0 ? due : retain_shared(k, asks);
}

/* An entry that is live and not pinned leaves a full region. */
static void
retain_count_evicted(struct kvr *k, uint32_t entry)
{
	add_once(k->region->counts.evicted_region, 1);
	if (tenant_on(k))
		add_once(tenant_at(k, tenant_of_entry(k, entry))->evicted, 1);
}

/*
 * A pinned entry leaves the list. It is confirmed no more in a region where the
 * worker's events may begin, but stays so where they have named it.
 */
static void
retain_unlist(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);

	order_remove(k, entry);
	if (k->layout.aliases > 0 && !event_tracks(k, h->slot))
		write_once(h->flags, h->flags | ENTRY_UNCONFIRMED);
}

/* The entry heads a list. */
static void
retain_reclaim_head(struct kvr *k, uint32_t entry, int64_t now)
{
	const struct entry *h = entry_at(k, entry);
	struct counts *c = &k->region->counts;
	uint32_t slot = h->slot;
	bool orphan = slot_at(k, slot)->retired != 0;

	add_once(c->steps, 1);
	add_once(c->reclaimed, 1);
	if (!orphan && h->node != 0 && event_tracks(k, slot))
		event_crowded(k, slot);
	if (h->pins > 0) {
		retain_unlist(k, entry);
	} else {
		if (orphan)
			add_once(c->orphaned, 1);
		else if (h->stamp <= horizon_of(k, slot, now))
			add_once(c->expired, 1);
		else
			retain_count_evicted(k, entry);
		node_leave(k, entry);
	}
	if (!orphan)
		order_settle(k, slot);
}

/* Reclaims the head of a list; false if there is none, or it is damaged. */
static bool
retain_reclaim(struct kvr *k, uint32_t entry, int64_t now)
{
	if (entry == 0 || region_broken(k))
		return false;
	if (!order_heads(k, entry) && !tenant_heads(k, entry)) {
		region_break(k);
		return false;
	}
	retain_reclaim_head(k, entry, now);
	return true;
}

/*
 * Reclaims up to `budget` entries that are orphaned or due; fewer, if many
 * nodes go with them: one may have been the last that held a long line.
 */
void
retain_expire(struct kvr *k, int64_t now, uint32_t budget)
{
	uint64_t nodes = k->region->counts.nodes;
	uint64_t most = (uint64_t)budget * NODES_EACH;

	for (; budget > 0 && retain_reclaim(k, retain_next(k, now), now);
	    budget--)
		if (nodes - k->region->counts.nodes > most)
			break;
	__builtin_prefetch(entry_at(k, retain_stamped(k, now, TENANT_ANY)));
}

/*
 * Drops entries of a worker that nothing pins, at most so many. false: more are
 * left.
 */
bool
retain_drop(struct kvr *k, uint32_t slot, uint32_t most)
{
	const struct slot *s = slot_at(k, slot);
	uint32_t entry;

	while ((entry = s->by_stamp.head) != 0 && most-- > 0 &&
	    !region_broken(k)) {
		add_once(k->region->counts.steps, 1);
		if (!order_heads(k, entry)) {
			region_break(k);
		} else if (entry_at(k, entry)->pins == 0) {
			node_leave(k, entry);
		} else {
			retain_unlist(k, entry);
			order_unrelease(k, entry);
		}
	}
	order_settle(k, slot);
	return s->by_stamp.head == 0;
}

bool
retain_due(const struct kvr *k, int64_t now)
{
	return !region_broken(k) && retain_next(k, now) != 0;
}

/* When the next entry is due: now if it is orphaned; INT64_MAX: never. */
int64_t
retain_next_due(const struct kvr *k)
{
	int64_t clock = read_once(k->region->clock);

	if (read_once(k->region->dead.head) != 0)
		return clock > 0 ? clock : 0;
	return read_once(k->due[order_due_slot(k)]);
}

/* Reclaims one entry of a retired slot. */
bool
retain_reclaim_orphan(struct kvr *k)
{
	return k->region->dead.head != 0 &&
	    retain_reclaim(k, k->region->dead.head, 0);
}

static void
make_room(struct kvr *k, int64_t now, uint32_t cells, uint32_t asks)
{
	const struct region *r = k->region;
	uint32_t passed = 0, before = r->free_cells;

	while (before < cells && passed < PASSED_MAX &&
	    retain_reclaim(k, retain_stamped(k, now, asks), now)) {
		passed += r->free_cells == before;
		before = r->free_cells;
	}
}

/* Tries to have `cells` free; pinned entries stay. */
void
retain_make_room(struct kvr *k, int64_t now, uint32_t cells)
{
	make_room(k, now, cells, TENANT_ANY);
}

/* ----------------------------------------------- what a cache has lost --- */

/* Sets a worker's mode and TTL by what is known of it. */
void
retain_decide(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);
	uint8_t mode = trust_mode(k, slot);

	write_once(s->mode, mode);
	put_once(s->ttl, mode == KVR_RETAIN_TTL ? region_ttl(k)
	    : mode == KVR_RETAIN_EVENTS ? TTL_NEVER
	    : k->region->limits.idle);
	order_settle(k, slot);
}

void
retain_degrade(struct kvr *k, uint32_t slot)
{
	event_degrade(k, slot);
	retain_decide(k, slot);
	load_recount(k, slot);
}

/* Blocks that a worker with all that is on record would have to cache. */
static uint64_t
retain_needed(const struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	return s->held + s->anonymous + s->output + s->ahead +
	    window_running(k, slot);
}

static double
retain_room(const struct kvr *k, uint32_t slot)
{
	return (double)trust_room(k, slot) / hash_block_tokens(&k->rule);
}

/* Blocks that a worker would have to cache beyond its capacity. */
static uint64_t
retain_excess(const struct kvr *k, uint32_t slot)
{
	double blocks = retain_room(k, slot);
	uint64_t needed = retain_needed(k, slot);

	if (slot_at(k, slot)->mode != KVR_RETAIN_CAPACITY ||
	    (double)needed <= blocks)
		return 0;
	return needed - (uint64_t)blocks;
}

/* Whether what is on record takes most of the worker's capacity. */
bool
retain_fills(const struct kvr *k, uint32_t slot)
{
	return (double)retain_needed(k, slot) >=
	    MOSTLY_FULL * retain_room(k, slot);
}

/* Blocks of the node at which an entry ends that it has. */
static uint32_t
retain_leaf(struct kvr *k, uint32_t entry)
{
	const struct entry *h = entry_at(k, entry);
	uint32_t length;

	cover_rise(k, entry);
	length = node_at(k, h->node)->length;
	return h->node != 0 && h->trimmed < length ? length - h->trimmed
	    : UINT32_MAX;
}

/* Trims an entry by `blocks`, or drops it if it has no more: false then. */
static bool
retain_shrink(struct kvr *k, uint32_t entry, uint64_t blocks)
{
	const struct entry *h = entry_at(k, entry);
	uint32_t has = h->node != 0 ? entry_blocks(h) : h->trimmed;

	if (blocks < has) {
		entry_trim(k, entry, (uint32_t)blocks);
		cover_rise(k, entry);
		return true;
	}
	add_once(k->region->counts.reclaimed, 1);
	add_once(k->region->counts.evicted_capacity, 1);
	node_leave(k, entry);
	return false;
}

/* Whether an idle entry its cache has outlived. */
static bool
retain_outlived(const struct kvr *k, const struct slot *s, uint32_t entry)
{
	return s->outlived > 0 && s->mode != KVR_RETAIN_EVENTS &&
	    entry_at(k, entry)->released < s->outlived;
}

/*
 * Idle entries that a request has pinned and not used yet are passed over. A
 * few keep their places. If there are more, the first of them, a child before
 * its parent, leaves its lists as one that is due does: it is back when it is
 * stamped, or goes with its last pin.
 */
static void
retain_pass(struct kvr *k, const struct slot *s, uint32_t passed)
{
	uint32_t entry = s->by_release.head;

	if (passed < WAITING_MAX)
		return;
	add_once(k->region->counts.reclaimed, 1);
	retain_unlist(k, entry);
	order_unrelease(k, entry);
}

/*
 * Evicts what a worker's cache has lost, up to a limit; later calls evict the
 * rest.
 */
void
retain_evict_lost(struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);
	uint32_t at = s->by_release.head, i, passed = 0, next;
	uint64_t excess, nodes = k->region->counts.nodes;
	bool outlived;

	for (i = 0; i < EVICTIONS_MAX && at != 0 && !region_broken(k) &&
	    nodes - k->region->counts.nodes <= NODES_MAX; i++) {
		outlived = retain_outlived(k, s, at);
		excess = retain_excess(k, slot);
		if (excess == 0 && !outlived)
			break;
		add_once(k->region->counts.steps, 1);
		/* what has been idle longest is in no CPU cache */
		next = entry_at(k, at)->release_next;
		node_prefetch(k, next);
		if (entry_at(k, at)->pins > 0)
			retain_pass(k, s, passed++);
		else if (outlived)
			(void)retain_shrink(k, at, UINT64_MAX);
		else if (retain_shrink(k, at, s->eviction == KVR_EVICT_LEAF
		    ? retain_leaf(k, at) : excess))
			continue;
		at = next;
	}
	if (i > 0)
		order_settle(k, slot);
}

/*
 * A prompt was observed, so much of it recorded. Returns how many of its tokens
 * are new.
 */
uint64_t
retain_used(struct kvr *k, uint32_t slot, const struct kvr_prompt *p,
    uint32_t recorded)
{
	uint64_t gained = k->region->counts.gained, all = prompt_tokens(p);
	uint64_t had = gained < recorded ? prompt_blocks_tokens(p,
	    recorded - (uint32_t)gained) : 0;
	uint64_t fresh = had < all ? all - had : 0;

	window_fill(k, slot, fresh);
	retain_evict_lost(k, slot);
	return fresh;
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
	uint32_t parted;  /* cells of one that is parted; the path stays */
};

/* For which room is made. */
static uint32_t
fit_tenant(const struct fitting *f)
{
	if (!tenant_on(f->k))
		return TENANT_ANY;
	return f->path.node != 0 ? tenant_of(f->k, f->path.node)
	    : tenant_find(f->k, prompt_tenant(f->p));
}

/* What the request says of its tenant's share, or else another router does. */
static void
fit_share(const struct fitting *f, uint32_t tenant)
{
	uint32_t share = f->how->share != 0 ? f->how->share : f->p->share;

	if (share != 0)
		tenant_set_share(f->k, tenant, prompt_tenant(f->p), share);
}

/*
 * Cells that prefixes leave to leases, so that a request still counts as load
 * if there is no room for its prefix.
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

/* Walks the path; returns whether there is room for its first `want` blocks. */
static bool
fit_walk(struct fitting *f, uint32_t want)
{
	index_walk(f->k, f->p, want, f->how, &f->path);
	add_once(f->k->region->counts.steps, f->path.steps);
	/* an upper bound, which will do if cells abound */
	want = f->parted > 0 ? f->path.depth : want;
	f->missing = f->parted + f->path.nodes * ENTRY_CELLS_MAX;
	if (fit_cells(f, want) <= f->k->region->free_cells)
		return true;
	f->missing = f->parted + index_missing(f->k, &f->path, f->slot);
	return fit_cells(f, want) <= f->k->region->free_cells;
}

/* There is no room for `want` blocks: returns for how many there is. */
static uint32_t
fit_less(const struct fitting *f, uint32_t want)
{
	const struct path *path = &f->path;
	uint32_t low = path->depth, high = want - 1;

	if (low >= want || fit_cells(f, low) > f->k->region->free_cells) {
		/* no room for a split or the entries: end above this node */
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
 * Making room may remove nodes of the very path. So first only the missing
 * cells are requested. If there still is no room, because the path has become
 * shorter, as many are requested as the whole prompt could need. If that fails
 * too, less of the prompt is recorded.
 */
static uint32_t
retain_fit(struct fitting *f, int64_t now)
{
	uint32_t want = f->how->want, cells, asks;

	if (want == 0 || fit_walk(f, want))
		return want;
	if (!f->how->keep) {
		cells = fit_cells(f, want);
		asks = fit_tenant(f);
		fit_share(f, asks);
		make_room(f->k, now, cells, asks);
		if (fit_walk(f, want))
			return want;
		cells += 2 + RUN_LEVELS +
		    cell_tree_size(0, want, run_level(want));
		make_room(f->k, now, cells, asks);
	}
	while (want > 0 && !region_broken(f->k) && !fit_walk(f, want))
		want = f->how->keep ? 0 : fit_less(f, want);
	return want;
}

/*
 * Makes room and calls index_insert. Sets *recorded to the blocks recorded, up
 * to how->want; returns the node where they end (0: no more than there were).
 */
uint32_t
retain_insert(struct kvr *k, const struct kvr_prompt *p, uint32_t slot,
    const struct insert *how, int64_t now, uint32_t *recorded)
{
	struct fitting f;
	uint32_t want, node;
	bool cut;

	memset(&f, 0, sizeof(f));
	cell_prefetch(k);
	node_prefetch(k, retain_stamped(k, now, TENANT_ANY));
	__builtin_prefetch(entry_at(k, slot_at(k, slot)->by_release.head));
	f.k = k;
	f.p = p;
	f.how = how;
	f.slot = slot;
	for (cut = false;; cut = true) {
		want = retain_fit(&f, now);
		if (cut || !index_line_full(k, &f.path))
			break;
		cover_cut(k, f.path.node);
	}
	if (cut && index_line_full(k, &f.path)) {
		want = how->keep ? 0 : f.path.depth - f.path.inside;
		(void)fit_walk(&f, want);
	}
	if (slot_at(k, slot)->mode == KVR_RETAIN_CAPACITY)
		node_prefetch(k, slot_at(k, slot)->by_release.head);
	*recorded = want;
	if (want < p->blocks)
		add_once(k->region->counts.truncated, 1);
	if (want <= how->depth)
		return 0;
	node = index_insert(k, p, &f.path, want, slot, how);
	fit_share(&f, tenant_of(k, node));
	return node;
}

/*
 * The worker uses the part of the prompt that it holds. A node that is longer
 * is split. If there is no room for that, nothing is stamped.
 */
void
retain_touch(struct kvr *k, const struct kvr_prompt *p, uint32_t slot,
    int64_t now)
{
	struct insert how = { .want = p->blocks };
	struct fitting f = { .k = k, .p = p, .how = &how, .slot = slot,
		.parted = ENTRY_CELLS_MAX };
	uint32_t node;

	if (!fit_walk(&f, how.want) && f.path.node != 0) {
		retain_make_room(k, now, fit_cells(&f, f.path.depth));
		if (!fit_walk(&f, how.want))
			return;
	}
	node = f.path.node;
	if (f.path.inside < node_at(k, node)->length &&
	    cover_find(k, node, slot) != 0)
		node = index_line_full(k, &f.path) ? node_at(k, node)->parent
		    : index_insert(k, p, &f.path, f.path.depth, slot, &how);
	window_stamp(k, node, slot, false, now);
}

/*
 * Idle blocks without hashes, which take room in the cache: entry.c. They are
 * of the rest, which may not have more for its share than the one that loses.
 */
void
retain_add_anonymous(struct kvr *k, uint32_t slot, uint64_t blocks,
    int64_t now)
{
	if (blocks == 0)
		return;
	make_room(k, now, 1, tenant_on(k) ? 0 : TENANT_ANY);
	entry_add_anonymous(k, slot, blocks < UINT32_MAX ? (uint32_t)blocks
	    : UINT32_MAX, now);
}
