/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fit.c - records a path as far as there is room.
 *
 * A full region makes room by evicting (retain.c), and a part of the very path
 * may leave. So the path is walked again after each attempt, and in the end
 * less of the prompt is recorded.
 */
#include "fit.h"

#include "cell.h"
#include "cover.h"
#include "entry.h"
#include "node.h"
#include "retain.h"
#include "run.h"
#include "tenant.h"
#include "window.h"

enum {
	LEASE_CELLS = 128, /* that prefixes leave to leases, */
	LEASE_SHARE = 32   /* at most one in so many */
};

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

/* Sets the tenant's share by the request, or else by another router. */
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
fit_spare(const struct kvr *k)
{
	uint32_t share = k->layout.cells / LEASE_SHARE;

	return share < LEASE_CELLS ? share : LEASE_CELLS;
}

static uint32_t
fit_cells(const struct fitting *f, uint32_t want)
{
	uint32_t cells = index_cells(f->k, &f->path, want, f->missing);

	return cells == 0 ? 0 : cells + fit_spare(f->k);
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
fit_path(struct fitting *f, int64_t now)
{
	uint32_t want = f->how->want, cells, asks;

	if (want == 0 || fit_walk(f, want))
		return want;
	if (!f->how->keep) {
		cells = fit_cells(f, want);
		asks = fit_tenant(f);
		fit_share(f, asks);
		retain_make_room_for(f->k, now, cells, asks);
		if (fit_walk(f, want))
			return want;
		cells += 2 + RUN_LEVELS +
		    cell_tree_size(0, want, run_level(want));
		retain_make_room_for(f->k, now, cells, asks);
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
fit_insert(struct kvr *k, const struct kvr_prompt *p, uint32_t slot,
    const struct insert *how, int64_t now, uint32_t *recorded)
{
	struct fitting f;
	uint32_t want, node;
	bool cut;

	memset(&f, 0, sizeof(f));
	cell_prefetch(k);
	retain_prefetch(k, slot, now);
	f.k = k;
	f.p = p;
	f.how = how;
	f.slot = slot;
	for (cut = false;; cut = true) {
		want = fit_path(&f, now);
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
fit_touch(struct kvr *k, const struct kvr_prompt *p, uint32_t slot,
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
