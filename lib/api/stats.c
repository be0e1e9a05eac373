/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stats.c - public calls for inspection: counters, the check, and the walk
 * over all live entries.
 */
#include "check.h"
#include "entry.h"
#include "event_stream.h"
#include "journal.h"
#include "load.h"
#include "rate.h"
#include "survival.h"
#include "table.h"
#include "trust.h"
#include "txn.h"
#include "window_mode.h"

#include <stdlib.h>

static void
calibration_read(const struct calibration *seen, struct kvr_calibration *c)
{
	c->reports = read_once(seen->reports);
	c->unreported = read_once(seen->unreported);
	c->reported_tokens = read_once(seen->reported);
	c->predicted_tokens = read_once(seen->predicted);
	c->over_tokens = read_once(seen->over);
	c->under_tokens = read_once(seen->under);
	c->usage_prompt_tokens = read_once(seen->usage_prompt);
	c->usage_cached_tokens = read_once(seen->usage_cached);
}

static void
stats_counts(const struct counts *c, struct kvr_stats *s)
{
	s->nodes = read_once(c->nodes);
	s->entries = read_once(c->entries);
	s->blocks = read_once(c->blocks);
	s->held_blocks = read_once(c->held);
	s->leases = read_once(c->leases);
	s->observes = read_once(c->observes);
	s->lease_opens = read_once(c->lease_opens);
	s->lease_commits = read_once(c->lease_commits);
	s->lease_finishes = read_once(c->lease_finishes);
	s->lease_aborts = read_once(c->lease_aborts);
	calibration_read(&c->seen, &s->calibration);
	s->evicted_capacity = read_once(c->evicted_capacity);
	s->lease_reaps = read_once(c->lease_reaps);
	s->expired = read_once(c->expired);
	s->evicted_region = read_once(c->evicted_region);
	s->orphaned = read_once(c->orphaned);
	s->splits = read_once(c->splits);
	s->merges = read_once(c->merges);
	s->extensions = read_once(c->extensions);
	s->truncated = read_once(c->truncated);
	s->clock_back = read_once(c->clock_back);
	s->recoveries = read_once(c->recoveries);
	s->max_steps = read_once(c->max_steps);
	s->max_cells = read_once(c->max_cells);
	s->max_reclaimed = read_once(c->max_reclaimed);
	s->affinity_bindings = read_once(c->bindings);
	s->affinity_found = read_once(c->bindings_found);
	s->affinity_moved = read_once(c->bindings_moved);
	s->affinity_evicted = read_once(c->bindings_evicted);
	s->prompt_tokens = read_once(c->prompt_tokens);
	s->predicted_tokens = read_once(c->predicted_tokens);
	s->best_tokens = read_once(c->best_tokens);
}

