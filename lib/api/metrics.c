/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metrics.c - all counters and gauges as text for Prometheus.
 *
 *	# HELP kvroute_worker_requests Requests running on the worker.
 *	# TYPE kvroute_worker_requests gauge
 *	kvroute_worker_requests{worker="gpu-0",rank="0"} 12
 *	kvroute_worker_requests{worker="gpu-1",rank="0"} 9
 *
 * A NEW METRIC is one row in one of the two tables below. A name that ends in
 * _total is a counter; all others are gauges.
 *
 * ONE METRIC AT A TIME. The format requires all samples of a metric together,
 * so the workers are read first, each once and all its numbers at one moment.
 * The lock is taken for one worker at a time, and writers proceed in between.
 *
 * WHICH WORKERS. Workers come and go meanwhile, and one that is reset moves to
 * another slot. If it were read in both slots, a metric would have two samples
 * with equal labels. So the ids are taken before, in one snapshot, where no two
 * workers have the same name and rank; an id keeps both for ever. Workers
 * removed or added after the snapshot are left out. They are in the order of
 * their names, which keep their places when workers are reset.
 *
 * WHOLE LINES. Each line is built separately. It is written whole, or it and
 * all lines after it are not, so the output is always a prefix of the text.
 */
#include "text.h"
#include "txn.h"
#include "worker.h"

#include <stdlib.h>

/* Tries of a lock-free read, for one number. */
enum { TRIES_MAX = 100 };

enum kind { UINT64, UINT32, NANOSECONDS, REAL, RETAIN, STATE, WINDOW };

struct metric {
	const char *name;
	uint32_t kind;   /* enum kind: the type of the field */
	uint32_t offset; /* of the field */
	const char *help;
	const char *reason; /* label, or NULL; rows of one name are adjacent */
};

#define FIELD(type, field)                                           \
	_Generic(((type *)0)->field, uint64_t: UINT64,               \
	    uint32_t: UINT32, int64_t: NANOSECONDS, double: REAL),   \
	    offsetof(type, field)
#define REGION(field) FIELD(struct kvr_stats, field)
#define WORKER(field) FIELD(struct kvr_worker_stats, field)
#define REMOVED(reason, field) \
	{ "kvroute_entries_removed_total", REGION(field), \
	    "Entries removed: expired, evicted for room in their worker's " \
	    "cache, evicted for room in the region, or orphaned with " \
	    "their worker.", reason }

