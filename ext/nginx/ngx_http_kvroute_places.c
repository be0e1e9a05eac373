/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_places.c - what processes tell each other, in the zone, of
 * their requests that wait; see ngx_http_kvroute_queue.c.
 *
 *   place      pid, beat | waiting | oldest      | wants, wants_since
 *              whose     | bound   | plain ones  | those with state
 *
 * A process has a place while some of its requests wait, and writes only there.
 * All is read without a lock, so that what is read together need not belong
 * together: at worst a request waits until the next look, some 10 ms.
 *
 * A place counts only while its process looks at it. For the order that is
 * YIELD_MS, so that one which is stopped delays no other for long; for the
 * bound it is STALE_MS, after which it is taken for dead, and may be taken
 * over.
 * Processes of before a reload count, but have servers of their own.
 */
#include "ngx_http_kvroute.h"

/* Tests build it with another. */
#ifndef NGX_HTTP_KVROUTE_YIELD_MS
#define NGX_HTTP_KVROUTE_YIELD_MS 100
#endif

enum {
	YIELD_MS = NGX_HTTP_KVROUTE_YIELD_MS,
	STALE_MS = 30 * YIELD_MS,
	LOOK_MOST = 64           /* that need one worker */
};

/* Milliseconds; never 0. */
ngx_atomic_uint_t
ngx_http_kvroute_stamp(void)
{
	ngx_atomic_uint_t ms = (ngx_atomic_uint_t)(kvr_clock_now() / 1000000);

	return ms == 0 ? 1 : ms;
}

/* By less than half of the clock's range. */
static bool
is_before(ngx_atomic_uint_t a, ngx_atomic_uint_t b)
{
	return a != b && b - a < (ngx_atomic_uint_t)-1 / 2;
}

static bool
is_within(ngx_atomic_uint_t beat, ngx_atomic_uint_t now, ngx_uint_t ms)
{
	return !is_before(beat, now) || now - beat < ms;
}

static bool
counts(const ngx_http_kvroute_queue_t *place, ngx_atomic_uint_t now)
{
	return place->pid != 0 && is_within(place->beat, now, STALE_MS);
}

size_t
ngx_http_kvroute_queue_length(const ngx_http_kvroute_srv_conf_t *up)
{
	const ngx_http_kvroute_queue_t *place = up->shared->queues;
	ngx_atomic_uint_t now = ngx_http_kvroute_stamp();
	size_t n = 0, i;

	for (i = 0; i < NGX_HTTP_KVROUTE_QUEUES; i++)
		if (counts(&place[i], now))
			n += place[i].waiting;
	return n;
}

static bool
place_claim(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_queue_t *place,
    ngx_atomic_uint_t now)
{
	ngx_atomic_uint_t pid = place->pid;

	if (counts(place, now) && pid != (ngx_atomic_uint_t)ngx_pid)
		return false;
	/* A beat first: it must not be taken for that of the process before. */
	place->beat = now;
	if (!ngx_atomic_cmp_set(&place->pid, pid, (ngx_atomic_uint_t)ngx_pid))
		return false;
	place->waiting = place->oldest = place->wants = 0;
	place->life = up->life;
	up->place = place;
	return true;
}

bool
ngx_http_kvroute_place_have(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_atomic_uint_t now = ngx_http_kvroute_stamp();
	ngx_uint_t i;

	/* It was taken for dead. */
	if (up->place != NULL &&
	    up->place->pid != (ngx_atomic_uint_t)ngx_pid)
		up->place = NULL;
	for (i = 0; i < NGX_HTTP_KVROUTE_QUEUES && up->place == NULL; i++)
		if (place_claim(up, &up->shared->queues[i], now))
			break;
	if (up->place != NULL)
		up->place->beat = now;
	return up->place != NULL;
}

void
ngx_http_kvroute_place_leave(ngx_http_kvroute_srv_conf_t *up)
{
	if (up->place == NULL)
		return;
	up->place->waiting = up->place->oldest = up->place->wants = 0;
	(void)ngx_atomic_cmp_set(&up->place->pid, (ngx_atomic_uint_t)ngx_pid,
	    0);
	up->place = NULL;
}

/* The oldest that needs one worker, of the first ones. */
static ngx_http_kvroute_ctx_t *
first_bound(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_queue_t *q;
	ngx_uint_t n = 0;

	for (q = ngx_queue_head(&up->others);
	    q != ngx_queue_sentinel(&up->others) && n++ < LOOK_MOST;
	    q = ngx_queue_next(q))
		if (ngx_http_kvroute_waiter(q)->wait.wants != 0)
			return ngx_http_kvroute_waiter(q);
	return NULL;
}

void
ngx_http_kvroute_place_write(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_ctx_t *bound;

	if (up->n_waits == 0) {
		ngx_http_kvroute_place_leave(up);
		return;
	}
	if (!ngx_http_kvroute_place_have(up))
		return;
	bound = first_bound(up);
	up->place->waiting = up->n_waits;
	up->place->oldest = ngx_queue_empty(&up->plain) ? 0 :
	    ngx_http_kvroute_waiter(ngx_queue_head(&up->plain))->wait.since;
	up->place->wants = 0;
	if (bound == NULL)
		return;
	up->place->wants_since = bound->wait.since;
	up->place->wants = (ngx_atomic_uint_t)bound->wait.wants;
}

/* ---------------------------------------------------------------- turns --- */

static bool
is_heard(const ngx_http_kvroute_srv_conf_t *up,
    const ngx_http_kvroute_queue_t *place, ngx_atomic_uint_t now)
{
	return place->pid != 0 && place->life == up->life &&
	    is_within(place->beat, now, YIELD_MS);
}

bool
ngx_http_kvroute_older_elsewhere(const ngx_http_kvroute_srv_conf_t *up,
    ngx_atomic_uint_t since)
{
	const ngx_http_kvroute_queue_t *place = up->shared->queues;
	ngx_atomic_uint_t now = ngx_http_kvroute_stamp(), oldest;
	ngx_uint_t i;

	for (i = 0; i < NGX_HTTP_KVROUTE_QUEUES; i++) {
		oldest = place[i].oldest;
		if (oldest != 0 && is_before(oldest, since) &&
		    &place[i] != up->place && is_heard(up, &place[i], now))
			return true;
	}
	return false;
}

void
ngx_http_kvroute_wanted_leave(ngx_http_kvroute_srv_conf_t *up,
    ngx_atomic_uint_t since)
{
	const ngx_http_kvroute_queue_t *place = up->shared->queues;
	ngx_atomic_uint_t now = ngx_http_kvroute_stamp(), wants;
	ngx_uint_t i, peer;
	uint32_t rank;

	for (i = 0; i < NGX_HTTP_KVROUTE_QUEUES; i++) {
		wants = place[i].wants;
		if (wants == 0 || !is_before(place[i].wants_since, since) ||
		    !is_heard(up, &place[i], now))
			continue;
		peer = ngx_http_kvroute_peer_of(up, wants, &rank);
		if (peer < up->n_peers && up->known[peer].usable) {
			up->known[peer].usable = false;
			up->known[peer].full = true;
		}
	}
}