static uint64_t
counter_read(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

int
kvr_stats_get(const struct kvr *k, struct kvr_stats *out)
{
	struct kvr_stats s;
	struct txn c;
	int error;

	if (k == NULL || out == NULL || !struct_has_size(out->size))
		return KVR_EINVAL;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	memset(&s, 0, sizeof(s));
	s.region_bytes = k->region->seal.bytes;
	s.cells = k->layout.cells;
	s.affinity_entries = k->layout.bindings;
	s.cells_free = read_once(k->region->free_cells);
	s.workers = read_once(k->region->workers);
	s.clock = read_once(k->region->clock);
	stats_counts(&k->region->counts, &s);
	s.busy_writes = counter_read(&k->region->busy_writes);
	s.read_retries = counter_read(&k->region->read_retries);
	s.read_locks = counter_read(&k->region->read_locks);
	s.journal_bytes = k->layout.journal_bytes;
	s.journal_written = journal_head(k) - JOURNAL_FIRST;
	s.journal_overruns = counter_read(&k->region->journal_overruns);
	s.journal_beat = atomic_load_explicit(&k->region->journal_beat,
	    memory_order_relaxed);
	error = txn_read_end(k, &c, KVR_OK);
	if (error == KVR_OK)
		struct_put(out, out->size, &s, sizeof(s));
	return error;
}

/* Figures learnt from reports and first tokens. */
static void
worker_learnt(const struct kvr *k, uint32_t slot, struct kvr_worker_stats *w)
{
	const struct slot *s = slot_at(k, slot);

	w->retain = read_once(s->mode);
	calibration_read(&s->seen, &w->calibration);
	w->learnt_block = read_once(s->learnt_block);
	w->learnt_capacity = trust_learnt(k, slot) ? trust_room(k, slot)
	    : survival_capacity(k, slot);
	w->window_mode = read_once(window_of(k, slot)->mode);
	w->prefill_rate = 1 / read_once_double(&k->loads.pace[slot]);
	w->backlog = rate_backlog(k, slot, read_once(k->region->clock));
}

/* Figures of the worker's events. */
static void
worker_events(const struct kvr *k, uint32_t slot, struct kvr_worker_stats *w)
{
	const struct stream *s =
	    stream_at(k, read_once(slot_at(k, slot)->name));

	w->events_batches = read_once(s->batches);
	w->events_stored = read_once(s->stored);
	w->events_removed = read_once(s->removed);
	w->events_refused = read_once(s->refused);
	w->events_cleared = read_once(s->cleared);
	w->events_restarts = read_once(s->restarts);
	w->events_lost = read_once(s->lost);
	w->events_next = read_once(s->next);
	w->events_held = event_held(k, slot);
	w->events_blocks = read_once(s->life) != 0 ? read_once(s->aliases) : 0;
	w->events_orphans = read_once(s->orphans);
	w->events_evicted = read_once(s->crowded);
	w->events_unseen = read_once(s->unseen);
	w->events_until = read_once(s->until);
	w->events_cause = read_once(s->cause);
	w->events_capacity = event_capacity(k, slot);
	w->events_state = read_once(s->state);
	w->events_at = w->events_state != KVR_EVENTS_OFF ? read_once(s->heard)
	    : -1;
}

int
kvr_worker_stats_get(const struct kvr *k, uint64_t worker,
    struct kvr_worker_stats *out)
{
	struct kvr_worker_stats w;
	const struct slot *s;
	struct txn c;
	uint32_t slot;
	int error;

	if (k == NULL || out == NULL || !struct_has_size(out->size))
		return KVR_EINVAL;
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	if (!worker_slot(k, worker, &slot)) {
		return txn_read_end(k, &c, KVR_EWORKER);
	}
	s = slot_at(k, slot);
	memset(&w, 0, sizeof(w));
	w.entries = read_once(s->entries);
	w.held_blocks = read_once(s->held);
	w.requests = read_once(s->requests);
	w.prefill_tokens = read_once(s->prefill);
	w.active_blocks = read_once(s->active) + read_once(s->load_blocks);
	w.output_blocks = read_once(s->output);
	w.lease_opens = read_once(s->lease_opens);
	w.prompt_tokens = read_once(s->prompt_tokens);
	w.predicted_tokens = read_once(s->predicted_tokens);
	w.best_tokens = read_once(s->best_tokens);
	w.overloaded = read_once(s->over_prefill) != 0 ||
	    read_once(s->over_blocks) != 0;
	worker_learnt(k, slot, &w);
	worker_events(k, slot, &w);
	error = txn_read_end(k, &c, KVR_OK);
	if (error == KVR_OK)
		struct_put(out, out->size, &w, sizeof(w));
	return error;
}

/*
 * check_region does not tolerate concurrent writes, and a read-only handle has
 * no lock. So it checks a validated copy.
 */
static int
check_copy(const struct kvr *k)
{
	struct txn c = { 0 };
	struct kvr copied;
	void *copy = aligned_alloc(CELL, (size_t)k->layout.end);
	int error;

	if (copy == NULL)
		return KVR_ENOMEM;
	do {
		error = txn_read_begin(k, &c, 0, 0);
		if (error != KVR_OK) {
			free(copy);
			return error;
		}
		read_once_words(copy, k->region, (size_t)k->layout.end);
	} while (!txn_read_valid(k, &c));
	memset(&copied, 0, sizeof(copied));
	/* the copy ends by this handle's layout, not by its own */
	error = region_attach(copy, ((struct region *)copy)->seal.bytes,
	    &copied);
	error = error == KVR_OK && copied.layout.end == k->layout.end
	    ? check_region(&copied) : KVR_ECORRUPT;
	free(copy);
	return error;
}

int
kvr_check(const struct kvr *k)
{
	struct txn c;
	int error;

	if (k == NULL)
		return KVR_EINVAL;
	if (k->readonly)
		return check_copy(k);
	error = txn_read_locked(k, &c, 0);
	if (error != KVR_OK)
		return error;
	return txn_read_end(k, &c, check_region(k));
}

/* ----------------------------------------------------------- the walk --- */

/* Limits of one call, whatever its capacity. */
enum { BUCKETS_PER_CALL = 1024, STEPS_PER_CALL = 4096 };

/*
 * A cursor is a place of the entry table and a cell: the next entry is the one
 * with the next higher cell in that place, or the first of the next place. An
 * entry keeps its cell as long as it exists, and its place as long as it ends
 * at the same node, so entries that stay as they are are visited exactly once,
 * whatever else comes and goes, even if the table grows. Entries chained into a
 * foreign bucket are skipped: else a damaged table whose chains have merged
 * would yield up to buckets times cells entries.
 */
static uint32_t
place_next(const struct kvr *k, uint32_t place, uint32_t after,
    uint32_t *steps)
{
	uint32_t i = k->entry_buckets[bucket_of_place(k, place)], next = 0;
	uint32_t cells = k->layout.cells, limit = cells;

	for (; i - 1 < cells - 1 && limit > 0; limit--, (*steps)++) {
		const struct entry *h = entry_at(k, i);

		if (h->kind == CELL_ENTRY && i > after &&
		    (next == 0 || i < next) &&
		    place_of_entry(k, h->node, h->slot) == place)
			next = i;
		i = h->next;
	}
	return next;
}

static bool
entry_live(const struct kvr *k, const struct entry *h, int64_t horizon)
{
	return (h->pins > 0 || h->stamp > horizon) &&
	    slot_in_use(k, h->slot);
}

/* A negative stamp occurs only in a damaged region. */
static int64_t
age_at(int64_t now, const struct entry *h)
{
	if ((h->flags & ENTRY_UNCONFIRMED) != 0 || h->stamp < 0)
		return -1;
	return now - h->stamp;
}

/* Blocks of the prompt before an entry; *top: the first node it covers. */
static uint32_t
blocks_before(const struct kvr *k, const struct entry *h,
    const struct node **top, uint32_t *steps)
{
	uint32_t blocks = 0, limit = k->layout.cells, node = h->node;

	*top = node_at(k, node);
	for (; node != 0 && limit > 0; limit--, (*steps)++) {
		if (blocks < h->blocks)
			*top = node_at(k, node);
		blocks += node_at(k, node)->length;
		node = node_at(k, node)->parent;
	}
	return blocks > h->blocks ? blocks - h->blocks : 0;
}

static void
entry_fill(const struct kvr *k, const struct entry *h, int64_t now,
    struct kvr_entry *e, uint32_t *steps)
{
	const struct node *top;

	memset(e, 0, sizeof(*e));
	e->worker = worker_id(k, h->slot);
	e->first_block = blocks_before(k, h, &top, steps);
	e->parent = top->prev;
	e->sequence = node_at(k, h->node)->end;
	e->age_ns = age_at(now, h);
	e->blocks = entry_blocks(h);
	e->pins = h->pins;
}

int
kvr_entries(const struct kvr *k, uint64_t *cursor, int64_t now,
    struct kvr_entry *out, size_t element, size_t capacity, size_t *count)
{
	size_t n = 0, length = element < sizeof(*out) ? element : sizeof(*out);
	uint32_t place, cell, last, steps = 0;
	struct kvr_entry e;
	struct txn c;
	int error;

	if (k == NULL || cursor == NULL || count == NULL || out == NULL ||
	    element < sizeof(uint64_t) || capacity == 0)
		return KVR_EINVAL;
	if (k->readonly)
		return KVR_EREADONLY;
	error = txn_read_locked(k, &c, now);
	if (error != KVR_OK)
		return error;
	place = (uint32_t)(*cursor >> 32);
	last = k->layout.entry_buckets;
	if (place < last && last - place > BUCKETS_PER_CALL)
		last = place + BUCKETS_PER_CALL;
	cell = (uint32_t)*cursor;
	while (place < last && n < capacity && steps < STEPS_PER_CALL) {
		cell = place_next(k, place, cell, &steps);
		if (cell == 0) {
			place++;
		} else if (entry_live(k, entry_at(k, cell),
		    horizon_of(k, entry_at(k, cell)->slot, c.now))) {
			entry_fill(k, entry_at(k, cell), c.now, &e, &steps);
			memcpy((char *)out + n++ * element, &e, length);
		}
	}
	*cursor = place < k->layout.entry_buckets
	    ? (uint64_t)place << 32 | cell : 0;
	*count = n;
	return txn_read_end(k, &c, KVR_OK);
}
