/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_poll.c - kvroute ... poll=TIME: engines say how loaded they
 * are.
 *
 *   timer    lead? --> each server: is it due?
 *              |         due --> GET /metrics --> engine_load.h --> surplus.h
 *              |                                                       |
 *              |         its load in the region, of a source of its own <--+
 *              +--> no: another process does that
 *
 * One nginx worker process does this for all: the leader, as the zone says by
 * pid and beat. When it has died, leaves, or has not beaten for LEAD_NS, the
 * next one that looks takes its place, and goes on with what the zone knows of
 * each worker. Only the leader writes; one that was stopped and goes on sees
 * that it is none.
 *
 * What a poll says is good for STALE polls. Then the load that was set ends,
 * and it is not known until the engine answers again. A worker that the zone
 * does not know, since it is new or was reset, loses at once what was set
 * before, maybe by another life of nginx. With poll=off a leader is made, too,
 * does that, and rests.
 *
 * A place in the zone is that of an id, and free again once that worker is
 * gone: servers may come and go.
 */
#include "ngx_http_kvroute_poll.h"

#include "engine_load.h"
#include "ngx_http_kvroute_fetch.h"
#include "ngx_http_kvroute_shared.h"
#include "ngx_http_kvroute_table.h"
#include "response.h"
#include "status.h"
#include "surplus.h"

/* Of kvr_worker_set_load; the last one is that of kvroute-sync(8). */
enum { SOURCE = 0 };

enum {
	STALE = 3,               /* polls */
	TICKS = 8,               /* of a poll: at each some are due */
	BYTES_MAX = 1 << 20,     /* of a response */
	CONNECTIONS_MIN = 16,    /* that stay free for requests */
	BACKOFFS = 10,           /* doublings at most */
	AGAIN_DEAF_MS = 4000,    /* at most, if it does not answer */
	AGAIN_DUMB_MS = 30000,   /* at most, if it publishes nothing */
	REST_MS = 1000           /* between looks with poll=off */
};
#define LEAD_NS INT64_C(3000000000)

struct ngx_http_kvroute_poll_s {
	ngx_http_kvroute_srv_conf_t *up;
	ngx_http_kvroute_fetch_t fetch;
	uint32_t ranks;
	struct load_reader *reader; /* while it is asked, or NULL */
	struct response response;
	size_t bytes;
	ngx_msec_t due;
	ngx_uint_t failures;
	bool known;              /* it has said so before */
	struct {
		uint64_t id;     /* as it was looked up, or 0 */
		uint32_t place;  /* in up->polled, if that id is there */
	} at[];                  /* [ranks] */
};

/* 0: it is not known now. While the lock is held it is as before. */
static uint64_t
id_of(ngx_http_kvroute_poll_t *poll, uint32_t rank)
{
	uint64_t id = 0;
	int error = kvr_worker_find(poll->up->kvr,
	    (const char *)poll->fetch.name.data, poll->fetch.name.len, rank,
	    &id);

	if (error != KVR_EBUSY)
		poll->at[rank].id = error == KVR_OK ? id : 0;
	return poll->at[rank].id;
}

/* ---------------------------------------------------------------- zone --- */

/* What the zone knows of this worker, or NULL. */
static ngx_http_kvroute_polled_t *
polled_of(ngx_http_kvroute_poll_t *poll, uint32_t rank, uint64_t id)
{
	ngx_http_kvroute_polled_t *all = poll->up->polled;
	uint32_t i = poll->at[rank].place;

	if (id == 0)
		return NULL;
	if (all[i].worker == id)
		return &all[i];
	for (i = 0; i < poll->up->options.max_workers; i++)
		if (all[i].worker == id) {
			poll->at[rank].place = i;
			return &all[i];
		}
	return NULL;
}

/* Free, or that of a worker that is gone. */
static bool
is_free(ngx_http_kvroute_srv_conf_t *up, const ngx_http_kvroute_polled_t *p)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	return p->worker == 0 ||
	    kvr_worker_get(up->kvr, p->worker, &facts) == KVR_EWORKER;
}

/* NULL: there is none now, since the lock is held. */
static ngx_http_kvroute_polled_t *
place_take(ngx_http_kvroute_srv_conf_t *up)
{
	uint32_t i;

	for (i = 0; i < up->options.max_workers; i++)
		if (is_free(up, &up->polled[i]))
			return &up->polled[i];
	return NULL;
}

/* --------------------------------------------------------------- leader --- */

static bool
is_leader(ngx_http_kvroute_srv_conf_t *up)
{
	return up->shared->poller == (ngx_atomic_uint_t)ngx_pid;
}

static bool
is_gone(ngx_atomic_uint_t pid)
{
	return pid == 0 || (kill((ngx_pid_t)pid, 0) == -1 &&
	    ngx_errno == ESRCH);
}