static const struct metric of_region[] = {
	{ "kvroute_region_bytes", REGION(region_bytes), "Size of the region.",
	    NULL },
	{ "kvroute_cells", REGION(cells), "Cells of 64 bytes in the region.",
	    NULL },
	{ "kvroute_cells_free", REGION(cells_free), "Free cells.", NULL },
	{ "kvroute_workers", REGION(workers), "Workers.", NULL },
	{ "kvroute_nodes", REGION(nodes), "Nodes of the radix tree.", NULL },
	{ "kvroute_entries", REGION(entries),
	    "Pairs of a node and a worker that holds it, also due ones.",
	    NULL },
	{ "kvroute_blocks", REGION(blocks), "Distinct blocks on record.",
	    NULL },
	{ "kvroute_held_blocks", REGION(held_blocks),
	    "Pairs of a block and a worker that holds it.", NULL },
	{ "kvroute_leases", REGION(leases), "Requests in flight.", NULL },
	{ "kvroute_clock_seconds", REGION(clock),
	    "Latest time of a writing call, by the callers' clock.", NULL },
	{ "kvroute_observes_total", REGION(observes), "Prompts observed.",
	    NULL },
	{ "kvroute_lease_opens_total", REGION(lease_opens), "Leases opened.",
	    NULL },
	{ "kvroute_lease_commits_total", REGION(lease_commits),
	    "Leases committed.", NULL },
	{ "kvroute_lease_finishes_total", REGION(lease_finishes),
	    "Leases finished.", NULL },
	{ "kvroute_lease_aborts_total", REGION(lease_aborts), "Leases aborted.",
	    NULL },
	{ "kvroute_reports_total", REGION(calibration.reports),
	    "Finished requests whose report was evidence.", NULL },
	{ "kvroute_unreported_total", REGION(calibration.unreported),
	    "Finished requests without evidence.", NULL },
	{ "kvroute_reported_tokens_total", REGION(calibration.reported_tokens),
	    "Tokens reported as cached.", NULL },
	{ "kvroute_report_predicted_tokens_total",
	    REGION(calibration.predicted_tokens),
	    "Tokens predicted as cached for the same requests.", NULL },
	{ "kvroute_over_tokens_total", REGION(calibration.over_tokens),
	    "Tokens predicted to be cached and not reported.", NULL },
	{ "kvroute_under_tokens_total", REGION(calibration.under_tokens),
	    "Tokens reported as cached and not predicted.", NULL },
	{ "kvroute_usage_prompt_tokens_total",
	    REGION(calibration.usage_prompt_tokens),
	    "Prompt tokens of all reports with a number.", NULL },
	{ "kvroute_usage_cached_tokens_total",
	    REGION(calibration.usage_cached_tokens),
	    "Of these, cached as reported.", NULL },
	{ "kvroute_lease_reaps_total", REGION(lease_reaps),
	    "Leases ended because of their age or a dead owner.", NULL },
	REMOVED("expired", expired),
	REMOVED("capacity", evicted_capacity),
	REMOVED("region", evicted_region),
	REMOVED("orphaned", orphaned),
	{ "kvroute_splits_total", REGION(splits),
	    "Runs split where prompts diverge.", NULL },
	{ "kvroute_merges_total", REGION(merges), "Runs merged.", NULL },
	{ "kvroute_extensions_total", REGION(extensions),
	    "Runs extended in place.", NULL },
	{ "kvroute_truncated_total", REGION(truncated),
	    "Prompts not recorded in full.", NULL },
	{ "kvroute_clock_back_total", REGION(clock_back),
	    "Calls with a time before that of an earlier call.", NULL },
	{ "kvroute_recoveries_total", REGION(recoveries),
	    "Times that the index was emptied: a writer died, or damage.",
	    NULL },
	{ "kvroute_busy_writes_total", REGION(busy_writes),
	    "Writes that failed instead of waiting for the lock.", NULL },
	{ "kvroute_read_retries_total", REGION(read_retries),
	    "Lock-free reads retried because of a concurrent write.", NULL },
	{ "kvroute_read_locks_total", REGION(read_locks),
	    "Lock-free reads that took the lock after many retries.", NULL },
	{ "kvroute_max_steps", REGION(max_steps),
	    "Most links followed by one writing call.", NULL },
	{ "kvroute_max_cells", REGION(max_cells),
	    "Most cells allocated by one writing call.", NULL },
	{ "kvroute_max_reclaimed", REGION(max_reclaimed),
	    "Most entries reclaimed or passed over by one writing call.",
	    NULL },
	{ "kvroute_affinity_entries", REGION(affinity_entries),
	    "Places for bindings of sessions.", NULL },
	{ "kvroute_affinity_bindings", REGION(affinity_bindings),
	    "Places that are taken, also by bindings that are not live.",
	    NULL },
	{ "kvroute_affinity_found_total", REGION(affinity_found),
	    "Leases opened with a live binding of their session.", NULL },
	{ "kvroute_affinity_moved_total", REGION(affinity_moved),
	    "Live bindings bound to another worker.", NULL },
	{ "kvroute_affinity_evicted_total", REGION(affinity_evicted),
	    "Live bindings that left for the room of others.", NULL },
	{ "kvroute_journal_bytes", REGION(journal_bytes),
	    "Size of the journal.", NULL },
	{ "kvroute_journal_written_bytes_total", REGION(journal_written),
	    "Bytes of all records of the journal.", NULL },
	{ "kvroute_journal_overruns_total", REGION(journal_overruns),
	    "Reads of the journal that found records lost.", NULL },
	{ "kvroute_journal_beat_seconds", REGION(journal_beat),
	    "Latest sign of life of the program that reads the journal.",
	    NULL },
	{ "kvroute_prompt_tokens_total", REGION(prompt_tokens),
	    "Prompt tokens of the leases opened.", NULL },
	{ "kvroute_predicted_tokens_total", REGION(predicted_tokens),
	    "Tokens of these prompts predicted to be cached.", NULL },
	{ "kvroute_best_tokens_total", REGION(best_tokens),
	    "The same on the eligible worker with the most.", NULL },
};

