/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_places.c - what processes tell each other, in the zone, of
 * their requests that wait; see ngx_http_kvroute_queue.c.
 *
 *   place      pid, beat | waiting | oldest      | server[], since[]
 *              whose     | bound   | plain ones  | the others
 *
 * A process has a place while some of its requests wait, and writes only there.
 * All is read without a lock, so that what is read together need not belong
 * together: at worst a request waits until the next look, some 10 ms.
 *
 * A place counts only while its process looks at it. For the order that is
 * YIELD_MS, so that one which is stopped delays no other for long; for the
 * bound it is STALE_MS, after which it is taken for dead, and may be taken
 * over.
 * Of the servers that are wanted, few have room there: those first wanted.
 * Processes of before a reload count, but have servers of their own.
 */
#include "ngx_http_kvroute_places.h"

#include "ngx_http_kvroute_shared.h"
#include "ngx_http_kvroute_table.h"
#include "ngx_http_kvroute_try.h"

/* Tests build it with another. */
#ifndef NGX_HTTP_KVROUTE_YIELD_MS
#define NGX_HTTP_KVROUTE_YIELD_MS 100
#endif

enum {
	YIELD_MS = NGX_HTTP_KVROUTE_YIELD_MS,
	STALE_MS = 30 * YIELD_MS,
	LOOK_MOST = 1024         /* others */
};

/* Milliseconds; never 0. */
uint32_t
ngx_http_kvroute_stamp(void)
{
	uint32_t ms = (uint32_t)(kvr_clock_now() / 1000000);

	return ms == 0 ? 1 : ms;
}

/* By less than half of the clock's range. */
bool
ngx_http_kvroute_is_before(uint32_t a, uint32_t b)
{
	return a != b && b - a < UINT32_MAX / 2;
}

static bool
is_within(uint32_t beat, uint32_t now, ngx_uint_t ms)
{
	return !ngx_http_kvroute_is_before(beat, now) || now - beat < ms;
}

static bool
is_counted(const ngx_http_kvroute_queue_t *place, uint32_t now)
{
	return place->pid != 0 && is_within(place->beat, now, STALE_MS);
}

size_t
ngx_http_kvroute_queue_length(const ngx_http_kvroute_srv_conf_t *up)
{
	const ngx_http_kvroute_queue_t *place = up->shared->queues;
	uint32_t now = ngx_http_kvroute_stamp();
	size_t n = 0, i;

	for (i = 0; i < NGX_HTTP_KVROUTE_QUEUES; i++)
		if (is_counted(&place[i], now))
			n += place[i].waiting;
	return n;
}

/* Servers that are wanted, with the time of the oldest that does. */
typedef struct {
	ngx_uint_t n;
	uint32_t since[NGX_HTTP_KVROUTE_WANTED];
	uint16_t server[NGX_HTTP_KVROUTE_WANTED];
} wanted_t;

/* No time may be taken for that of another server. */
static void
wanted_write(ngx_http_kvroute_queue_t *place, const wanted_t *wanted)
{
	ngx_uint_t i, n = wanted == NULL ? 0 : wanted->n;

	for (i = 0; i < NGX_HTTP_KVROUTE_WANTED; i++) {
		if (i < n && place->server[i] == wanted->server[i] &&
		    place->since[i] == wanted->since[i])
			continue;
		place->server[i] = 0;
		if (i >= n)
			continue;
		place->since[i] = wanted->since[i];
		place->server[i] = wanted->server[i];
	}
}

static bool
place_claim(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_queue_t *place,
    uint32_t now)
{
	ngx_atomic_uint_t pid = place->pid;

	if (is_counted(place, now) && pid != (ngx_atomic_uint_t)ngx_pid)
		return false;
	/* A beat first: it must not be taken for that of the process before. */
	place->beat = now;
	if (!ngx_atomic_cmp_set(&place->pid, pid, (ngx_atomic_uint_t)ngx_pid))
		return false;
	place->waiting = place->oldest = 0;
	wanted_write(place, NULL);
	place->life = up->waits.life;
	up->waits.place = place;
	return true;
}

bool
ngx_http_kvroute_place_have(ngx_http_kvroute_srv_conf_t *up)
{
	uint32_t now = ngx_http_kvroute_stamp();
	ngx_uint_t i;

	/* It was taken for dead. */
	if (up->waits.place != NULL &&
	    up->waits.place->pid != (ngx_atomic_uint_t)ngx_pid)
		up->waits.place = NULL;
	for (i = 0; i < NGX_HTTP_KVROUTE_QUEUES && up->waits.place == NULL; i++)
		if (place_claim(up, &up->shared->queues[i], now))
			break;
	if (up->waits.place != NULL)
		up->waits.place->beat = now;
	return up->waits.place != NULL;
}