/* A new leader would begin with all at once. */
static void
polls_spread(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_uint_t i;

	for (i = 0; i < up->n_peers; i++)
		if (up->known[i].poll != NULL)
			up->known[i].poll->due = ngx_current_msec +
			    up->poll_ms * i / up->n_peers;
}

/* Is this process the leader, from now on if there is none? */
static bool
lead_try(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_atomic_uint_t leader = up->shared->poller;
	int64_t now = kvr_clock_now();

	if (!is_leader(up) && !is_gone(leader) &&
	    now - (int64_t)up->shared->poller_beat <= LEAD_NS)
		return false;
	if (!is_leader(up)) {
		if (!ngx_atomic_cmp_set(&up->shared->poller, leader,
		    (ngx_atomic_uint_t)ngx_pid))
			return false;
		polls_spread(up);
	}
	up->shared->poller_beat = (ngx_atomic_uint_t)now;
	return true;
}

static void
poll_leave(ngx_http_kvroute_poll_t *poll)
{
	ngx_http_kvroute_fetch_leave(&poll->fetch);
	load_reader_free(poll->reader);
	poll->reader = NULL;
}

static void
polls_leave(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_uint_t i;

	for (i = 0; i < up->n_peers; i++)
		if (up->known[i].poll != NULL)
			poll_leave(up->known[i].poll);
}

/* ---------------------------------------------------------------- loads --- */

/* False: what is in force stays. The lock is held, or the worker gone. */
static bool
load_set(ngx_http_kvroute_poll_t *poll, uint64_t id,
    const struct kvr_load *load)
{
	return kvr_worker_set_load(poll->up->kvr, id, SOURCE, load) == KVR_OK;
}

/* Ends what was set of this worker; nothing is known of it. */
static bool
load_end(ngx_http_kvroute_poll_t *poll, ngx_http_kvroute_polled_t *p,
    uint64_t id)
{
	const struct kvr_load none = { .size = sizeof(none) };

	if (id != 0 && !load_set(poll, id, &none))
		return false;
	ngx_memzero(p, sizeof(*p));
	p->worker = id;
	return true;
}

/* False: there is more to do. */
static bool
settle_one(ngx_http_kvroute_poll_t *poll, uint32_t rank)
{
	uint64_t id = id_of(poll, rank);
	ngx_http_kvroute_polled_t *p = polled_of(poll, rank, id);
	int64_t stale = (int64_t)poll->up->poll_ms * STALE * 1000000;

	if (p != NULL && (p->at == 0 ||
	    kvr_clock_now() - (int64_t)p->at <= stale))
		return true;
	if (id != 0 && p == NULL)
		p = place_take(poll->up);
	return p != NULL && load_end(poll, p, id);
}

static bool
poll_settle(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_poll_t *poll;
	bool done = true;
	ngx_uint_t i;
	uint32_t rank;

	for (i = 0; i < up->n_peers; i++) {
		poll = up->known[i].poll;
		for (rank = 0; poll != NULL && rank < poll->ranks; rank++)
			done &= settle_one(poll, rank);
	}
	return done;
}

/* Requests booked on a worker, by all but this source; false: not known. */
static bool
booked_on(ngx_http_kvroute_poll_t *poll, uint64_t id,
    struct kvr_worker_stats *stats, uint64_t *booked)
{
	struct kvr_load own = { .size = sizeof(own) };

	stats->size = sizeof(*stats);
	if (id == 0 || kvr_worker_get_load(poll->up->kvr, id, SOURCE, &own) !=
	    KVR_OK || kvr_worker_stats_get(poll->up->kvr, id, stats) != KVR_OK)
		return false;
	*booked = stats->requests > own.requests ?
	    stats->requests - own.requests : 0;
	return true;
}

static uint64_t
capacity_of(ngx_http_kvroute_poll_t *poll, uint64_t id,
    const struct kvr_worker_stats *stats)
{
	struct kvr_worker facts = { .size = sizeof(facts) };

	if (kvr_worker_get(poll->up->kvr, id, &facts) == KVR_OK &&
	    facts.capacity_tokens != 0)
		return facts.capacity_tokens;
	return stats->learnt_capacity;
}

