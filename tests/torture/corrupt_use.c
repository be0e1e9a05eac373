/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * corrupt_use.c - every public call, on a region in which anything is wrong.
 *
 * Results may be as wrong as the region. These rules must hold: a call returns
 * success or a defined error; it writes no more than it was given room for; it
 * ends, and soon; the documented loops of callers end too (workers, entries,
 * expire while something is left); the lock is free afterwards; and a region
 * that was cleared can be used as before.
 */
#include "name.h"
#include "worker.h"

#include "corrupt.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum { CALLS = 40, SOME = 8, LEAPS = 16 };

bool
corrupt_fail(struct corrupt *c, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(c->why, c->room, format, list);
	va_end(list);
	return false;
}

static int64_t
processor_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/*
 * Records how long a call took, with all work since the call before: a clock
 * that is read twice takes as long as some of them. The result must be a
 * defined error or 0.
 */
static int
took(struct corrupt *c, const char *name, int error)
{
	int64_t now = processor_time(), time = now - c->start;

	c->start = now;
	c->totals->calls++;
	if (time > c->totals->slowest) {
		c->totals->slowest = time;
		c->totals->slow = name;
	}
	if (error > KVR_OK || error < KVR_EOVERRUN)
		corrupt_fail(c, "%s gave %d", name, error);
	return error;
}

#define CALL(c, name, ...) took(c, #name, name(__VA_ARGS__))

/* ---------------------------------------------------------------- loops --- */

/* Returns some worker's id, by the documented walk. */
static uint64_t
some_worker(struct corrupt *c)
{
	uint32_t left = ops_pick(c->s, CORRUPT_WORKERS), most;
	uint64_t id = 0, last = 0;

	for (most = 2 * KVR_WORKERS_MAX; most > 0; most--) {
		if (CALL(c, kvr_worker_next, c->k, &id) != KVR_OK || id == 0)
			return last;
		last = id;
		if (left-- == 0)
			return id;
	}
	corrupt_fail(c, "workers without end");
	return last;
}

static uint64_t
some_lease(struct corrupt *c)
{
	if (ops_pick(c->s, 16) == 0)
		return corrupt_word(c->s);
	return c->w->leases - ops_pick(c->s, 64);
}

static void
walk_entries(struct corrupt *c)
{
	struct kvr_entry entry[SOME];
	uint64_t cursor = 0, before, most = 4 * c->k->layout.cells + 64;
	uint32_t dear = 0, leap = c->k->layout.entry_buckets / LEAPS + 1;
	size_t n;

	do {
		before = cursor;
		if (CALL(c, kvr_entries, c->k, &cursor, c->now, entry,
		    sizeof(entry[0]), SOME, &n) != KVR_OK)
			return;
		if (n > SOME || (cursor != 0 && cursor <= before) ||
		    most-- == 0) {
			corrupt_fail(c, "entries: %zu, %llx after %llx", n,
			    (unsigned long long)cursor,
			    (unsigned long long)before);
			return;
		}
		dear += n < SOME;
		if (cursor != 0 && c->totals->dear > 0 &&
		    dear > c->totals->dear)
			cursor += (uint64_t)leap << 32;
	} while (cursor != 0);
}

static void
expire_all(struct corrupt *c)
{
	uint32_t left, most = c->k->layout.cells + 16;
	uint32_t budget = ops_pick(c->s, 4) == 0 ? UINT32_MAX : 64;

	do {
		if (CALL(c, kvr_expire, c->k, c->now, budget, &left) != KVR_OK)
			return;
		/* a peer that writes on can make more of it */
		if (most-- == 0 && !c->peer)
			corrupt_fail(c, "more is due for ever");
		if (most == UINT32_MAX)
			return;
	} while (left != 0);
}

/* ---------------------------------------------------------------- calls --- */

