/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_queue.c - requests that wait for a server.
 *
 *   peer.get   all full --> waits, if there is room     NGX_AGAIN
 *                 '------> no room                      NGX_BUSY: 502
 *   a request has ended, or each POLL_MS:
 *      the oldest  --> peer.get, connect --> as if it had just come
 *                 '--> still full: waits on
 *   queue_timeout  --> 504            the client leaves --> 499
 *
 * nginx takes a request that waits for one that connects: its connection is a
 * placeholder, a socket that no event comes from. nginx closes that as it would
 * any other, with its pool, and the cleanup of the pool ends the wait. When
 * there is room the placeholder is replaced by a connection, and nginx goes on
 * from where it believed itself to be. The other end of the placeholder is
 * closed with a byte unread: asked for its error it has one, so whatever fails
 * here becomes a connection that failed, and proxy_next_upstream counts.
 *
 * waits.h has their order. Each process wakes its own.
 */
#include "ngx_http_kvroute_queue.h"

#include <sys/socket.h>

#include "counters.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_peers.h"
#include "ngx_http_kvroute_time.h"
#include "reason.h"
#include "shared.h"

/* Tests build it with another. */
#ifndef NGX_HTTP_KVROUTE_YIELD_MS
#define NGX_HTTP_KVROUTE_YIELD_MS PLACES_YIELD_MS
#endif

enum { POLL_MS = 10 };

/* ---------------------------------------------------------------- turns --- */

static kvroute_ctx_t *
ctx_of(const struct wait *wait)
{
	return (kvroute_ctx_t *)((u_char *)(uintptr_t)wait -
	    offsetof(kvroute_ctx_t, wait.turn));
}

static bool
has_tried(const struct wait *wait, size_t i)
{
	return kvroute_has_tried(ctx_of(wait), i);
}

void
kvroute_queue_keep(kvroute_ctx_t *ctx)
{
	if (ctx->up->fleet.queue == 0)
		return;
	ctx->wait.peers = ctx->rrp.peers;
	ngx_memcpy(ctx->wait.tried, ctx->rrp.tried, ctx->wait.bytes);
}

/* --------------------------------------------------------------- a wait --- */

/*
 * The time that it has waited is neither nginx's nor the engine's. For a
 * request that is over nginx has taken the time already.
 */
static void
times_set(ngx_http_upstream_t *u)
{
	ngx_msec_t waited = ngx_current_msec - u->start_time;

	u->start_time += waited;
	u->peer.start_time += waited;
	if (u->state->response_time != (ngx_msec_t)-1)
		u->state->response_time -=
		    ngx_min(waited, u->state->response_time);
}

/* It goes on, or is over; again is no error. */
static void
wait_end(kvroute_ctx_t *ctx)
{
	kvroute_srv_conf_t *up = ctx->up;
	uint64_t ns;

	if (ctx->wait.turn.line == NULL)
		return;
	if (ctx->wait.fresh) {
		ngx_queue_remove(&ctx->wait.young);
	}
	ctx->wait.fresh = false;
	waits_remove(&up->waits.line, &ctx->wait.turn, kvr_clock_now());
	if (ctx->wait.over.timer_set)
		ngx_del_timer(&ctx->wait.over);
	times_set(ctx->request->upstream);
	ns = (uint64_t)(kvr_clock_now() - ctx->wait.began);
	ctx->wait.ns += ns;
	shared_time(up->fleet.shared, HISTOGRAM_QUEUE, ns);
}

/* A cleanup of the placeholder's pool: it is closed. */
static void
placeholder_closed(void *data)
{
	kvroute_ctx_t *ctx = data;

	wait_end(ctx);
	ctx->wait.hold = NULL;
}

/* A socket whose error is that the other end has reset it; -1: none. */
static ngx_socket_t
broken_socket(void)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == -1)
		return (ngx_socket_t)-1;
	(void)send(ends[0], "", 1, MSG_NOSIGNAL);
	(void)close(ends[1]);
	(void)ngx_nonblocking(ends[0]);
	return ends[0];
}

static void
placeholder_close(ngx_connection_t *c)
{
	ngx_destroy_pool(c->pool);
	ngx_close_connection(c);
}

static ngx_connection_t *
placeholder_make(kvroute_ctx_t *ctx, ngx_log_t *log)
{
	ngx_socket_t fd = broken_socket();
	ngx_connection_t *c;
	ngx_pool_cleanup_t *cln;

	c = fd == (ngx_socket_t)-1 ? NULL : ngx_get_connection(fd, log);
	if (c == NULL) {
		if (fd != (ngx_socket_t)-1)
			(void)ngx_close_socket(fd);
		return NULL;
	}
	c->log_error = NGX_ERROR_IGNORE_ECONNRESET;
	c->pool = ngx_create_pool(256, log);
	cln = c->pool == NULL ? NULL : ngx_pool_cleanup_add(c->pool, 0);
	if (cln == NULL) {
		if (c->pool != NULL)
			ngx_destroy_pool(c->pool);
		ngx_close_connection(c);
		return NULL;
	}
	cln->handler = placeholder_closed;
	cln->data = ctx;
	return c;
}