static const struct metric of_worker[] = {
	{ "kvroute_worker_entries", WORKER(entries),
	    "Nodes of the radix tree that the worker holds.", NULL },
	{ "kvroute_worker_held_blocks", WORKER(held_blocks),
	    "Blocks that the worker holds.", NULL },
	{ "kvroute_worker_requests", WORKER(requests),
	    "Requests running on the worker.", NULL },
	{ "kvroute_worker_prefill_tokens", WORKER(prefill_tokens),
	    "Tokens not yet prefilled.", NULL },
	{ "kvroute_worker_active_blocks", WORKER(active_blocks),
	    "Blocks of the prompts of running requests.", NULL },
	{ "kvroute_worker_output_blocks", WORKER(output_blocks),
	    "Generated blocks, and prompt blocks not recorded.", NULL },
	{ "kvroute_worker_lease_opens_total", WORKER(lease_opens),
	    "Leases opened on the worker.", NULL },
	{ "kvroute_worker_prompt_tokens_total", WORKER(prompt_tokens),
	    "Prompt tokens of these requests.", NULL },
	{ "kvroute_worker_predicted_tokens_total", WORKER(predicted_tokens),
	    "Tokens of these prompts predicted to be cached.", NULL },
	{ "kvroute_worker_best_tokens_total", WORKER(best_tokens),
	    "The same on the eligible worker with the most.", NULL },
	{ "kvroute_worker_overloaded", WORKER(overloaded),
	    "1 if the worker is above a threshold of the policy, else 0.",
	    NULL },
	{ "kvroute_worker_retain", RETAIN,
	    offsetof(struct kvr_worker_stats, retain),
	    "1 for the retention in force, 0 for the others.", NULL },
	{ "kvroute_worker_reports_total", WORKER(calibration.reports),
	    "Finished requests whose report was evidence.", NULL },
	{ "kvroute_worker_unreported_total", WORKER(calibration.unreported),
	    "Finished requests without evidence.", NULL },
	{ "kvroute_worker_reported_tokens_total",
	    WORKER(calibration.reported_tokens),
	    "Tokens reported as cached.", NULL },
	{ "kvroute_worker_report_predicted_tokens_total",
	    WORKER(calibration.predicted_tokens),
	    "Tokens predicted as cached for the same requests.", NULL },
	{ "kvroute_worker_over_tokens_total", WORKER(calibration.over_tokens),
	    "Tokens predicted to be cached and not reported.", NULL },
	{ "kvroute_worker_under_tokens_total", WORKER(calibration.under_tokens),
	    "Tokens reported as cached and not predicted.", NULL },
	{ "kvroute_worker_usage_prompt_tokens_total",
	    WORKER(calibration.usage_prompt_tokens),
	    "Prompt tokens of all reports with a number.", NULL },
	{ "kvroute_worker_usage_cached_tokens_total",
	    WORKER(calibration.usage_cached_tokens),
	    "Of these, cached as reported.", NULL },
	{ "kvroute_worker_learnt_capacity_tokens", WORKER(learnt_capacity),
	    "Capacity of the cache learnt from reports; 0: not yet.", NULL },
	{ "kvroute_worker_learnt_block_tokens", WORKER(learnt_block),
	    "Size of the engine's blocks learnt from reports; 0: not yet.",
	    NULL },
	{ "kvroute_worker_prefill_tokens_per_second", WORKER(prefill_rate),
	    "Current estimate of the prefill rate.", NULL },
	{ "kvroute_worker_backlog_seconds", WORKER(backlog),
	    "Estimated time for the prefill booked now.", NULL },
	{ "kvroute_worker_events_state", STATE,
	    offsetof(struct kvr_worker_stats, events_state),
	    "1 for the state of the worker's stream of events, 0 for the "
	    "others.", NULL },
	{ "kvroute_worker_events_batches_total", WORKER(events_batches),
	    "Batches of events applied.", NULL },
	{ "kvroute_worker_events_stored_total", WORKER(events_stored),
	    "Blocks of the engine stored, by its events.", NULL },
	{ "kvroute_worker_events_removed_total", WORKER(events_removed),
	    "Blocks of the engine removed, by its events.", NULL },
	{ "kvroute_worker_events_refused_total", WORKER(events_refused),
	    "Events that no use was made of.", NULL },
	{ "kvroute_worker_events_cleared_total", WORKER(events_cleared),
	    "Times that the engine dropped all blocks.", NULL },
	{ "kvroute_worker_events_restarts_total", WORKER(events_restarts),
	    "Times that the engine was seen to restart.", NULL },
	{ "kvroute_worker_events_lost_total", WORKER(events_lost),
	    "Gaps of the stream that could not be filled.", NULL },
	{ "kvroute_worker_events_next", WORKER(events_next),
	    "Sequence number of the next batch.", NULL },
	{ "kvroute_worker_events_held", WORKER(events_held),
	    "Blocks of the engine that it has, by its events; 0: not known.",
	    NULL },
	{ "kvroute_worker_events_capacity_tokens", WORKER(events_capacity),
	    "Capacity of the cache, counted by its events; 0: not yet.",
	    NULL },
	{ "kvroute_worker_events_blocks", WORKER(events_blocks),
	    "Blocks of the index that it has, by the engine's hashes; 0: not "
	    "known so.", NULL },
	{ "kvroute_worker_events_orphans_total", WORKER(events_orphans),
	    "Blocks stored behind one that is not held, or without room.",
	    NULL },
	{ "kvroute_worker_events_evicted_total", WORKER(events_evicted),
	    "Entries known by events that a full region took.", NULL },
	{ "kvroute_worker_events_unseen_total", WORKER(events_unseen),
	    "Blocks stored for scopes that no prompt had had.", NULL },
	{ "kvroute_worker_events_at_seconds", WORKER(events_at),
	    "Time of the latest batch, by the callers' clock.", NULL },
	{ "kvroute_worker_window_mode", WINDOW,
	    offsetof(struct kvr_worker_stats, window_mode),
	    "1 for the mode of sliding windows, 0 for the others.", NULL }
};