void
ngx_http_kvroute_place_leave(ngx_http_kvroute_srv_conf_t *up)
{
	if (up->waits.place == NULL)
		return;
	up->waits.place->waiting = up->waits.place->oldest = 0;
	wanted_write(up->waits.place, NULL);
	(void)ngx_atomic_cmp_set(&up->waits.place->pid,
	    (ngx_atomic_uint_t)ngx_pid, 0);
	up->waits.place = NULL;
}

/* Adds peer i of up->known, if it is not there. */
static void
wanted_add(wanted_t *wanted, ngx_uint_t i, uint32_t since)
{
	uint16_t server = (uint16_t)(i + 1);
	ngx_uint_t n;

	for (n = 0; n < wanted->n && wanted->server[n] != server; n++)
		continue;
	if (n < wanted->n || n == NGX_HTTP_KVROUTE_WANTED || i >= UINT16_MAX)
		return;
	wanted->server[n] = server;
	wanted->since[n] = since;
	wanted->n = n + 1;
}

/* It needs one, or, having failed at some, any other. */
static void
wants_add(const ngx_http_kvroute_ctx_t *ctx, wanted_t *wanted)
{
	const ngx_http_kvroute_known_t *known = ctx->up->known;
	ngx_uint_t i;

	for (i = 0; i < ctx->up->n_peers; i++) {
		if (ctx->wait.wants != 0 ? known[i].key == ctx->wait.wants :
		    ctx->tries > 1 && !known[i].closed &&
		    !ngx_http_kvroute_has_tried(ctx, i))
			wanted_add(wanted, i, ctx->wait.since);
	}
}

static void
wanted_list(ngx_http_kvroute_srv_conf_t *up, wanted_t *wanted)
{
	ngx_uint_t looks = 0;
	ngx_queue_t *q;

	wanted->n = 0;
	for (q = ngx_queue_head(&up->waits.others);
	    q != ngx_queue_sentinel(&up->waits.others) && looks++ < LOOK_MOST &&
	    wanted->n < NGX_HTTP_KVROUTE_WANTED; q = ngx_queue_next(q))
		wants_add(ngx_http_kvroute_waiter(q), wanted);
}

void
ngx_http_kvroute_place_write(ngx_http_kvroute_srv_conf_t *up)
{
	wanted_t wanted;

	if (up->waits.n == 0) {
		ngx_http_kvroute_place_leave(up);
		return;
	}
	if (!ngx_http_kvroute_place_have(up))
		return;
	up->waits.place->waiting = up->waits.n;
	up->waits.place->oldest = ngx_queue_empty(&up->waits.plain) ? 0 :
	    ngx_http_kvroute_waiter(ngx_queue_head(
	    &up->waits.plain))->wait.since;
	wanted_list(up, &wanted);
	wanted_write(up->waits.place, &wanted);
}

/* ---------------------------------------------------------------- turns --- */

static bool
is_heard(const ngx_http_kvroute_srv_conf_t *up,
    const ngx_http_kvroute_queue_t *place, uint32_t now)
{
	return place->pid != 0 && place->life == up->waits.life &&
	    is_within(place->beat, now, YIELD_MS);
}

bool
ngx_http_kvroute_older_elsewhere(const ngx_http_kvroute_srv_conf_t *up,
    uint32_t since)
{
	const ngx_http_kvroute_queue_t *place = up->shared->queues;
	uint32_t now = ngx_http_kvroute_stamp(), oldest;
	ngx_uint_t i;

	for (i = 0; i < NGX_HTTP_KVROUTE_QUEUES; i++) {
		oldest = place[i].oldest;
		if (oldest != 0 && ngx_http_kvroute_is_before(oldest, since) &&
		    &place[i] != up->waits.place &&
		    is_heard(up, &place[i], now))
			return true;
	}
	return false;
}

/* It is peer i of up->known; if peers have just changed, perhaps another. */
static void
server_leave(ngx_http_kvroute_srv_conf_t *up, ngx_uint_t i)
{
	if (i < up->n_peers && up->known[i].usable) {
		up->known[i].usable = false;
		up->known[i].full = true;
	}
}

void
ngx_http_kvroute_wanted_leave(ngx_http_kvroute_srv_conf_t *up, uint32_t since)
{
	const ngx_http_kvroute_queue_t *place = up->shared->queues, *end;
	uint32_t now = ngx_http_kvroute_stamp();
	uint16_t server;
	ngx_uint_t i;

	for (end = place + NGX_HTTP_KVROUTE_QUEUES; place < end; place++) {
		if (!is_heard(up, place, now))
			continue;
		for (i = 0; i < NGX_HTTP_KVROUTE_WANTED; i++) {
			server = place->server[i];
			if (server != 0 && ngx_http_kvroute_is_before(
			    place->since[i], since))
				server_leave(up, server - 1u);
		}
	}
}