/* The handlers of the placeholder are nginx's. */
static void
timed_out(ngx_event_t *event)
{
	kvroute_ctx_t *ctx = ngx_queue_data(event, kvroute_ctx_t, wait.over);
	ngx_connection_t *c = ctx->wait.hold;

	wait_end(ctx);
	ctx->book.reason = REASON_QUEUE_TIMEOUT;
	ctx->up->fleet.shared->reasons[ctx->book.reason]++;
	ctx->request->upstream->peer.tries = 0;
	c->write->timedout = 1;
	c->write->handler(c->write);
}

static void
wait_begin(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	kvroute_srv_conf_t *up = ctx->up;
	ngx_event_t *over = &ctx->wait.over;

	pc->connection = ctx->wait.hold;
	pc->cached = 0;
	pc->name = ctx->rrp.peers->name;
	pc->log->action = "waiting for a server that is not full";
	ctx->wait.fresh = true;
	ngx_queue_insert_tail(&up->waits.fresh, &ctx->wait.young);
	ctx->wait.began = kvr_clock_now();
	waits_add(&up->waits.line, &ctx->wait.turn, ctx->wait.began);
	ngx_memzero(over, sizeof(*over));
	over->handler = timed_out;
	over->data = ctx->wait.hold;
	over->log = pc->log;
	ngx_add_timer(over, (ngx_msec_t)up->queue_timeout);
	shared_count(up->fleet.shared, COUNT_QUEUED, 1);
	ngx_post_event(&up->waits.event, &ngx_posted_events);
}

ngx_int_t
kvroute_queue_wait(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	kvroute_srv_conf_t *up = ctx->up;

	if (up->fleet.queue == 0)
		return NGX_BUSY;
	/* As if no server had been asked. */
	ctx->rrp.peers = ctx->wait.peers;
	ngx_memcpy(ctx->rrp.tried, ctx->wait.tried, ctx->wait.bytes);
	pc->name = ctx->rrp.peers->name;
	kvroute_peers_look(ctx);
	ctx->wait.turn.kept = ctx->book.reason == REASON_STATE_BUSY;
	ctx->wait.turn.retried = ctx->tries > 1;
	if (!waits_hope(&up->fleet, &ctx->wait.turn))
		return NGX_BUSY;
	if (ctx->wait.turn.line != NULL) {
		ctx->wait.still = true;
		waits_add(&up->waits.line, &ctx->wait.turn, kvr_clock_now());
		return NGX_AGAIN;
	}
	if (waits_room(&up->waits.line, kvr_clock_now())) {
		ctx->wait.hold = placeholder_make(ctx, pc->log);
		if (ctx->wait.hold != NULL) {
			wait_begin(ctx, pc);
			return NGX_AGAIN;
		}
		waits_write(&up->waits.line, kvr_clock_now());
	}
	ctx->book.reason = REASON_QUEUE_FULL;
	return NGX_BUSY;
}

/* --------------------------------------------------------------- waking --- */

/* Reports to nginx that the connection has failed. */
static void
wake_fails(kvroute_ctx_t *ctx, ngx_int_t rc, ngx_err_t error)
{
	ngx_http_upstream_t *u = ctx->request->upstream;

	wait_end(ctx);
	ctx->wait.error = error;
	if (rc == NGX_BUSY)
		ngx_log_error(NGX_LOG_ERR, ctx->request->connection->log, 0,
		    "no live upstreams");
	/* Nothing can be held against that server. */
	if (rc == NGX_ERROR && u->peer.sockaddr != NULL) {
		u->peer.connection = NULL;
		u->peer.free(&u->peer, u->peer.data, 0);
		u->peer.sockaddr = NULL;
	}
	if (rc != NGX_DECLINED)
		u->peer.tries = 0;
	u->peer.connection = ctx->wait.hold;
	ngx_post_event(ctx->wait.hold->read, &ngx_posted_events);
}

/* As nginx does when it has begun to connect. */
static void
connection_set(kvroute_ctx_t *ctx, ngx_connection_t *c)
{
	ngx_http_request_t *r = ctx->request;
	ngx_http_upstream_t *u = r->upstream;

	c->requests++;
	c->data = r;
	c->write->handler = ctx->wait.hold->write->handler;
	c->read->handler = ctx->wait.hold->read->handler;
	c->sendfile &= r->connection->sendfile;
	u->output.sendfile = c->sendfile;
	if (r->connection->tcp_nopush == NGX_TCP_NOPUSH_DISABLED)
		c->tcp_nopush = NGX_TCP_NOPUSH_DISABLED;
	c->log = r->connection->log;
	c->pool->log = c->log;
	c->read->log = c->log;
	c->write->log = c->log;
	u->writer.connection = c;
}

