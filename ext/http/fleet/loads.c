/* SPDX-License-Identifier: BSD-2-Clause */
/* loads.c - see loads.h. */
#include "loads.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "engine_load.h"
#include "owner_pid.h"
#include "shared.h"
#include "status.h"
#include "surplus.h"

/* A source of kvr_worker_set_load; the last one is kvroute-sync(8)'s. */
enum { SOURCE = 0 };

enum {
	STALE = 3,               /* polls */
	TICKS = 8,               /* of a poll: at each some are due */
	BYTES_MAX = 1 << 20,     /* of a response */
	BACKOFFS = 10,           /* doublings at most */
	REST_MS = 1000           /* between looks with poll=off */
};
#define MS INT64_C(1000000)
#define AGAIN_DEAF (4000 * MS)   /* at most, if it does not answer */
#define AGAIN_DUMB (30000 * MS)  /* at most, if it publishes nothing */
#define LEAD_NS INT64_C(3000000000)

struct poll {
	struct errand errand;    /* first; open while it has a reader */
	uint32_t ranks;
	struct load_reader *reader;
	size_t bytes;
	int64_t due;
	unsigned failures;
	bool known;              /* it was logged before */
	struct {
		uint64_t id;     /* as it was looked up, or 0 */
		uint32_t place;  /* in f->polled, if that id is there */
	} at[];                  /* [ranks] */
};

static const struct errand_calls calls;

/* 0: it is not known now. While the lock is held it is as before. */
static uint64_t
id_of(struct poll *poll, uint32_t rank)
{
	const struct errand *e = &poll->errand;
	uint64_t id = 0;
	int error = kvr_worker_find(e->fleet->kvr, e->name, e->name_len, rank,
	    &id);

	if (error != KVR_EBUSY)
		poll->at[rank].id = error == KVR_OK ? id : 0;
	return poll->at[rank].id;
}

static int64_t
period_of(const struct fleet *f)
{
	return (int64_t)f->poll_ms * MS;
}

/* --------------------------------------------------------------- places --- */

/* The place of this worker, or NULL. */
static struct polled *
polled_of(struct poll *poll, uint32_t rank, uint64_t id)
{
	struct polled *all = poll->errand.fleet->polled;
	uint32_t i = poll->at[rank].place;

	if (id == 0)
		return NULL;
	if (all[i].worker == id)
		return &all[i];
	for (i = 0; i < poll->errand.fleet->options->max_workers; i++)
		if (all[i].worker == id) {
			poll->at[rank].place = i;
			return &all[i];
		}
	return NULL;
}

/* Free, or that of a worker that is gone. */
static bool
is_free(struct fleet *f, const struct polled *p)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	return p->worker == 0 ||
	    kvr_worker_get(f->kvr, p->worker, &facts) == KVR_EWORKER;
}

/* NULL: it cannot be had now, since the lock is held. */
static struct polled *
place_take(struct fleet *f)
{
	uint32_t i;

	for (i = 0; i < f->options->max_workers; i++)
		if (is_free(f, &f->polled[i]))
			return &f->polled[i];
	return NULL;
}

/* Nothing is known of it. */
static void
place_clear(struct polled *p, uint64_t id)
{
	p->at = 0;
	p->running = 0;
	p->waiting = 0;
	p->usage = 0;
	p->requests = 0;
	p->surplus = (struct surplus){ 0, 0 };
	p->worker = id;
}

/* --------------------------------------------------------------- leader --- */

static bool
is_leader(const struct fleet *f)
{
	return f->shared->poller == f->self;
}

/* Processes of other namespaces are only known by their beat. */
static bool
is_gone(const struct fleet *f, uint64_t leader)
{
	return leader == 0 || (leader >> 32 == f->self >> 32 &&
	    kill(owner_pid(leader), 0) == -1 && errno == ESRCH);
}

/* A new leader would begin with all at once. */
static void
polls_spread(struct fleet *f, int64_t now)
{
	size_t i;

	for (i = 0; i < f->n_known; i++)
		if (f->known[i].poll != NULL)
			f->known[i].poll->due = now + period_of(f) *
			    (int64_t)i / (int64_t)f->n_known;
}

/* Is this process the leader, from now on if nobody leads? */
static bool
lead_try(struct fleet *f, int64_t now)
{
	uint64_t leader = f->shared->poller;

	if (!is_leader(f) && !is_gone(f, leader) &&
	    shared_age(f->shared->poller_beat, now) <= LEAD_NS)
		return false;
	if (!is_leader(f)) {
		if (!atomic_compare_exchange_strong(&f->shared->poller,
		    &leader, f->self))
			return false;
		polls_spread(f, now);
	}
	f->shared->poller_beat = (uint64_t)now;
	return true;
}

void
loads_leave(struct fleet *f)
{
	uint64_t self = f->self;

	(void)atomic_compare_exchange_strong(&f->shared->poller, &self, 0);
}

/* ---------------------------------------------------------------- loads --- */

/* False: the load in force stays. The lock is held, or the worker gone. */
static bool
load_set(struct fleet *f, uint64_t id, const struct kvr_load *load)
{
	return kvr_worker_set_load(f->kvr, id, SOURCE, load) == KVR_OK;
}