/* What cannot be done while the lock is held is left to the next poll. */
static void
load_take(ngx_http_kvroute_poll_t *poll, uint32_t rank,
    const struct engine_load *said)
{
	uint64_t id = id_of(poll, rank), booked, requests;
	ngx_http_kvroute_polled_t *p = polled_of(poll, rank, id);
	struct kvr_worker_stats stats;
	struct kvr_load load;

	if (p == NULL || !booked_on(poll, id, &stats, &booked))
		return;
	requests = surplus_answered(&p->surplus, booked, said);
	surplus_load(requests, said, &stats,
	    (double)poll->up->options.block_size / 4, capacity_of(poll, id,
	    &stats), &load);
	if (!load_set(poll, id, &load))
		return;
	p->running = said->running;
	p->waiting = said->waiting;
	p->usage = said->usage < 0 ? 0 :
	    (ngx_atomic_uint_t)(said->usage * 1000 + 0.5) + 1;
	p->requests = requests;
	p->at = (ngx_atomic_uint_t)kvr_clock_now();
}

/* --------------------------------------------------------------- result --- */

/* Of failures in a row the first is logged. */
static void
poll_failed(ngx_http_kvroute_poll_t *poll, const char *why, ngx_msec_t most)
{
	ngx_msec_t wait = poll->up->poll_ms <<
	    ngx_min(poll->failures, BACKOFFS);

	if (poll->failures++ == 0)
		ngx_log_error(NGX_LOG_NOTICE, poll->up->polls.timer.log, 0,
		    "kvroute of upstream \"%V\": load of %V is not known: %s",
		    &poll->up->upstream->host, &poll->fetch.name, why);
	poll->known = false;
	poll->due = ngx_current_msec + ngx_max(poll->up->poll_ms,
	    ngx_min(wait, most));
	poll_leave(poll);
}

static void
poll_answered(ngx_http_kvroute_poll_t *poll)
{
	static struct engine_load said[LOAD_RANKS_MOST];
	bool found = load_reader_end(poll->reader, said);
	uint32_t rank;

	/* What is known stays until it is stale. */
	if (poll->response.status == 200 && load_reader_same(poll->reader)) {
		poll->failures = 0;
		poll_leave(poll);
		return;
	}
	if (poll->response.status != 200 || !found) {
		poll_failed(poll, "it publishes none", AGAIN_DUMB_MS);
		return;
	}
	if (!poll->known)
		ngx_log_error(NGX_LOG_INFO, poll->up->polls.timer.log, 0,
		    "kvroute of upstream \"%V\": load of %V is known",
		    &poll->up->upstream->host, &poll->fetch.name);
	poll->known = true;
	poll->failures = 0;
	if (is_leader(poll->up) && !ngx_exiting)
		for (rank = 0; rank < poll->ranks; rank++)
			load_take(poll, rank, &said[rank]);
	poll_leave(poll);
}

static void
on_failure(ngx_http_kvroute_fetch_t *fetch, const char *why)
{
	poll_failed(fetch->data, why, AGAIN_DEAF_MS);
}

static bool
on_data(ngx_http_kvroute_fetch_t *fetch, const u_char *bytes, size_t n)
{
	ngx_http_kvroute_poll_t *poll = fetch->data;
	const char *at = (const char *)bytes, *end = at + n;
	struct response_part part;
	enum response_what what;

	while ((what = response_next(&poll->response, &at, end, &part)) ==
	    RESPONSE_BODY) {
		poll->bytes += part.n;
		load_reader_data(poll->reader, part.bytes, part.n);
	}
	if (what == RESPONSE_MORE && n > 0 && poll->bytes <= BYTES_MAX)
		return true;
	if (what == RESPONSE_END || (what == RESPONSE_MORE && n == 0 &&
	    response_close(&poll->response)))
		poll_answered(poll);
	else
		poll_failed(poll, poll->bytes > BYTES_MAX ? "it says too much" :
		    "its response is broken", AGAIN_DUMB_MS);
	return false;
}

/* ---------------------------------------------------------------- timer --- */

static void
poll_begin(ngx_http_kvroute_poll_t *poll)
{
	ngx_http_kvroute_srv_conf_t *up = poll->up;
	ngx_str_t host = ngx_http_kvroute_fetch_host(&poll->fetch);
	ngx_http_kvroute_polled_t *p;
	struct kvr_worker_stats stats;
	uint64_t booked;
	uint32_t rank;

	poll->reader = load_reader_new(poll->ranks);
	if (poll->reader == NULL)
		return;
	ngx_memzero(&poll->response, sizeof(poll->response));
	poll->bytes = 0;
	poll->due = ngx_current_msec + up->poll_ms;
	for (rank = 0; rank < poll->ranks; rank++) {
		p = polled_of(poll, rank, poll->at[rank].id);
		if (p != NULL && booked_on(poll, p->worker, &stats, &booked))
			surplus_asked(&p->surplus, booked);
	}
	poll->fetch.to_send = response_request((const char *)
	    up->poll_path.data, (const char *)host.data, host.len,
	    (char *)poll->fetch.request, sizeof(poll->fetch.request));
	ngx_http_kvroute_fetch(&poll->fetch, up->poll_ms * (STALE - 1));
}

