/* SPDX-License-Identifier: BSD-2-Clause */
/* members.c - see members.h. */
#include "members.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "roles.h"
#include "shared.h"
#include "stale.h"

enum {
	ADD_TRIES = 1000,       /* of the library, if it is busy, at a start; */
	JOIN_TRIES = 16,        /* and later, while the lock is held */
	JOINS = 8               /* workers that one look adds */
};

/* ---------------------------------------------------------------- facts --- */

static void
windows_keep(const struct server_facts *told, const struct kvr_worker *now,
    struct kvr_worker *facts)
{
	if (told->windows != KVR_WINDOW_FULL &&
	    now->window_mode == told->windows) {
		facts->window_mode = now->window_mode;
		facts->window_tokens = now->window_tokens;
	}
	if (facts->window_capacity == 0 &&
	    facts->window_mode == KVR_WINDOW_DUAL)
		facts->window_capacity = now->window_capacity;
}

void
members_read_keep(const struct server_facts *told,
    const struct kvr_worker *now, struct kvr_worker *facts)
{
	if (!told->ask)
		return;
	facts->capacity_tokens = now->capacity_tokens;
	if (facts->block_tokens == 0)
		facts->block_tokens = now->block_tokens;
	if (!told->evicts)
		facts->eviction = now->eviction;
	windows_keep(told, now, facts);
}

/* As configured; `now`: the facts of a worker that exists, or NULL. */
static void
facts_make(const struct known *known, uint32_t rank,
    const struct kvr_worker *now, struct kvr_worker *facts)
{
	struct server_facts *told = known->facts;

	if (told != NULL) {
		*facts = roles_worker(told);
		told->used = true;
	} else {
		(void)kvr_worker_init(facts, sizeof(*facts));
	}
	facts->rank = rank;
	facts->weight = known->weight > 0 ? (double)known->weight : 1.0;
	if (now == NULL)
		return;
	if (told != NULL)
		members_read_keep(told, now, facts);
	facts->state = now->state;
}

static int
rank_add(struct kvr *k, const struct known *known, uint32_t rank, int tries)
{
	struct kvr_worker facts;
	uint64_t id;
	int error;

	facts_make(known, rank, NULL, &facts);
	do /* the record of earlier workers goes a piece at a time */
		error = kvr_worker_add(k, known->name, known->name_len, &facts,
		    &id);
	while (error == KVR_EBUSY && --tries > 0);
	/* Another process was faster. */
	return error == KVR_EEXIST ? KVR_OK : error;
}

/* Adds it, or sets the configured facts, and keeps a state set by order. */
static int
rank_ensure(struct kvr *k, const struct known *known, uint32_t rank,
    int tries)
{
	struct kvr_worker facts, now = { .size = sizeof(now) };
	uint64_t id;
	int error;

	error = kvr_worker_find(k, known->name, known->name_len, rank, &id);
	if (error == KVR_EBUSY)
		return error;
	if (error != KVR_OK)
		return rank_add(k, known, rank, tries);
	error = kvr_worker_get(k, id, &now);
	if (error != KVR_OK)
		return error;
	facts_make(known, rank, &now, &facts);
	return kvr_worker_set(k, id, &facts);
}

static int
ranks_ensure(struct kvr *k, const struct known *known, int tries)
{
	int error = KVR_OK;
	uint32_t rank;

	for (rank = 0; rank < known->ranks && error == KVR_OK; rank++)
		error = rank_ensure(k, known, rank, tries);
	return error;
}

static void
error_log(const struct fleet *f, const struct known *known, int error,
    void *log)
{
	fleet_log(f, log, FLEET_ERROR, "worker \"%.*s\": %s",
	    (int)known->name_len, known->name, kvr_strerror(error));
}

/* ---------------------------------------------------------------- start --- */

static bool
has_requests(struct kvr *k, uint64_t id)
{
	struct kvr_worker_stats s = { .size = sizeof(s) };

	return kvr_worker_stats_get(k, id, &s) != KVR_OK || s.requests > 0;
}

/*
 * Requests of before go on in processes that end: their server keeps its record
 * meanwhile, for it may come back with the next configuration. members_leave()
 * removes it later, and `full` at once.
 */
static void
workers_drop(struct fleet *f, struct kvr *k, bool full, void *log)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	char name[KVR_NAME_MAX];
	uint64_t id = 0;
	size_t len;

	while (kvr_worker_next(k, &id) == KVR_OK && id != 0) {
		if (kvr_worker_name(k, id, name, sizeof(name), &len) !=
		    KVR_OK || kvr_worker_get(k, id, &facts) != KVR_OK ||
		    facts.rank < known_ranks_named(f, name, len) ||
		    (!full && has_requests(k, id)))
			continue;
		fleet_log(f, log, FLEET_NOTICE, "worker %.*s, rank %" PRIu32
		    ", removed", (int)len, name, facts.rank);
		(void)kvr_worker_remove(k, id);
	}
}