static void
look_at(struct corrupt *c)
{
	struct kvr_overlap overlap[SOME];
	struct kvr_candidate candidate[SOME];
	struct kvr_decision d = { .size = sizeof(d) };
	size_t n;

	switch (ops_pick(c->s, 4)) {
	case 0:
		(void)CALL(c, kvr_candidates, c->k, c->p, NULL, c->now,
		    candidate, sizeof(candidate[0]), SOME, &n);
		break;
	case 1:
		(void)CALL(c, kvr_route, c->k, c->p, NULL, c->now, &d);
		break;
	case 2:
		if (CALL(c, kvr_match, c->k, c->p, c->now, overlap,
		    sizeof(overlap[0]), SOME, &n) == KVR_OK)
			(void)CALL(c, kvr_choose, c->k, c->p, NULL, overlap,
			    sizeof(overlap[0]), n < SOME ? n : SOME, c->now,
			    &d);
		break;
	default:
		(void)CALL(c, kvr_match, c->k, c->p, c->now, overlap,
		    sizeof(overlap[0]), SOME, &n);
	}
}

/* A request that uses every field. */
static void
route_oddly(struct corrupt *c)
{
	struct kvr_request r;
	struct kvr_decision d = { .size = sizeof(d) };

	corrupt_request(c->now, &r);
	r.stage = ops_pick(c->s, 3);
	r.temperature = ops_pick(c->s, 2);
	r.overlap_credit = (double)ops_pick(c->s, 4) - 1;
	r.pinned = ops_pick(c->s, 4) == 0 ? some_worker(c) : 0;
	r.n_preferences = ops_pick(c->s, 2);
	r.preferences[0].taints = 1;
	r.preferences[0].weight = 0.7;
	r.n_excluded = 1;
	r.excluded[0] = some_worker(c);
	(void)CALL(c, kvr_route, c->k, c->p, &r, c->now, &d);
}

static void
record(struct corrupt *c)
{
	struct kvr_decision d = { .size = sizeof(d) };
	struct kvr_request r;
	uint32_t recorded;
	int error;

	corrupt_request(c->now, &r);
	if (ops_pick(c->s, 2) == 0) {
		(void)CALL(c, kvr_observe, c->k, c->p, some_worker(c), c->now,
		    0, &recorded);
		return;
	}
	error = ops_pick(c->s, 2) == 0
	    ? CALL(c, kvr_lease_open, c->k, c->p, &r, c->now, &d)
	    : CALL(c, kvr_lease_open_on, c->k, c->p, &r, some_worker(c),
		  c->now, &d);
	if (error == KVR_OK && d.lease != 0)
		(void)CALL(c, kvr_lease_commit, c->k, d.lease, c->now, 0);
}

static void
finish(struct corrupt *c, uint64_t lease)
{
	struct kvr_report r = { .size = sizeof(r) };

	r.kind = ops_pick(c->s, 3);
	r.flags = ops_pick(c->s, 2);
	r.endpoint = ops_pick(c->s, 2);
	r.cached_tokens = ops_pick(c->s, 4) * 16;
	r.prompt_tokens = r.cached_tokens + ops_pick(c->s, 256);
	r.completion_tokens = ops_pick(c->s, 64);
	(void)CALL(c, kvr_lease_finish, c->k, lease, &r, c->now, 0);
}

static void
go_on(struct corrupt *c)
{
	uint64_t lease = some_lease(c), owners[2], at = ops_pick(c->s, 40);
	uint32_t ended;
	size_t n;

	switch (ops_pick(c->s, 7)) {
	case 0:
		(void)CALL(c, kvr_lease_commit, c->k, lease, c->now, 0);
		break;
	case 1:
		(void)CALL(c, kvr_lease_first_token, c->k, lease, c->now, 0);
		break;
	case 2:
		(void)CALL(c, kvr_lease_extend, c->k, lease, c->p, c->now, 0);
		break;
	case 3:
		(void)CALL(c, kvr_lease_output, c->k, lease,
		    ops_pick(c->s, 256) << 24, c->now, 0);
		break;
	case 4:
		finish(c, lease);
		break;
	case 5:
		(void)CALL(c, kvr_lease_abort, c->k, lease, c->now, 0);
		break;
	default:
		(void)CALL(c, kvr_owner_list, c->k, &at, owners, 2, &n);
		(void)CALL(c, kvr_owner_reap, c->k, ops_pick(c->s, 2), c->now,
		    &at, &ended);
	}
}

