/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world_check.c - library and model must be equal at any time, after all due
 * entries have been reclaimed, and when everything is removed.
 */
#include "world.h"

#include <inttypes.h>

int
world_reap(struct world *w)
{
	struct kvr_stats s = { .size = sizeof(s) };
	uint64_t n;

	if (kvr_stats_get(w->k, &s) != KVR_OK ||
	    s.lease_reaps < w->counts.lease_reaps)
		return world_fail(w, "kvr_stats failed");
	n = s.lease_reaps - w->counts.lease_reaps;
	if (!model_reap_old(w->m, n, w->options.lease_limit_ns, w->time))
		return world_fail(w, "%" PRIu64 " leases ended for their age",
		    n);
	w->counts.lease_reaps = s.lease_reaps;
	ops_totals.reaped += n;
	return 0;
}

int
world_glance(struct world *w)
{
	struct kvr_stats s = { .size = sizeof(s) };
	const struct world_counts *n = &w->counts;
	int rc = kvr_stats_get(w->k, &s);

	if (rc != KVR_OK)
		return world_fail(w, "kvr_stats: %s", kvr_errname(rc));
	if (s.clock != model_clock(w->m) ||
	    s.clock_back != model_clock_back(w->m))
		return world_fail(w, "clock %" PRId64 " and %" PRIu64
		    " back, must %" PRId64 " and %" PRIu64, s.clock,
		    s.clock_back, model_clock(w->m), model_clock_back(w->m));
	if (s.leases != model_leases(w->m))
		return world_fail(w, "%" PRIu64 " leases, must %" PRIu64,
		    s.leases, model_leases(w->m));
	if (s.region_bytes > w->options.region_bytes ||
	    s.cells_free > s.cells)
		return world_fail(w, "the region is too large");
	if (s.observes != n->observes || s.lease_opens != n->lease_opens ||
	    s.lease_commits != n->lease_commits ||
	    s.lease_finishes != n->lease_finishes ||
	    s.lease_aborts != n->lease_aborts ||
	    s.lease_reaps != n->lease_reaps)
		return world_fail(w,
		    "counted %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
		    " %" PRIu64 " %" PRIu64 " (observes to"
		    " reaped), must %" PRIu64 " %" PRIu64 " %" PRIu64
		    " %" PRIu64 " %" PRIu64 " %" PRIu64,
		    s.observes, s.lease_opens, s.lease_commits,
		    s.lease_finishes, s.lease_aborts, s.lease_reaps,
		    n->observes, n->lease_opens, n->lease_commits,
		    n->lease_finishes, n->lease_aborts, n->lease_reaps);
	if (!w->c->full &&
	    (s.evicted_region > 0 || s.truncated != n->truncated))
		return world_fail(w,
		    "%" PRIu64 " evicted, %" PRIu64
		    " truncated, must 0 and %" PRIu64,
		    s.evicted_region, s.truncated, n->truncated);
	return 0;
}

static int
check_loads(struct world *w)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };
	struct model_load want;
	uint64_t held;
	uint32_t i;
	int rc;

	for (i = 0; i < w->c->workers; i++) {
		rc = kvr_worker_stats_get(w->k, w->names[i].id, &s);
		if (!model_worker_known(w->m, w->names[i].id)) {
			if (rc != KVR_EWORKER)
				return world_fail(w, "w%u should be gone", i);
			continue;
		}
		model_load(w->m, w->names[i].id, &want);
		if (rc != KVR_OK || s.requests != want.requests ||
		    s.prefill_tokens != want.prefill_tokens || (!w->blurred &&
		    (s.output_blocks != want.output_blocks ||
		    s.active_blocks != want.active_blocks)))
			return world_fail(w, "w%u: %s, load %" PRIu64 " %"
			    PRIu64 " %" PRIu64 " %" PRIu64 " (requests,"
			    " prefill, active, output), must %" PRIu64 " %"
			    PRIu64 " %" PRIu64 " %" PRIu64, i, kvr_errname(rc),
			    s.requests, s.prefill_tokens, s.active_blocks,
			    s.output_blocks, want.requests,
			    want.prefill_tokens, want.active_blocks,
			    want.output_blocks);
		held = model_held(w->m, w->names[i].id, w->time);
		if (!w->c->full && s.held_blocks < held &&
		    !model_vague(w->m, w->names[i].id))
			return world_fail(w, "w%u holds %" PRIu64 " blocks,"
			    " must %" PRIu64, i, s.held_blocks, held);
	}
	return 0;
}