/*
 * Workers are dropped first, because the table of workers may be full. Workers
 * of servers that may be back soon are left to members_leave().
 */
void
members_sync(struct fleet *f, struct members *m, struct kvr *k, void *log)
{
	struct known *known, *end = f->known + f->n_known;
	int error;

	if (!m->resolves)
		workers_drop(f, k, false, log);
	for (known = f->known; known < end; known++) {
		error = ranks_ensure(k, known, ADD_TRIES);
		if (error == KVR_EFULL) {
			workers_drop(f, k, true, log);
			error = ranks_ensure(k, known, ADD_TRIES);
		}
		if (error != KVR_OK)
			error_log(f, known, error, log);
	}
	f->shared->epoch++;
}

/* ---------------------------------------------------------------- leave --- */

/* Since when it has been without a server; it is off the list. */
static int64_t
left_take(struct members *m, uint64_t id, int64_t now)
{
	size_t i;

	for (i = 0; i < m->n_left; i++)
		if (m->left[i].id == id) {
			m->left[i].id = 0;
			return m->left[i].since;
		}
	return now;
}

/* Behind n others: those of the list that could not be looked at. */
static size_t
left_keep(const struct members *m, struct member_left *left, size_t n,
    size_t most)
{
	size_t i;

	for (i = 0; i < m->n_left && n < most; i++)
		if (m->left[i].id != 0)
			left[n++] = m->left[i];
	return n;
}

/* Without a server: may it go, or must it, since the table is full? */
static bool
may_go(struct fleet *f, const struct members *m,
    const struct member_left *one, bool full, int64_t now)
{
	return full || ((!m->resolves ||
	    now - one->since >= (int64_t)m->left_ms * 1000000) &&
	    !has_requests(f->kvr, one->id));
}

static bool
worker_remove(struct fleet *f, uint64_t id, const char *name, size_t len,
    void *log)
{
	if (kvr_worker_remove(f->kvr, id) != KVR_OK)
		return false;
	judge_leave(f, shared_key(name, len));
	fleet_log(f, log, FLEET_NOTICE, "worker %.*s has left: removed",
	    (int)len, name);
	return true;
}

/* A worker; false: the lock is held. *stays: it is without a server, still. */
static bool
leave_one(struct fleet *f, struct members *m, struct member_left *one,
    bool full, int64_t now, bool *stays, void *log)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	char name[KVR_NAME_MAX];
	size_t len;

	*stays = false;
	if (kvr_worker_name(f->kvr, one->id, name, sizeof(name), &len) !=
	    KVR_OK || kvr_worker_get(f->kvr, one->id, &facts) != KVR_OK)
		return false;
	one->since = left_take(m, one->id, now);
	if (facts.rank < known_ranks_named(f, name, len))
		return true;
	*stays = !may_go(f, m, one, full, now) ||
	    !worker_remove(f, one->id, name, len, log);
	return true;
}

/* One pass over the workers; if the lock is held it is left to the next. */
static void
leave_some(struct fleet *f, struct members *m, bool full, int64_t now,
    void *log)
{
	const size_t most = f->options->max_workers;
	struct member_left *left = m->left + most, one;
	bool all = true, stays;
	uint64_t id = 0;
	size_t n = 0;
	int error;

	while ((error = kvr_worker_next(f->kvr, &id)) == KVR_OK && id != 0 &&
	    n < most) {
		one.id = id;
		all &= leave_one(f, m, &one, full, now, &stays, log);
		if (stays)
			left[n++] = one;
	}
	all = all && error == KVR_OK && id == 0;
	if (!all)
		n = left_keep(m, left, n, most);
	m->leaving = !all || n > 0;
	memcpy(m->left, left, n * sizeof(*left));
	m->n_left = n;
}

static void
workers_leave(struct fleet *f, struct members *m, bool full, int64_t now,
    void *log)
{
	if (m->left == NULL)
		m->left = calloc(2 * (size_t)f->options->max_workers,
		    sizeof(*m->left));
	if (m->left != NULL)
		leave_some(f, m, full, now, log);
}