static void
wake_goes(kvroute_ctx_t *ctx, ngx_int_t rc)
{
	ngx_http_upstream_t *u = ctx->request->upstream;
	ngx_connection_t *c = u->peer.connection;

	if (c->pool == NULL)
		c->pool = ngx_create_pool(128, ctx->request->connection->log);
	if (c->pool == NULL) {
		ngx_close_connection(c);
		wake_fails(ctx, NGX_ERROR, 0);
		return;
	}
	connection_set(ctx, c);
	placeholder_close(ctx->wait.hold);
	if (rc == NGX_AGAIN)
		ngx_add_timer(c->write, u->conf->connect_timeout);
	else
		ngx_post_event(c->write, &ngx_posted_events);
}

/* nginx removes servers while it runs: their names are freed with them. */
static void
name_copy(kvroute_ctx_t *ctx, ngx_http_upstream_t *u)
{
	ngx_str_t *from = u->peer.name, *name = ngx_palloc(ctx->request->pool,
	    sizeof(*name) + from->len);

	if (name != NULL) {
		name->len = from->len;
		name->data = (u_char *)(name + 1);
		ngx_memcpy(name->data, from->data, from->len);
	}
	u->peer.name = name != NULL ? name : ctx->rrp.peers->name;
	u->state->peer = u->peer.name;
}

/* False: it waits on. The rest is done when this is over. */
static bool
wait_wake(kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	ngx_http_upstream_t *u = r->upstream;
	ngx_connection_t *hold = ctx->wait.hold;
	ngx_err_t error;
	ngx_int_t rc;

	ngx_http_set_log_request(r->connection->log, r);
	ctx->wait.still = false;
	rc = ngx_event_connect_peer(&u->peer);
	error = ngx_socket_errno;
	if (ctx->wait.still) {
		u->peer.connection = hold;
		return false;
	}
	r->connection->log->action = "connecting to upstream";
	name_copy(ctx, u);
	if (rc == NGX_OK || rc == NGX_AGAIN || rc == NGX_DONE)
		wake_goes(ctx, rc);
	else
		wake_fails(ctx, rc, error);
	return true;
}

/* nginx has a timer for the connection that it believes in. */
static void
timers_leave(ngx_queue_t *fresh)
{
	kvroute_ctx_t *ctx;

	while (!ngx_queue_empty(fresh)) {
		ctx = ngx_queue_data(ngx_queue_head(fresh),
		    kvroute_ctx_t, wait.young);
		ngx_queue_remove(&ctx->wait.young);
		ctx->wait.fresh = false;
		if (ctx->wait.hold->write->timer_set)
			ngx_del_timer(ctx->wait.hold->write);
	}
}

/* Wakes those there is room for, the oldest first; true: again, soon. */
static bool
wake_some(kvroute_srv_conf_t *up)
{
	struct turns turns;
	struct wait *wait;

	ngx_memzero(&turns, sizeof(turns));
	for (;;) {
		kvroute_room_look(up);
		wait = waits_turn(&up->waits.line, &turns);
		if (wait == NULL)
			return waits_more(&turns);
		waits_tried(&turns, wait, wait_wake(ctx_of(wait)));
	}
}

static void
queue_look(ngx_event_t *event)
{
	kvroute_srv_conf_t *up = event->data;
	bool more;

	timers_leave(&up->waits.fresh);
	more = wake_some(up);
	waits_write(&up->waits.line, kvr_clock_now());
	if (more && up->waits.line.n > 0) {
		ngx_post_event(event, &ngx_posted_next_events);
	}
	if (up->waits.line.n > 0 && !event->timer_set)
		ngx_add_timer(event, POLL_MS);
}

void
kvroute_queue_freed(kvroute_srv_conf_t *up)
{
	if (up->waits.line.n > 0) {
		ngx_post_event(&up->waits.event, &ngx_posted_events);
	}
}

/* -------------------------------------------------------- configuration --- */

void
kvroute_queue_begin(kvroute_srv_conf_t *up, ngx_log_t *log)
{
	up->waits.line.places.yield_ms = NGX_HTTP_KVROUTE_YIELD_MS;
	up->waits.line.has_tried = has_tried;
	ngx_queue_init(&up->waits.fresh);
	/* The timers of requests that wait keep an exiting process alive. */
	kvroute_timer_make(&up->waits.event, queue_look, up, log);
}

/* Without a limit no server is ever full. */
void
kvroute_queue_check(ngx_conf_t *cf, kvroute_srv_conf_t *up)
{
	ngx_http_upstream_server_t *server = up->upstream->servers->elts;
	ngx_uint_t i;

	for (i = 0; i < up->upstream->servers->nelts; i++) {
		if (server[i].max_conns > 0)
			break;
	}
	if (up->fleet.queue > 0 && i == up->upstream->servers->nelts)
		ngx_conf_log_error(NGX_LOG_WARN, cf, 0, "\"queue=\" of "
		    "upstream \"%V\" has no effect: no server of it has "
		    "\"max_conns=\"", &up->upstream->host);
}
