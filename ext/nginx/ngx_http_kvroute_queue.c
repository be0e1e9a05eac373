/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_queue.c - requests that wait for a server.
 *
 *   peer.get   all full --> waits, if there is room     NGX_AGAIN
 *                 '------> there is none                NGX_BUSY: 502
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
 * Nothing is booked for a request that waits, and the server is chosen when it
 * no longer does. Those that can go anywhere, "plain" ones, are one line; the
 * others, which need the server that keeps their state or have failed at some,
 * do not stand in their way:
 *
 *   process 1   plain   a c f          others   B        "oldest a, wants B's"
 *   process 2   plain   d e            others            "oldest d"
 *
 * Each process wakes its own. None overtakes: a plain request goes only if no
 * other process has an older one, and a worker that is wanted is full for all
 * that came later. ngx_http_kvroute_places.c tells what waits elsewhere.
 */
#include "ngx_http_kvroute.h"

#include <sys/socket.h>

enum {
	QUEUE_MOST = 65536,
	TIMEOUT_MS = 60000,      /* by default */
	TIMEOUT_LEAST = 10,
	TIMEOUT_MOST = 3600000,
	POLL_MS = 10,
	LOOK_MOST = 64           /* others, in one go */
};

/* ---------------------------------------------------------------- turns --- */

/* Can it go to any server, as far as is known? */
static bool
is_plain(const ngx_http_kvroute_ctx_t *ctx)
{
	return ctx->state == 0 && ctx->tries <= 1;
}

void
ngx_http_kvroute_queue_keep(ngx_http_kvroute_ctx_t *ctx)
{
	if (ctx->up->queue == 0)
		return;
	ctx->wait.peers = ctx->rrp.peers;
	ngx_memcpy(ctx->wait.tried, ctx->rrp.tried, ctx->wait.bytes);
}

bool
ngx_http_kvroute_queue_lets(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;

	if (up->queue == 0)
		return true;
	if (!ctx->wait.waits)
		ctx->wait.since = ngx_http_kvroute_stamp();
	ngx_http_kvroute_wanted_leave(up, ctx->wait.since);
	return !is_plain(ctx) ||
	    ((ctx->wait.waits || ngx_queue_empty(&up->plain)) &&
	    !ngx_http_kvroute_older_elsewhere(up, ctx->wait.since));
}

bool
ngx_http_kvroute_all_full(const ngx_http_kvroute_srv_conf_t *up)
{
	ngx_uint_t i;

	for (i = 0; up->queue > 0 && i < up->n_peers; i++)
		if (up->known[i].full && !up->known[i].closed)
			return true;
	return false;
}

/* What keeps its state; KVR_EBUSY: that cannot be known now. */
static int
kept_look(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t *peer)
{
	uint64_t worker = 0;
	uint32_t rank;
	int error = kvr_affinity_find(ctx->up->kvr, ctx->state,
	    kvr_clock_now(), &worker);

	*peer = ctx->up->n_peers;
	if (error != KVR_OK)
		return error;
	*peer = ngx_http_kvroute_peer_of(ctx->up, worker, &rank);
	ctx->wait.wants = worker;
	return KVR_OK;
}

/* Will there be a server for it? One that has failed is none. */
static bool
has_hope(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	bool kept = ctx->reason == REASON_STATE_BUSY, hope = false;
	ngx_uint_t i, peer = up->n_peers;

	ngx_http_kvroute_peers_look(ctx);
	ctx->wait.wants = 0;
	if (kept && kept_look(ctx, &peer) == KVR_EBUSY)
		return true;
	for (i = 0; i < up->n_peers; i++) {
		if (kept && i != peer)
			continue;
		hope |= up->known[i].usable || up->known[i].full;
	}
	return hope;
}

/* --------------------------------------------------------------- a wait --- */