void
members_leave(struct fleet *f, struct members *m, int64_t now, void *log)
{
	/* Adds workers refused, or removed by a process with an older list. */
	m->joining = m->resolves;
	if (m->leaving)
		workers_leave(f, m, false, now, log);
	if (m->resolves)
		judge_follow_late(f);
}

/* ----------------------------------------------------------------- join --- */

void
members_follow(struct members *m)
{
	m->joining = m->resolves;
	m->leaving = true;
}

/* False: later, since the lock is held. */
static bool
join_one(struct fleet *f, struct members *m, struct known *known, int64_t now,
    void *log)
{
	int error = ranks_ensure(f->kvr, known, JOIN_TRIES);

	if (error == KVR_EFULL) {
		workers_leave(f, m, true, now, log);
		error = ranks_ensure(f->kvr, known, JOIN_TRIES);
	}
	known->joined = error == KVR_OK;
	if (error == KVR_OK || error == KVR_EBUSY)
		return error == KVR_OK;
	if (!known->refused)
		error_log(f, known, error, log);
	known->refused = true;
	return true;
}

void
members_join(struct fleet *f, struct members *m, int64_t now, void *log)
{
	struct known *known, *end = f->known + f->n_known;
	int n = 0;

	if (!m->joining)
		return;
	for (known = f->known; known < end; known++) {
		if (!known->joined && (n++ == JOINS ||
		    !join_one(f, m, known, now, log)))
			return;
	}
	m->joining = false;
}

/* ------------------------------------------------------------------ ids --- */

/* If the lock is held, the id that was known stays. */
static void
id_look(struct fleet *f, size_t i, uint32_t rank, int64_t now)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	struct known *known = &f->known[i];
	uint64_t id = 0;
	int error = kvr_worker_find(f->kvr, known->name, known->name_len,
	    rank, &id);

	if (error == KVR_OK)
		error = kvr_worker_get(f->kvr, id, &facts);
	if (error == KVR_EBUSY)
		return;
	if (error != KVR_OK) {
		known->ids[rank] = 0;
		known->flags[rank] = KNOWN_DUE;
		known->joined = false;
		return;
	}
	if (known->ids[rank] != 0 && known->ids[rank] != id)
		stale_note(f, i, now);
	known->ids[rank] = id;
	known->flags[rank] = facts.state == KVR_STATE_UP ? KNOWN_OPEN : 0;
	known->due--;
}

/* A server is closed if all of its workers are. */
static void
ids_look(struct fleet *f, size_t i, int64_t now)
{
	struct known *known = &f->known[i];
	bool open = false;
	uint32_t rank;

	if (known->due == 0)
		return;
	for (rank = 0; rank < known->ranks; rank++) {
		if ((known->flags[rank] & KNOWN_DUE) != 0)
			id_look(f, i, rank, now);
		open |= (known->flags[rank] & KNOWN_OPEN) != 0;
	}
	if (known->due == 0)
		known->closed = !open;
}

void
members_look(struct fleet *f, int64_t now)
{
	uint64_t epoch = f->shared->epoch;
	size_t i;

	for (i = 0; i < f->n_known && f->epoch != epoch; i++)
		known_ids_due(&f->known[i]);
	f->epoch = epoch;
	for (i = 0; i < f->n_known; i++)
		ids_look(f, i, now);
}

/* -------------------------------------------------------------- allowed --- */

/* Appends the workers of a server, whose ids are known, to the n there are. */
static size_t
allowed_add(struct fleet *f, const struct known *known, size_t n,
    bool *missing)
{
	uint32_t rank;

	for (rank = 0; rank < known->ranks; rank++) {
		if (known->ids[rank] != 0)
			f->allowed[n++] = known->ids[rank];
		else
			*missing = true;
	}
	return n;
}

size_t
members_allow_one(struct fleet *f, size_t i, bool *missing)
{
	*missing = false;
	return allowed_add(f, &f->known[i], 0, missing);
}

/* Takes servers that are held back only if there is no other. */
static size_t
allow_first(struct fleet *f, bool *missing)
{
	size_t i, n = 0;
	int held;

	for (held = 0; held <= 1 && n == 0 && !*missing; held++)
		for (i = 0; i < f->n_first; i++)
			if (f->known[i].usable && f->known[i].held == held)
				n = allowed_add(f, &f->known[i], n, missing);
	return n;
}

size_t
members_allow(struct fleet *f, bool *missing)
{
	size_t i, n;

	*missing = false;
	n = allow_first(f, missing);
	if (n > 0 || *missing)
		return n;
	for (i = f->n_first; i < f->n_known; i++)
		if (f->known[i].usable)
			n = allowed_add(f, &f->known[i], n, missing);
	return n;
}