/* Ends the load that was set of this worker. */
static bool
load_end(struct fleet *f, struct polled *p, uint64_t id)
{
	const struct kvr_load none = { .size = sizeof(none) };

	if (id != 0 && !load_set(f, id, &none))
		return false;
	place_clear(p, id);
	return true;
}

/* False: there is more to do. */
static bool
settle_one(struct poll *poll, uint32_t rank, int64_t now)
{
	struct fleet *f = poll->errand.fleet;
	uint64_t id = id_of(poll, rank);
	struct polled *p = polled_of(poll, rank, id);

	if (p != NULL && (p->at == 0 ||
	    shared_age(p->at, now) <= period_of(f) * STALE))
		return true;
	if (id != 0 && p == NULL)
		p = place_take(f);
	return p != NULL && load_end(f, p, id);
}

static bool
polls_settle(struct fleet *f, int64_t now)
{
	struct poll *poll;
	bool done = true;
	uint32_t rank;
	size_t i;

	for (i = 0; i < f->n_known; i++) {
		poll = f->known[i].poll;
		for (rank = 0; poll != NULL && rank < poll->ranks; rank++)
			done &= settle_one(poll, rank, now);
	}
	return done;
}

/* Requests booked on a worker, by all but this source; false: not known. */
static bool
booked_on(struct fleet *f, uint64_t id, struct kvr_worker_stats *stats,
    uint64_t *booked)
{
	struct kvr_load own = { .size = sizeof(own) };

	stats->size = sizeof(*stats);
	if (id == 0 || kvr_worker_get_load(f->kvr, id, SOURCE, &own) !=
	    KVR_OK || kvr_worker_stats_get(f->kvr, id, stats) != KVR_OK)
		return false;
	*booked = stats->requests > own.requests ?
	    stats->requests - own.requests : 0;
	return true;
}

static uint64_t
capacity_of(struct fleet *f, uint64_t id, const struct kvr_worker_stats *stats)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	if (kvr_worker_get(f->kvr, id, &facts) == KVR_OK &&
	    facts.capacity_tokens != 0)
		return facts.capacity_tokens;
	return stats->learnt_capacity;
}

/* If the lock is held it is left to the next poll. */
static void
load_take(struct poll *poll, uint32_t rank, const struct engine_load *said,
    int64_t now)
{
	struct fleet *f = poll->errand.fleet;
	uint64_t id = id_of(poll, rank), booked, requests;
	struct polled *p = polled_of(poll, rank, id);
	struct kvr_worker_stats stats;
	struct kvr_load load;

	if (p == NULL || !booked_on(f, id, &stats, &booked))
		return;
	requests = surplus_answered(&p->surplus, booked, said);
	surplus_load(requests, said, &stats, (double)f->options->block_size /
	    4, capacity_of(f, id, &stats), &load);
	if (!load_set(f, id, &load))
		return;
	p->running = said->running;
	p->waiting = said->waiting;
	p->usage = said->usage < 0 ? 0 :
	    (uint64_t)(said->usage * 1000 + 0.5) + 1;
	p->requests = requests;
	p->at = (uint64_t)now;
}

/* --------------------------------------------------------------- result --- */

static void
poll_leave(struct errand *e)
{
	struct poll *poll = (struct poll *)e;

	load_reader_free(poll->reader);
	poll->reader = NULL;
}

/* The first of several failures in a row is logged. */
static void
failure_note(struct poll *poll, const char *why, int64_t most, int64_t now,
    void *log)
{
	struct errand *e = &poll->errand;
	int64_t period = period_of(e->fleet), wait = period <<
	    (poll->failures < BACKOFFS ? poll->failures : BACKOFFS);

	if (poll->failures++ == 0)
		fleet_log(e->fleet, log, FLEET_NOTICE, "load of %.*s is not "
		    "known: %s", (int)e->name_len, e->name, why);
	poll->known = false;
	if (wait > most)
		wait = most;
	poll->due = now + (wait > period ? wait : period);
	errand_leave(e);
}

static void
poll_failed(struct errand *e, const char *why, int64_t now, void *log)
{
	failure_note((struct poll *)e, why, AGAIN_DEAF, now, log);
}

static void
loads_take(struct poll *poll, const struct engine_load *said, int64_t now,
    void *log)
{
	struct errand *e = &poll->errand;
	uint32_t rank;

	if (!poll->known)
		fleet_log(e->fleet, log, FLEET_INFO, "load of %.*s is known",
		    (int)e->name_len, e->name);
	poll->known = true;
	if (is_leader(e->fleet))
		for (rank = 0; rank < poll->ranks; rank++)
			load_take(poll, rank, &said[rank], now);
}