/*
 * The time that it has waited is neither nginx's nor the engine's. Of a request
 * that is over nginx has taken the time by now.
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
wait_end(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	uint64_t ns;

	if (!ctx->wait.waits)
		return;
	ctx->wait.waits = false;
	ngx_queue_remove(&ctx->wait.queue);
	up->n_waits--;
	ngx_http_kvroute_place_write(up);
	if (ctx->wait.over.timer_set)
		ngx_del_timer(&ctx->wait.over);
	times_set(ctx->request->upstream);
	ns = (uint64_t)(kvr_clock_now() - ctx->wait.began);
	ctx->wait.ns += ns;
	ngx_http_kvroute_waited(up, ns);
}

/* Of the placeholder's pool: it is closed. */
static void
placeholder_closed(void *data)
{
	ngx_http_kvroute_ctx_t *ctx = data;

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
placeholder_make(ngx_http_kvroute_ctx_t *ctx, ngx_log_t *log)
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
	ngx_http_kvroute_ctx_t *ctx = ngx_queue_data(event,
	    ngx_http_kvroute_ctx_t, wait.over);
	ngx_connection_t *c = ctx->wait.hold;

	wait_end(ctx);
	ctx->reason = REASON_QUEUE_TIMEOUT;
	(void)ngx_atomic_fetch_add(&ctx->up->shared->reasons[ctx->reason], 1);
	ctx->request->upstream->peer.tries = 0;
	c->write->timedout = 1;
	c->write->handler(c->write);
}

/* Is there room for one more? Then it is taken. */
static bool
room_take(ngx_http_kvroute_srv_conf_t *up)
{
	if (!ngx_http_kvroute_place_have(up))
		return false;
	/* Seen by all before it is known whether there is any. */
	(void)ngx_atomic_fetch_add(&up->place->waiting, 1);
	if (ngx_http_kvroute_queue_length(up) <= up->queue)
		return true;
	ngx_http_kvroute_place_write(up);
	return false;
}

static void
wait_begin(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	ngx_event_t *over = &ctx->wait.over;

	pc->connection = ctx->wait.hold;
	pc->cached = 0;
	pc->name = ctx->rrp.peers->name;
	pc->log->action = "waiting for a server that is not full";
	ctx->wait.waits = true;
	ctx->wait.fresh = true;
	ctx->wait.began = kvr_clock_now();
	ngx_queue_insert_tail(is_plain(ctx) ? &up->plain : &up->others,
	    &ctx->wait.queue);
	up->n_waits++;
	ngx_http_kvroute_place_write(up);
	ngx_memzero(over, sizeof(*over));
	over->handler = timed_out;
	over->data = ctx->wait.hold;
	over->log = pc->log;
	ngx_add_timer(over, up->queue_timeout);
	ngx_http_kvroute_count(up, COUNT_QUEUED, 1);
	ngx_post_event(&up->queue_event, &ngx_posted_events);
}

ngx_int_t
ngx_http_kvroute_queue_wait(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;

	if (up->queue == 0)
		return NGX_BUSY;
	/* As if no server had been asked. */
	ctx->rrp.peers = ctx->wait.peers;
	ngx_memcpy(ctx->rrp.tried, ctx->wait.tried, ctx->wait.bytes);
	pc->name = ctx->rrp.peers->name;
	if (!has_hope(ctx))
		return NGX_BUSY;
	if (ctx->wait.waits) {
		ctx->wait.still = true;
		return NGX_AGAIN;
	}
	if (room_take(up)) {
		ctx->wait.hold = placeholder_make(ctx, pc->log);
		if (ctx->wait.hold != NULL) {
			wait_begin(ctx, pc);
			return NGX_AGAIN;
		}
		ngx_http_kvroute_place_write(up);
	}
	ctx->reason = REASON_QUEUE_FULL;
	return NGX_BUSY;
}

/* --------------------------------------------------------------- waking --- */

/* nginx is told that the connection has failed. */
static void
wake_fails(ngx_http_kvroute_ctx_t *ctx, ngx_int_t rc, ngx_err_t error)
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
connection_set(ngx_http_kvroute_ctx_t *ctx, ngx_connection_t *c)
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
wake_goes(ngx_http_kvroute_ctx_t *ctx, ngx_int_t rc)
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
name_copy(ngx_http_kvroute_ctx_t *ctx, ngx_http_upstream_t *u)
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

/* False: it waits on. What becomes of it is done when this is over. */
static bool
wake(ngx_http_kvroute_ctx_t *ctx)
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
timers_leave(ngx_queue_t *list)
{
	ngx_http_kvroute_ctx_t *ctx;
	ngx_queue_t *q;

	for (q = ngx_queue_last(list); q != ngx_queue_sentinel(list);
	    q = ngx_queue_prev(q)) {
		ctx = ngx_http_kvroute_waiter(q);
		if (!ctx->wait.fresh)
			break;
		ctx->wait.fresh = false;
		if (ctx->wait.hold->write->timer_set)
			ngx_del_timer(ctx->wait.hold->write);
	}
}