/* The next batch, whatever comes next, or one that comes too late. */
static void
tell_events(struct corrupt *c, uint64_t id, uint32_t much, uint32_t late)
{
	struct kvr_event_batch b = { .size = sizeof(b), .digest = 1 + late };
	struct kvr_event_result r = { .size = sizeof(r) };
	struct kvr_worker_stats stats = { .size = sizeof(stats) };
	struct kvr_event e[2];
	uint64_t names[CORRUPT_NAMES];
	uint32_t tokens[CORRUPT_NAMES];

	(void)CALL(c, kvr_worker_stats_get, c->k, id, &stats);
	b.seq = late != 0 && stats.events_next > 0 ? stats.events_next - 1
	    : stats.events_next;
	corrupt_events(c->w->p, much, &e[0], names, tokens);
	e[1] = e[0];
	e[1].kind = much == 3 ? KVR_EVENT_CLEARED : KVR_EVENT_REMOVED;
	e[1].hashes_at = (uint64_t)c->now % 8;
	e[1].hashes -= 8;
	e[1].tokens = 0;
	(void)CALL(c, kvr_events_apply, c->k, id, &b, e, sizeof(e[0]), 2,
	    names, CORRUPT_NAMES, tokens, CORRUPT_NAMES, c->now, 0, &r);
	if (late != 0)
		(void)CALL(c, kvr_events_lost, c->k, id, b.seq + much);
	if (much == 2 && late != 0)
		(void)CALL(c, kvr_events_off, c->k, id);
}

static void
ask_worker(struct corrupt *c, uint64_t id)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	struct kvr_worker_stats stats = { .size = sizeof(stats) };
	struct kvr_load load = { .size = sizeof(load) };
	char name[KVR_NAME_MAX];
	size_t length = 1;

	(void)CALL(c, kvr_worker_stats_get, c->k, id, &stats);
	if (CALL(c, kvr_worker_name, c->k, id, name, sizeof(name), &length)
	    == KVR_OK && length > sizeof(name))
		corrupt_fail(c, "a name of %zu bytes", length);
	else if (length > 0)
		(void)CALL(c, kvr_worker_find, c->k, name, length, 0, &id);
	if (CALL(c, kvr_worker_get, c->k, id, &facts) == KVR_OK) {
		facts.retain = ops_pick(c->s, KVR_RETAIN_FEEDBACK + 1);
		facts.eviction = ops_pick(c->s, 2);
		(void)CALL(c, kvr_worker_set, c->k, id, &facts);
	}
	if (facts.eviction != 0)
		(void)CALL(c, kvr_worker_forget, c->k, id);
	(void)CALL(c, kvr_affinity_bind, c->k, 1 + (uint64_t)c->now % 24, id,
	    c->now % 2, c->now, 0);
	(void)CALL(c, kvr_affinity_find, c->k, 1 + (uint64_t)c->now % 7,
	    c->now, &id);
	/* by the draws above: a corpus keeps its meaning */
	tell_events(c, id, facts.retain, facts.eviction);
	load.prefill_tokens = load.active_blocks = load.requests =
	    load.used_blocks = 5 * facts.eviction;
	(void)CALL(c, kvr_worker_set_load, c->k, id,
	    facts.retain % KVR_LOAD_SOURCES, &load);
}

static void
change_worker(struct corrupt *c)
{
	char name = (char)('A' + ops_pick(c->s, 26));
	uint64_t id = some_worker(c);

	switch (ops_pick(c->s, 4)) {
	case 0:
		(void)CALL(c, kvr_worker_remove, c->k, id);
		break;
	case 1:
		(void)CALL(c, kvr_worker_reset, c->k, id, &id);
		break;
	case 2:
		(void)CALL(c, kvr_worker_add, c->k, &name, 1, NULL, &id);
		break;
	default:
		ask_worker(c, id);
	}
}

/* The text has whole lines, and stays within its buffer. */
static void
read_metrics(struct corrupt *c)
{
	char text[2048];
	size_t room = ops_pick(c->s, 256) * 7, length = 0, end;

	memset(text, '?', sizeof(text));
	if (CALL(c, kvr_metrics, c->k, text, room, &length) != KVR_OK)
		return;
	end = length < room ? length : room;
	if (length == 0 || text[room] != '?' ||
	    (end > 0 && text[end - 1] != '\n'))
		corrupt_fail(c, "metrics: %zu bytes in %zu", length, room);
}

