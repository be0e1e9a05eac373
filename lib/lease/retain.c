/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * retain.c - which entries are removed, and when.
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
 *   capacity  Its capacity is known, given or learnt: trust.c. Running and idle
 *             blocks would exceed it, so the longest released goes first, as in
 *             the engine:
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
 * THE TTL OF AN ENTRY depends on the knowledge of its worker (the mode): the
 * region's TTL if there is no knowledge; no TTL if events name its blocks
 * (hold.c); else the idle limit, because something better than time shows the
 * losses.
 *
 * A pinned entry at the head of its list is unlinked; it is freed with its last
 * pin, unless it is stamped before. Each step takes one entry off a
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
	PASSED_MAX = 256,     /* steps past pinned entries, to make room once */
	EVICTIONS_MAX = 256,  /* by one call from one worker, */
	WAITING_MAX = 64,     /* and pinned ones that it passes over */
	NODES_EACH = 128,     /* that leave, for each entry that may expire */
	NODES_MAX = 256,      /* that leave, until no more is evicted */
};
#define NEARLY_FULL 0.95

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
 * The entry that a tenant may take where several share: the oldest of the
 * tenant that has most for its share. If the tenant that asks has more, since
 * all its entries are pinned, it gets nothing.
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

/* The next entry to evict from a full region, or 0. */
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
	const struct entry *h = entry_at(k, entry);

	if (h->node != 0 && event_tracks(k, h->slot))
		event_crowded(k, h->slot);
	add_once(k->region->counts.evicted_region, 1);
	if (tenant_on(k))
		add_once(tenant_at(k, tenant_of_entry(k, entry))->evicted, 1);
}

/*
 * A pinned entry leaves the list. It is confirmed no more in a region where the
 * worker's events may begin.
 */
static void
retain_unlist(struct kvr *k, uint32_t entry)
{
	struct entry *h = entry_at(k, entry);

	order_remove(k, entry);
	if (k->layout.aliases > 0)
		write_once(h->flags, h->flags | ENTRY_UNCONFIRMED);
}

/*
 * A full region passes over a pinned entry, which is in use now. Where events
 * name the blocks, it becomes the youngest with those above it, so that every
 * confirmed entry is in the list. If that was done at this very time, and where
 * there are no events, it leaves the list.
 */
static void
retain_pass_pinned(struct kvr *k, uint32_t entry, int64_t now)
{
	const struct entry *h = entry_at(k, entry);
	bool named = slot_at(k, h->slot)->retired == 0 &&
	    event_tracks(k, h->slot);

	if (named && h->stamp < now) {
		index_touch(k, h->node, h->slot, now);
		return;
	}
	if (named)
		event_crowded(k, h->slot);
	retain_unlist(k, entry);
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
	if (h->pins > 0) {
		retain_pass_pinned(k, entry, now);
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

/* Reclaims the head of a list; false if the list is empty or damaged. */
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

/* Tries to have `cells` free for a tenant; pinned entries stay. */
void
retain_make_room_for(struct kvr *k, int64_t now, uint32_t cells, uint32_t asks)
{
	const struct region *r = k->region;
	uint32_t before = r->free_cells;
	uint64_t passed = 0, steps = r->counts.steps;

	while (before < cells && passed < PASSED_MAX &&
	    retain_reclaim(k, retain_stamped(k, now, asks), now)) {
		if (r->free_cells == before)
			passed += r->counts.steps - steps;
		before = r->free_cells;
		steps = r->counts.steps;
	}
}

void
retain_make_room(struct kvr *k, int64_t now, uint32_t cells)
{
	retain_make_room_for(k, now, cells, TENANT_ANY);
}

/* Loads the heads of lists that an insertion for this slot will read. */
void
retain_prefetch(struct kvr *k, uint32_t slot, int64_t now)
{
	node_prefetch(k, retain_stamped(k, now, TENANT_ANY));
	__builtin_prefetch(entry_at(k, slot_at(k, slot)->by_release.head));
}

/* ------------------------------------------------- losses of a cache --- */

/* Sets a worker's mode and TTL by the knowledge of it. */
void
retain_decide(struct kvr *k, uint32_t slot)
{
	struct slot *s = slot_at(k, slot);
	uint8_t mode = trust_mode(k, slot);

	write_once(s->mode, mode);
	put_once(s->ttl, mode == KVR_RETAIN_TTL ? region_ttl(k)
	    : mode == KVR_RETAIN_EVENTS ? TTL_NEVER
	    : region_idle(k));
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
	double tokens = (double)trust_room(k, slot);

	if (!trust_learnt(k, slot))
		tokens /= trust_ratio(k, slot);
	return tokens / hash_block_tokens(&k->rule);
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

/* Does the record nearly fill the capacity, but for a leaf that it lost? */
bool
retain_fills(const struct kvr *k, uint32_t slot, uint32_t prompt)
{
	uint64_t needed = retain_needed(k, slot);

	if (slot_at(k, slot)->eviction == KVR_EVICT_LEAF)
		needed += prompt;
	return (double)needed >= NEARLY_FULL * retain_room(k, slot);
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
retain_pass_idle(struct kvr *k, const struct slot *s, uint32_t passed)
{
	uint32_t entry = s->by_release.head;

	if (passed < WAITING_MAX)
		return;
	add_once(k->region->counts.reclaimed, 1);
	retain_unlist(k, entry);
	order_unrelease(k, entry);
}

/*
 * Evicts entries that a worker's cache has lost, up to a limit; later calls
 * evict the rest.
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
		/* the longest idle entry is in no CPU cache */
		next = entry_at(k, at)->release_next;
		node_prefetch(k, next);
		if (entry_at(k, at)->pins > 0)
			retain_pass_idle(k, s, passed++);
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
	retain_make_room_for(k, now, 1, tenant_on(k) ? 0 : TENANT_ANY);
	entry_add_anonymous(k, slot, blocks < UINT32_MAX ? (uint32_t)blocks
	    : UINT32_MAX, now);
}