static int64_t
began(ngx_queue_t *q)
{
	return ngx_http_kvroute_waiter(q)->wait.began;
}

/* Wakes those there is room for, the oldest first. */
static void
wake_some(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_queue_t *other = ngx_queue_head(&up->others), *plain, *next;
	ngx_uint_t n = 0;
	bool stuck = false;

	for (;;) {
		plain = stuck || ngx_queue_empty(&up->plain) ? NULL :
		    ngx_queue_head(&up->plain);
		if (other == ngx_queue_sentinel(&up->others) || n == LOOK_MOST)
			other = NULL;
		if (plain != NULL && (other == NULL || began(plain) <=
		    began(other))) {
			stuck = !wake(ngx_http_kvroute_waiter(plain));
		} else if (other != NULL) {
			next = ngx_queue_next(other);
			(void)wake(ngx_http_kvroute_waiter(other));
			other = next;
			n++;
		} else {
			return;
		}
		if (other == NULL)
			other = ngx_queue_sentinel(&up->others);
	}
}

static void
look(ngx_event_t *event)
{
	ngx_http_kvroute_srv_conf_t *up = event->data;

	timers_leave(&up->plain);
	timers_leave(&up->others);
	wake_some(up);
	ngx_http_kvroute_place_write(up);
	if (up->n_waits > 0 && !event->timer_set)
		ngx_add_timer(event, POLL_MS);
}

void
ngx_http_kvroute_queue_freed(ngx_http_kvroute_srv_conf_t *up)
{
	if (up->n_waits > 0) {
		ngx_post_event(&up->queue_event, &ngx_posted_events);
	}
}

/* -------------------------------------------------------- configuration --- */

/* Of the master: servers of before a reload are not those of now. */
void
ngx_http_kvroute_queue_prepare(ngx_http_kvroute_srv_conf_t *up)
{
	up->life = ngx_atomic_fetch_add(&up->shared->lives, 1) + 1;
}

void
ngx_http_kvroute_queue_begin(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	ngx_queue_init(&up->plain);
	ngx_queue_init(&up->others);
	up->queue_event.handler = look;
	up->queue_event.data = up;
	up->queue_event.log = log;
	/* The timers of those that wait keep an exiting process alive. */
	up->queue_event.cancelable = 1;
}

bool
ngx_http_kvroute_queue_make(ngx_http_kvroute_ctx_t *ctx, size_t bytes)
{
	if (ctx->up->queue == 0)
		return true;
	if (ctx->wait.tried == NULL || bytes > ctx->wait.bytes)
		ctx->wait.tried = ngx_palloc(ctx->request->pool, bytes + 1);
	ctx->wait.bytes = bytes;
	return ctx->wait.tried != NULL;
}

const char *
ngx_http_kvroute_queue_set(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *value)
{
	ngx_int_t n;

	if (value->len == 3 && ngx_strncmp(value->data, "off", 3) == 0) {
		up->queue = 0;
		return NULL;
	}
	n = ngx_atoi(value->data, value->len);
	if (n == NGX_ERROR || n < 1 || n > QUEUE_MOST)
		return "it is \"off\", or how many requests may wait while "
		    "all servers are full, from 1 to 65536";
	up->queue = (ngx_uint_t)n;
	if (up->queue_timeout == 0)
		up->queue_timeout = TIMEOUT_MS;
	return NULL;
}

const char *
ngx_http_kvroute_queue_timeout_set(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *value)
{
	ngx_str_t text = *value;
	ngx_int_t ms = ngx_parse_time(&text, 0);

	if (ms == NGX_ERROR || ms < TIMEOUT_LEAST || ms > TIMEOUT_MOST)
		return "it is a time from 10ms to 1h";
	up->queue_timeout = (ngx_msec_t)ms;
	return NULL;
}

/* Without a limit no server is ever full. */
void
ngx_http_kvroute_queue_check(ngx_conf_t *cf, ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_upstream_server_t *server = up->upstream->servers->elts;
	ngx_uint_t i;

	for (i = 0; i < up->upstream->servers->nelts; i++) {
		if (server[i].max_conns > 0)
			break;
	}
	if (up->queue > 0 && i == up->upstream->servers->nelts)
		ngx_conf_log_error(NGX_LOG_WARN, cf, 0, "\"queue=\" of "
		    "upstream \"%V\" has no effect: no server of it has "
		    "\"max_conns=\"", &up->upstream->host);
}