/* In a full region the walk may meet fewer entries, but no others. */
static int
check_entries(struct world *w)
{
	struct kvr_entry e[7];
	uint64_t cursor = 0;
	const char *why = NULL;
	size_t n = 0, i;
	int rc;

	if (w->c->full)
		return 0;
	model_entries_begin(w->m, w->time);
	do {
		rc = kvr_entries(w->k, &cursor, w->call, e, sizeof(e[0]),
		    sizeof(e) / sizeof(e[0]), &n);
		for (i = 0; rc == KVR_OK && i < n && why == NULL; i++)
			why = model_entry(w->m, &e[i], w->time);
	} while (rc == KVR_OK && cursor != 0 && why == NULL);
	if (why == NULL)
		why = model_entries_end(w->m, w->time);
	ops_totals.walks++;
	if (rc != KVR_OK)
		return world_fail(w, "kvr_entries: %s", kvr_errname(rc));
	if (why != NULL && i > 0)
		return world_fail(w, "walk: %s (%u blocks at %u, age %" PRId64
		    ", pins %u)", why, e[i - 1].blocks, e[i - 1].first_block,
		    e[i - 1].age_ns, e[i - 1].pins);
	return why != NULL ? world_fail(w, "walk: %s", why) : 0;
}

int
world_check(struct world *w)
{
	int rc = kvr_check(w->k);

	world_look_at_clock(w, w->now);
	if (rc != KVR_OK)
		return world_fail(w, "kvr_check: %s", kvr_errname(rc));
	if (check_loads(w) != 0)
		return -1;
	return check_entries(w);
}

int
world_check_expired(struct world *w)
{
	struct kvr_stats s = { .size = sizeof(s) };
	uint64_t held, blocks;
	int64_t due, want;

	model_sweep(w->m, w->time);
	if (model_any_vague(w->m))
		return 0;
	held = model_held(w->m, 0, w->time);
	blocks = model_blocks(w->m, w->time);
	want = model_next_due(w->m);
	if (kvr_stats_get(w->k, &s) != KVR_OK ||
	    kvr_next_expiry(w->k, &due) != KVR_OK)
		return world_fail(w, "kvr_stats or kvr_next_expiry failed");
	if (w->c->full ? s.held_blocks > held : s.held_blocks != held)
		return world_fail(w, "%" PRIu64 " held blocks, must %" PRIu64,
		    s.held_blocks, held);
	/*
	 * Blocks pinned by leases of a removed worker stay in the tree, and so
	 * do the lost ends of runs.
	 */
	if (model_void_leases(w->m) > 0 || w->c->events > 0
	    ? !w->c->full && s.blocks < blocks
	    : w->c->full ? s.blocks > blocks : s.blocks != blocks)
		return world_fail(w, "%" PRIu64 " blocks, must %" PRIu64,
		    s.blocks, blocks);
	if (due <= w->time)
		return world_fail(w, "due at %" PRId64 ", not after %" PRId64,
		    due, w->time);
	if (!w->c->full && (model_any_pin(w->m) ? due > want : due != want))
		return world_fail(w, "next expiry %" PRId64 ", must %" PRId64,
		    due, want);
	return 0;
}

int
world_check_empty(struct world *w)
{
	struct kvr_stats s = { .size = sizeof(s) };
	uint32_t i, left = 0, rounds = 0;
	int rc;

	for (i = 0; i < OPS_SLOTS; i++) {
		if (!model_lease_open(w->m, w->slots[i].lease))
			continue;
		if (kvr_lease_abort(w->k, w->slots[i].lease, w->call, 0) !=
		    KVR_OK)
			return world_fail(w, "a lease cannot be aborted");
		(void)model_abort(w->m, w->slots[i].lease);
		if (world_reap(w) != 0)
			return -1;
	}
	for (i = 0; i < w->c->workers; i++)
		if (model_worker_known(w->m, w->names[i].id) &&
		    kvr_worker_remove(w->k, w->names[i].id) != KVR_OK)
			return world_fail(w, "a worker cannot be removed");
	do {
		rc = kvr_expire(w->k, w->call, 1000, &left);
	} while (rc == KVR_OK && left > 0 && rounds++ < 10000);
	if (rc != KVR_OK || left > 0 || kvr_check(w->k) != KVR_OK ||
	    kvr_stats_get(w->k, &s) != KVR_OK)
		return world_fail(w, "the end: %s, left %u", kvr_errname(rc),
		    left);
	ops_totals.splits += s.splits;
	ops_totals.merges += s.merges;
	ops_totals.extensions += s.extensions;
	ops_totals.expired += s.expired;
	ops_totals.voided += s.orphaned;
	ops_totals.evicted += s.evicted_region;
	if (s.leases > 0 || s.entries > 0 || s.nodes > 0 || s.blocks > 0 ||
	    s.held_blocks > 0 || s.cells_free != w->cells_free)
		return world_fail(w, "the end: %" PRIu64 " leases, %" PRIu64
		    " entries, %" PRIu64 " nodes, %" PRIu64 " cells free of %"
		    PRIu64, s.leases, s.entries, s.nodes, s.cells_free,
		    w->cells_free);
	return 0;
}