/*
 * The next record, or any; a corpus keeps its meaning. Only a place of the
 * caller's, which may be beyond all that was written, is corrected backwards.
 */
static void
read_journal(struct corrupt *c)
{
	uint64_t hashes[SOME], at = c->now % 2 == 0 ? 0 : (uint64_t)c->now * 8;
	struct kvr_record r = { .size = sizeof(r) };
	uint32_t i;

	for (i = 0; i < SOME; i++) {
		uint64_t before = at;
		int error = CALL(c, kvr_journal_read, c->k, &at, c->now, &r,
		    hashes, SOME);

		if (error != KVR_OK && error != KVR_EOVERRUN)
			return;
		if (at <= before && before != 0 &&
		    (error == KVR_OK || i > 0))
			corrupt_fail(c, "journal: %llx after %llx",
			    (unsigned long long)at,
			    (unsigned long long)before);
	}
}

/* No more than there is room for, and an end. */
static void
list_tenants(struct corrupt *c)
{
	struct kvr_tenant row[SOME];
	uint64_t cursor = 0;
	uint32_t i;
	size_t n = 0;

	for (i = 0; i <= KVR_TENANTS_MAX; i++) {
		if (CALL(c, kvr_tenant_list, c->k, &cursor, row,
		    sizeof(row[0]), SOME, &n) != KVR_OK || cursor == 0)
			return;
		if (n > SOME)
			corrupt_fail(c, "%zu tenants", n);
	}
	corrupt_fail(c, "tenants without an end");
}

static void
ask_region(struct corrupt *c)
{
	struct kvr_stats stats = { .size = sizeof(stats) };
	struct kvr_policy policy = { .size = sizeof(policy) };
	struct kvr_options options = { .size = sizeof(options) };
	int64_t due;

	(void)CALL(c, kvr_stats_get, c->k, &stats);
	read_metrics(c);
	(void)CALL(c, kvr_journal_beat, c->k, c->now);
	read_journal(c);
	list_tenants(c);
	(void)CALL(c, kvr_next_expiry, c->k, &due);
	(void)CALL(c, kvr_options_get, c->k, &options);
	if (CALL(c, kvr_policy_get, c->k, &policy) == KVR_OK)
		(void)CALL(c, kvr_policy_set, c->k, &policy);
	(void)kvr_policy_init(&policy, sizeof(policy));
	policy.cost = ops_pick(c->s, KVR_COST_DYNAMO + 1);
	policy.overload_blocks_fraction = policy.overload_prefill_fraction =
	    0.5;
	(void)CALL(c, kvr_policy_set, c->k, &policy);
}

static bool
check(struct corrupt *c)
{
	int error = CALL(c, kvr_check, c->k);

	if (error != KVR_OK && error != KVR_ECORRUPT &&
	    error != KVR_EINEXACT && error != KVR_ECLOCK)
		return corrupt_fail(c, "check: %s", kvr_errname(error));
	return error == KVR_OK;
}

/* ---------------------------------------------------------- all of them --- */

static void
any_call(struct corrupt *c)
{
	static void (*const calls[])(struct corrupt *) = {
		look_at, look_at, look_at, route_oddly,
		record, record, record, record,
		go_on, go_on, go_on, go_on,
		change_worker, ask_region, walk_entries, expire_all
	};

	if (ops_pick(c->s, 2) == 0)
		(void)corrupt_say(c->s, c->p);
	c->now += ops_pick(c->s, 200);
	corrupt_peer(c, true);
	calls[ops_pick(c->s, sizeof(calls) / sizeof(calls[0]))](c);
}

/* The lock is free, no change is under way. */
static bool
at_rest(struct corrupt *c)
{
	struct region *r = c->k->region;

	if (atomic_load(&r->lock) != 0)
		return corrupt_fail(c, "the lock is held");
	if ((atomic_load(&r->seq) & 1) != 0)
		return corrupt_fail(c, "a change is under way");
	return true;
}