enum {
	OF_REGION = sizeof(of_region) / sizeof(of_region[0]),
	OF_WORKER = sizeof(of_worker) / sizeof(of_worker[0])
};

/* ------------------------------------------------------------- samples --- */

struct output {
	char *text;
	size_t capacity;
	size_t written;
	size_t length; /* of the whole text */
};

/* After the first line that does not fit, none is written. */
static void
put_line(struct output *o, struct line *l)
{
	add_char(l, '\n');
	if (o->written == o->length &&
	    l->length <= o->capacity - o->written) {
		memcpy(o->text + o->written, l->text, l->length);
		o->written += l->length;
	}
	o->length += l->length;
	l->length = 0;
}

/* The name has more before it. */
static bool
is_counter(const char *name)
{
	static const char end[] = "_total";
	size_t length = strlen(name), n = sizeof(end) - 1;

	return memcmp(name + length - n, end, n) == 0;
}

static void
put_head(struct output *o, const struct metric *m)
{
	struct line l;

	l.length = 0;
	add_text(&l, "# HELP ");
	add_text(&l, m->name);
	add_char(&l, ' ');
	add_text(&l, m->help);
	put_line(o, &l);
	add_text(&l, "# TYPE ");
	add_text(&l, m->name);
	add_text(&l, is_counter(m->name) ? " counter" : " gauge");
	put_line(o, &l);
}

/* The value of the metric's field in `stats`. */
static void
add_value(struct line *l, const struct metric *m, const void *stats)
{
	const char *field = (const char *)stats + m->offset;
	uint64_t whole = 0;
	uint32_t small = 0;
	double real = 0;

	switch (m->kind) {
	case UINT64:
		memcpy(&whole, field, sizeof(whole));
		add_decimal(l, whole, 0);
		break;
	case NANOSECONDS: /* -1: none; others are never negative */
		memcpy(&whole, field, sizeof(whole));
		add_decimal(l, whole > INT64_MAX ? 0 : whole, 9);
		break;
	case REAL:
		memcpy(&real, field, sizeof(real));
		add_real(l, real);
		break;
	default:
		memcpy(&small, field, sizeof(small));
		add_decimal(l, small, 0);
	}
}

/* ---------------------------------------------------------- the region --- */