static bool
is_due(const ngx_http_kvroute_poll_t *poll)
{
	return poll != NULL && poll->reader == NULL &&
	    (ngx_msec_int_t)(ngx_current_msec - poll->due) >= 0 &&
	    ngx_cycle->free_connection_n >= CONNECTIONS_MIN;
}

static void
on_tick(ngx_event_t *event)
{
	ngx_http_kvroute_srv_conf_t *up = event->data;
	ngx_uint_t i;

	if (ngx_exiting || ngx_quit || ngx_terminate) {
		ngx_http_kvroute_polls_leave(up);
		return;
	}
	if (!lead_try(up)) {
		polls_leave(up);
	} else if (poll_settle(up) && up->poll_ms == 0) {
		return;
	} else {
		for (i = 0; i < up->n_peers && up->poll_ms > 0; i++)
			if (is_due(up->known[i].poll))
				poll_begin(up->known[i].poll);
	}
	ngx_add_timer(event, up->poll_ms > 0 ? ngx_min(up->poll_ms / TICKS + 1,
	    REST_MS) : REST_MS);
}

/* -------------------------------------------------------------- process --- */

/* NULL: no memory; the next change of the peers tries again. */
static ngx_http_kvroute_poll_t *
poll_make(ngx_http_kvroute_srv_conf_t *up,
    const ngx_http_kvroute_known_t *known)
{
	ngx_http_kvroute_poll_t *poll = ngx_calloc(sizeof(*poll) +
	    known->ranks * sizeof(poll->at[0]), up->polls.timer.log);

	if (poll == NULL)
		return NULL;
	poll->up = up;
	poll->ranks = known->ranks;
	poll->due = ngx_current_msec;
	poll->fetch.data = poll;
	poll->fetch.read = on_data;
	poll->fetch.failed = on_failure;
	ngx_http_kvroute_fetch_init(&poll->fetch, known, &up->asks.log);
	return poll;
}

void
ngx_http_kvroute_poll_free(ngx_http_kvroute_poll_t *poll)
{
	poll_leave(poll);
	ngx_free(poll);
}

void
ngx_http_kvroute_polls_follow(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_known_t *known, *end = up->known + up->n_peers;

	if (!up->polls.on)
		return;
	for (known = up->known; known < end; known++)
		if (known->poll == NULL)
			known->poll = poll_make(up, known);
	/* With poll=off it may rest. */
	if (!up->polls.timer.timer_set)
		ngx_add_timer(&up->polls.timer, 1);
}

void
ngx_http_kvroute_polls_begin(ngx_http_kvroute_srv_conf_t *up,
    ngx_cycle_t *cycle)
{
	if (ngx_process == NGX_PROCESS_HELPER || up->polled == NULL)
		return;
	up->asks.log = *cycle->log;
	up->asks.log.log_level = NGX_LOG_ALERT;
	up->polls.timer.handler = on_tick;
	up->polls.timer.data = up;
	up->polls.timer.log = cycle->log;
	up->polls.timer.cancelable = 1;
	up->polls.on = true;
	ngx_http_kvroute_polls_follow(up);
}

void
ngx_http_kvroute_polls_leave(ngx_http_kvroute_srv_conf_t *up)
{
	polls_leave(up);
	(void)ngx_atomic_cmp_set(&up->shared->poller,
	    (ngx_atomic_uint_t)ngx_pid, 0);
}

/* What the leader writes meanwhile is old or new. */
static size_t
polled_one(ngx_http_kvroute_poll_t *poll, struct status_load *out)
{
	int64_t now = kvr_clock_now(), at;
	const ngx_http_kvroute_polled_t *p;
	uint32_t rank;
	size_t n = 0;

	for (rank = 0; rank < poll->ranks; rank++) {
		p = polled_of(poll, rank, id_of(poll, rank));
		at = p == NULL ? 0 : (int64_t)p->at;
		if (at == 0)
			continue;
		out[n++] = (struct status_load){
		    .worker = p->worker,
		    .name = (const char *)poll->fetch.name.data,
		    .name_length = poll->fetch.name.len, .rank = rank,
		    .running = p->running, .waiting = p->waiting,
		    .usage = ((double)p->usage - 1) / 1000,
		    .surplus = p->requests,
		    .age = now > at ? (double)(now - at) / 1e9 : 0 };
	}
	return n;
}

size_t
ngx_http_kvroute_polled_list(const ngx_http_kvroute_srv_conf_t *up,
    struct status_load *out)
{
	size_t n = 0;
	ngx_uint_t i;

	for (i = 0; i < up->n_peers && up->kvr != NULL; i++)
		if (up->known[i].poll != NULL)
			n += polled_one(up->known[i].poll, out + n);
	return n;
}