static enum errand_state
poll_end(struct errand *e, unsigned status, bool whole, int64_t now, void *log)
{
	struct engine_load said[LOAD_RANKS_MOST];
	struct poll *poll = (struct poll *)e;
	bool found;

	if (!whole) {
		failure_note(poll, "its response is broken", AGAIN_DUMB, now,
		    log);
		return ERRAND_OVER;
	}
	found = load_reader_end(poll->reader, said);
	/* The load that is known stays until it is stale. */
	if (status != 200 || (!found && !load_reader_same(poll->reader))) {
		failure_note(poll, "it publishes none", AGAIN_DUMB, now, log);
		return ERRAND_OVER;
	}
	poll->failures = 0;
	if (!load_reader_same(poll->reader))
		loads_take(poll, said, now, log);
	errand_leave(e);
	return ERRAND_OVER;
}

static enum errand_state
poll_data(struct errand *e, unsigned status, const void *bytes, size_t n,
    int64_t now, void *log)
{
	struct poll *poll = (struct poll *)e;

	(void)status;
	poll->bytes += n;
	load_reader_data(poll->reader, bytes, n);
	if (poll->bytes <= BYTES_MAX)
		return ERRAND_MORE;
	failure_note(poll, "it says too much", AGAIN_DUMB, now, log);
	return ERRAND_OVER;
}

static const struct errand_calls calls = { .data = poll_data, .end = poll_end,
	.failed = poll_failed, .leave = poll_leave };

/* ---------------------------------------------------------------- polls --- */

static bool
poll_begin(struct poll *poll, int64_t now)
{
	struct fleet *f = poll->errand.fleet;
	struct kvr_worker_stats stats;
	struct polled *p;
	uint64_t booked;
	uint32_t rank;

	poll->reader = load_reader_new(poll->ranks);
	if (poll->reader == NULL)
		return false;
	poll->bytes = 0;
	poll->due = now + period_of(f);
	for (rank = 0; rank < poll->ranks; rank++) {
		p = polled_of(poll, rank, poll->at[rank].id);
		if (p != NULL && booked_on(f, p->worker, &stats, &booked))
			surplus_asked(&p->surplus, booked);
	}
	poll->errand.path = f->poll_path;
	poll->errand.deadline_ms = f->poll_ms * (STALE - 1);
	poll->errand.open = true;
	return true;
}

struct poll *
loads_new(struct fleet *f, const struct known *known, int64_t now)
{
	struct poll *poll = calloc(1, sizeof(*poll) +
	    known->ranks * sizeof(poll->at[0]));

	if (poll == NULL)
		return NULL;
	errand_begin(&poll->errand, &calls, f, known);
	poll->ranks = known->ranks;
	poll->due = now;
	return poll;
}

struct errand *
loads_errand(struct poll *poll)
{
	return &poll->errand;
}

void
loads_free(struct poll *poll)
{
	if (poll != NULL)
		errand_leave(&poll->errand);
	free(poll);
}

enum loads_role
loads_look(struct fleet *f, int64_t now)
{
	bool done;

	if (!lead_try(f, now))
		return LOADS_FOLLOW;
	done = polls_settle(f, now);
	return done && f->poll_ms == 0 ? LOADS_REST : LOADS_LEAD;
}

uint64_t
loads_tick_ms(const struct fleet *f)
{
	uint64_t ms = f->poll_ms / TICKS + 1;

	return f->poll_ms == 0 || ms > REST_MS ? REST_MS : ms;
}

struct errand *
loads_next(struct fleet *f, size_t *i, bool room, int64_t now)
{
	struct poll *poll;

	while (*i < f->n_known && f->poll_ms > 0 && room) {
		poll = f->known[(*i)++].poll;
		if (poll != NULL && !poll->errand.open && now >= poll->due &&
		    poll_begin(poll, now))
			return &poll->errand;
	}
	return NULL;
}

/* ----------------------------------------------------------------- show --- */

/* To look up thousands of ids takes longer than a turn of a loop may. */
static uint64_t
known_id(const struct known *known, uint32_t rank)
{
	return known->ids[rank] != 0 ? known->ids[rank] :
	    id_of(known->poll, rank);
}

/* Numbers that the leader writes meanwhile are old or new. */
static size_t
list_one(const struct known *known, struct status_load *out, int64_t now)
{
	struct poll *poll = known->poll;
	const struct polled *p;
	uint32_t rank;
	int64_t age;
	uint64_t at;
	size_t n = 0;

	for (rank = 0; rank < poll->ranks; rank++) {
		p = polled_of(poll, rank, known_id(known, rank));
		at = p == NULL ? 0 : p->at;
		if (at == 0)
			continue;
		age = shared_age(at, now);
		out[n++] = (struct status_load){ .worker = p->worker,
		    .name = poll->errand.name,
		    .name_length = poll->errand.name_len, .rank = rank,
		    .running = p->running, .waiting = p->waiting,
		    .usage = ((double)p->usage - 1) / 1000,
		    .surplus = p->requests,
		    .age = age > 0 ? (double)age / 1e9 : 0 };
	}
	return n;
}

size_t
loads_list(const struct fleet *f, struct status_load *out, int64_t now)
{
	size_t n = 0, i;

	if (f->poll_ms == 0 || f->kvr == NULL)
		return 0;
	for (i = 0; i < f->n_known; i++)
		if (f->known[i].poll != NULL)
			n += list_one(&f->known[i], out + n, now);
	return n;
}