/* Did a lock-free read fail because of a writer, and are tries left? */
static bool
try_again(int error, uint32_t *tries)
{
	return error == KVR_EBUSY && ++*tries < TRIES_MAX;
}

static void
add_reason(struct line *l, const struct metric *m)
{
	if (m->reason == NULL)
		return;
	add_text(l, "{reason=\"");
	add_text(l, m->reason);
	add_text(l, "\"}");
}

static int
put_region(struct output *o, const struct kvr *k)
{
	struct kvr_stats s = { .size = sizeof(s) };
	uint32_t i, tries = 0;
	struct line l;
	int error;

	l.length = 0;
	do {
		error = kvr_stats_get(k, &s);
	} while (try_again(error, &tries));
	for (i = 0; i < OF_REGION && error == KVR_OK; i++) {
		if (i == 0 || strcmp(of_region[i].name,
		    of_region[i - 1].name) != 0)
			put_head(o, &of_region[i]);
		add_text(&l, of_region[i].name);
		add_reason(&l, &of_region[i]);
		add_char(&l, ' ');
		add_value(&l, &of_region[i], &s);
		put_line(o, &l);
	}
	return error;
}

/* --------------------------------------------------------- the workers --- */

/* The fields of a worker that lines show. */
struct shown {
	struct kvr_worker_stats stats;
	unsigned char name[KVR_NAME_MAX];
	size_t name_length;
	uint32_t rank;
};

/* The workers at one moment, and the fields shown of each. */
struct crowd {
	struct shown *shown;
	uint32_t n_shown;
	uint32_t count;
	uint32_t spare; /* places below it may be free */
	uint64_t id[KVR_WORKERS_MAX];
};

/* Only in a damaged region is the place of a name taken: then any will do. */
static void
crowd_add(const struct kvr *k, struct crowd *who, uint32_t slot)
{
	uint32_t name = read_once(slot_at(k, slot)->name);
	uint32_t place = (name - 1) % KVR_WORKERS_MAX;

	while (who->id[place] != 0 && who->spare > 0)
		place = --who->spare;
	who->id[place] = worker_id(k, slot);
}

static void
crowd_close_up(struct crowd *who)
{
	uint32_t i;

	who->count = 0;
	for (i = 0; i < KVR_WORKERS_MAX; i++)
		if (who->id[i] != 0)
			who->id[who->count++] = who->id[i];
}

static int
crowd_note(const struct kvr *k, struct crowd *who)
{
	uint32_t slot, tries = 0;
	struct txn c;
	int error;

	do {
		memset(who, 0, sizeof(*who));
		who->spare = KVR_WORKERS_MAX;
		error = txn_read_locked(k, &c, 0);
		if (error != KVR_OK)
			continue;
		for (slot = 0; slot < slots_used(k); slot++)
			if (slot_in_use(k, slot))
				crowd_add(k, who, slot);
		error = txn_read_end(k, &c, KVR_OK);
	} while (try_again(error, &tries));
	crowd_close_up(who);
	return error;
}

/* Name and rank never change, so a separate read is consistent. */
static int
shown_name(const struct kvr *k, uint64_t id, struct shown *w)
{
	char name[KVR_NAME_MAX];
	struct txn c;
	uint32_t slot;
	int error = txn_read_locked(k, &c, 0);

	if (error != KVR_OK)
		return error;
	if (!worker_slot(k, id, &slot))
		return txn_read_end(k, &c, KVR_EWORKER);
	w->name_length = worker_name(k, slot, name);
	w->rank = read_once(slot_at(k, slot)->rank);
	memcpy(w->name, name, w->name_length);
	return txn_read_end(k, &c, KVR_OK);
}

static int
shown_read(const struct kvr *k, uint64_t id, struct shown *w)
{
	uint32_t tries = 0;
	int error;

	w->stats.size = sizeof(w->stats);
	do {
		error = kvr_worker_stats_get(k, id, &w->stats);
		if (error == KVR_OK)
			error = shown_name(k, id, w);
	} while (try_again(error, &tries));
	return error;
}