/* Cleared, it records a path again for whichever workers exist. */
static void
begin_anew(struct corrupt *c)
{
	struct kvr_stats s = { .size = sizeof(s) };

	(void)CALL(c, kvr_clear, c->k);
	(void)CALL(c, kvr_stats_get, c->k, &s);
	if (s.nodes != 0 || s.entries != 0 || s.leases != 0 ||
	    s.cells_free + 1 != s.cells)
		corrupt_fail(c, "cleared, and not empty");
	walk_entries(c);
	record(c);
	walk_entries(c);
}

/* A lease on any worker; on a given one if damage left none eligible. */
static int
open_lease(struct corrupt *c, struct kvr_decision *d)
{
	uint64_t id = some_worker(c);
	int error;

	if (id == 0)
		(void)CALL(c, kvr_worker_add, c->k, "only", 4, NULL, &id);
	error = CALL(c, kvr_lease_open, c->k, c->p, NULL, c->now, d);
	if (error == KVR_ENOWORKER || error == KVR_EALLOVERLOADED)
		error = CALL(c, kvr_lease_open_on, c->k, c->p, NULL, id,
		    c->now, d);
	return error;
}

/* A recovered region serves a request from beginning to end. */
static void
serve_recovered(struct corrupt *c)
{
	struct kvr_decision d = { .size = sizeof(d) };
	uint64_t before = c->k->region->counts.recoveries;
	int error;

	if (corrupt_say(c->s, c->p) != KVR_OK)
		return;
	atomic_fetch_or(&c->k->region->seq, 1); /* a writer has died */
	(void)CALL(c, kvr_clear, c->k);
	if (c->k->region->counts.recoveries == before)
		corrupt_fail(c, "a writer died, and nothing recovered");
	error = open_lease(c, &d);
	if (error != KVR_OK || d.lease == 0)
		corrupt_fail(c, "recovered; open: %s", kvr_errname(error));
	else if ((error = CALL(c, kvr_lease_commit, c->k, d.lease, c->now,
	    0)) != KVR_OK)
		corrupt_fail(c, "recovered; commit: %s", kvr_errname(error));
	else if ((error = CALL(c, kvr_lease_finish, c->k, d.lease, NULL,
	    c->now, 0)) != KVR_OK)
		corrupt_fail(c, "recovered; finish: %s", kvr_errname(error));
}

/* Two workers of one name: they are ambiguous. */
static bool
twins(const struct kvr *k)
{
	uint32_t i, slot;

	for (i = 0; i < k->layout.names; i++) {
		const struct name *n = &k->names[i];

		if (n->used != 0 && name_find(k, n->text, n->length,
		    slot_at(k, n->slot)->rank, &slot) && slot != n->slot)
			return true;
	}
	return false;
}

/*
 * A sound region is found to be sound; after a writer's death in the middle of
 * a change it is sound again after the next call.
 */
static void
check_first(struct corrupt *c)
{
	bool odd = (atomic_load(&c->k->region->seq) & 1) != 0, sound;

	if (!odd && c->mode != CORRUPT_NONE && ops_pick(c->s, 4) != 0)
		return;
	sound = check(c);
	c->totals->unseen += sound;
	if (!sound && c->mode == CORRUPT_NONE)
		corrupt_fail(c, "whole, and found not to be");
	else if (!sound && odd && !twins(c->k))
		corrupt_fail(c, "not mended after a death");
}

bool
corrupt_use(struct corrupt *c)
{
	uint32_t calls = 1 + ops_pick(c->s, CALLS);
	uint64_t emptied = c->k->region->counts.recoveries;

	c->start = processor_time();
	(void)corrupt_say(c->s, c->p);
	if (c->mode != CORRUPT_PEER)
		check_first(c);
	for (; calls > 0 && c->why[0] == '\0'; calls--)
		any_call(c);
	corrupt_peer(c, false);
	if (c->why[0] == '\0')
		walk_entries(c);
	if (c->why[0] == '\0')
		expire_all(c);
	if (c->why[0] == '\0' && !check(c) && c->mode == CORRUPT_NONE)
		corrupt_fail(c, "not whole any more");
	if (c->why[0] == '\0')
		begin_anew(c);
	c->totals->emptied += c->k->region->counts.recoveries != emptied;
	if (c->why[0] == '\0')
		serve_recovered(c);
	return c->why[0] == '\0' && at_rest(c);
}