/* Skips workers removed meanwhile. The caller frees `shown`. */
static int
crowd_read(const struct kvr *k, struct crowd *who)
{
	uint32_t i;
	int error;

	who->n_shown = 0;
	who->shown = malloc((who->count + 1) * sizeof(*who->shown));
	if (who->shown == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < who->count; i++) {
		error = shown_read(k, who->id[i], &who->shown[who->n_shown]);
		if (error == KVR_OK)
			who->n_shown++;
		else if (error != KVR_EWORKER)
			return error;
	}
	return KVR_OK;
}

static void
add_labels(struct line *l, const struct metric *m, const struct shown *w)
{
	add_text(l, m->name);
	add_text(l, "{worker=\"");
	add_name(l, w->name, w->name_length);
	add_text(l, "\",rank=\"");
	add_decimal(l, w->rank, 0);
	add_char(l, '"');
}

/* One sample per value, by name; the one that holds is 1. */
struct choices {
	const char *label;
	const char *const *names; /* NULL: no value */
	uint32_t n;
};

static void
put_choice(struct output *o, const struct metric *m, const struct shown *w,
    const struct choices *all)
{
	const char *field = (const char *)&w->stats + m->offset;
	uint32_t i, value;
	struct line l;

	memcpy(&value, field, sizeof(value));
	l.length = 0;
	for (i = 0; i < all->n; i++) {
		if (all->names[i] == NULL)
			continue;
		add_labels(&l, m, w);
		add_text(&l, all->label);
		add_text(&l, all->names[i]);
		add_text(&l, value == i ? "\"} 1" : "\"} 0");
		put_line(o, &l);
	}
}

static const char *const retentions[] = { [KVR_RETAIN_TTL] = "ttl",
	[KVR_RETAIN_CAPACITY] = "capacity",
	[KVR_RETAIN_FEEDBACK] = "feedback",
	[KVR_RETAIN_EVENTS] = "events" };
static const char *const states[] = { [KVR_EVENTS_OFF] = "off",
	[KVR_EVENTS_COMPLETE] = "complete",
	[KVR_EVENTS_DEGRADED] = "degraded" };

static const char *const windows[] = { [KVR_WINDOW_FULL] = "full",
	[KVR_WINDOW_BOUNDARY] = "boundary", [KVR_WINDOW_DENSE] = "dense",
	[KVR_WINDOW_DUAL] = "dual" };

static const struct choices of_retain = { ",retain=\"", retentions,
	sizeof(retentions) / sizeof(retentions[0]) };
static const struct choices of_state = { ",state=\"", states,
	sizeof(states) / sizeof(states[0]) };
static const struct choices of_window = { ",mode=\"", windows,
	sizeof(windows) / sizeof(windows[0]) };

static void
put_worker(struct output *o, const struct metric *m, const struct shown *w)
{
	struct line l;

	if (m->kind >= RETAIN) {
		put_choice(o, m, w, m->kind == RETAIN ? &of_retain
		    : m->kind == STATE ? &of_state : &of_window);
		return;
	}
	l.length = 0;
	add_labels(&l, m, w);
	add_text(&l, "} ");
	add_value(&l, m, &w->stats);
	put_line(o, &l);
}

static void
put_metric(struct output *o, const struct metric *m, const struct crowd *who)
{
	uint32_t i;

	put_head(o, m);
	for (i = 0; i < who->n_shown; i++)
		put_worker(o, m, &who->shown[i]);
}

/* ------------------------------------------------------------ the text --- */

int
kvr_metrics(const struct kvr *k, char *text, size_t capacity, size_t *length)
{
	struct output o = { .text = text, .capacity = capacity };
	struct crowd who = { .shown = NULL };
	uint32_t i;
	int error;

	if (k == NULL || length == NULL || (text == NULL && capacity > 0))
		return KVR_EINVAL;
	error = put_region(&o, k);
	if (error == KVR_OK)
		error = crowd_note(k, &who);
	if (error == KVR_OK)
		error = crowd_read(k, &who);
	for (i = 0; i < OF_WORKER && error == KVR_OK; i++)
		put_metric(&o, &of_worker[i], &who);
	free(who.shown);
	if (error != KVR_OK)
		return error;
	/* a truncated text is still valid: empty lines are ignored */
	if (o.written < o.length && o.written < capacity)
		memset(text + o.written, '\n', capacity - o.written);
	*length = o.length;
	return KVR_OK;
}
