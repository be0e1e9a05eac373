/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_read.c - reads the bodies of requests, long ones in pieces.
 *
 * A process of nginx has one loop. While a body of megabytes is parsed in one
 * call all its other clients wait. So a long body is read here before the
 * upstream is chosen, a little in each turn of the loop. For nginx such a
 * request is one whose body took longer to arrive:
 *
 *   last buffer of a body        long: rb->post_handler becomes ours
 *   nginx calls post_handler     the reader enters the queue
 *
 *     queue  [ r3 | r1 | r2 ]    a turn: one piece of r3, which goes to the
 *                                tail, one of r1, ... until its time is over
 *
 *   all of it is read            the post_handler that nginx had: the upstream
 *                                is chosen, and peer.init finds the reader
 *
 * A short body is read at the choice, in one go. This counts as time of the
 * turn as well: once a turn has none left, further bodies enter the queue,
 * short ones too.
 *
 * A body that was read before its location was known to have an upstream, for
 * instance for a mirror, does not come by that way. In that case the last
 * handler of the PRECONTENT phase holds the request, if its location was seen
 * to lead to an upstream of ours. The first request of a location in a process
 * is not held so, nor are subrequests; nor is a body that nginx has read whole
 * with the request's head, which is short. These are read at the choice.
 *
 * The request may end while it is held: a cleanup of its pool takes the reader
 * out of the queue, see reader.c. Until then nothing else reads from the
 * client, and a client that has left ends it, as anywhere in nginx.
 *
 * THE TRAP. A process that exits gracefully does so as soon as there is no
 * timer. Nothing else of a held request has one, so the queue has one of its
 * own while it is not empty.
 */
#include "ngx_http_kvroute_read.h"

#include "body.h"
#include "counters.h"
#include "endpoint.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_time.h"
#include "shared.h"

/*
 * Tests build it with others, so that no time decides the result, and with a
 * file that stops the queue while it is there.
 */
#ifndef NGX_HTTP_KVROUTE_SHORT
#define NGX_HTTP_KVROUTE_SHORT 65536
#endif
#ifndef NGX_HTTP_KVROUTE_TURN_NS
#define NGX_HTTP_KVROUTE_TURN_NS 250000
#endif

enum {
	SHORT = NGX_HTTP_KVROUTE_SHORT,     /* read at the choice */
	TURN_NS = NGX_HTTP_KVROUTE_TURN_NS, /* for bodies in one turn */
	STAY_MS = 60000
};

/* One for this process, for all its upstreams. */
static struct {
	ngx_queue_t queue;      /* kvroute_reader_t */
	ngx_event_t work;       /* in the next turn */
	ngx_event_t over;       /* at the end of this turn */
	ngx_event_t stay;       /* see THE TRAP */
	ngx_connection_t none;  /* nginx's debug log wants one */
	int64_t spent;          /* ns, in this turn */
} loop;

static ngx_http_request_body_filter_pt next_filter;

/* ---------------------------------------------------------------- turns --- */

/* Time of this turn has been spent on bodies. */
static void
time_spend(int64_t ns)
{
	loop.spent += ns;
	ngx_post_event(&loop.over, &ngx_posted_events);
}

static void
turn_over(ngx_event_t *event)
{
	loop.spent = 0;
}

/* The queue is not empty. */
static void
turn_ask(void)
{
	ngx_post_event(&loop.work, &ngx_posted_next_events);
	if (!loop.stay.timer_set)
		ngx_add_timer(&loop.stay, STAY_MS);
}

static void
stay_on(ngx_event_t *event)
{
	if (!ngx_queue_empty(&loop.queue))
		ngx_add_timer(event, STAY_MS);
}

/* It is no longer held: nginx goes on. */
static void
reader_let_go(kvroute_reader_t *reader)
{
	ngx_http_request_t *r = reader->request;
	ngx_connection_t *c = r->connection;

	ngx_http_set_log_request(c->log, r);
	if (r->read_event_handler == reader->reading)
		r->read_event_handler = ngx_http_block_reading;
	reader->then(r);
	/* The request may be gone. */
	ngx_http_run_posted_requests(c);
}

/* One piece of the first body; it goes to the end of the queue. */
static void
queue_step(void)
{
	kvroute_reader_t *reader = ngx_queue_data(
	    ngx_queue_head(&loop.queue), kvroute_reader_t, queue);
	int64_t began = kvr_clock_now();
	bool more;

	ngx_queue_remove(&reader->queue);
	more = kvroute_reader_piece(reader);
	if (more)
		shared_count(reader->up->fleet.shared, COUNT_PIECES, 1);
	else
		kvroute_reader_end(reader);
	reader->ns += kvroute_spent(reader->up, began);
	if (more) {
		ngx_queue_insert_tail(&loop.queue, &reader->queue);
		return;
	}
	reader->held = false;
	reader_let_go(reader);
}

static bool
is_stopped(void)
{
#ifdef NGX_HTTP_KVROUTE_STOP
	return access(NGX_HTTP_KVROUTE_STOP, F_OK) == 0;
#else
	return false;
#endif
}

static void
queue_work(ngx_event_t *event)
{
	int64_t began = kvr_clock_now(), left = TURN_NS - loop.spent;

	while (!ngx_queue_empty(&loop.queue) && !is_stopped()) {
		queue_step();
		if (kvr_clock_now() - began >= left)
			break;
	}
	time_spend(kvr_clock_now() - began);
	if (!ngx_queue_empty(&loop.queue))
		turn_ask();
	else if (loop.stay.timer_set)
		ngx_del_timer(&loop.stay);
}

/* ----------------------------------------------------------------- hold --- */

/*
 * As ngx_http_test_reading, but a request whose client has left is first taken
 * out of the queue: with a post_action nginx goes on with it elsewhere.
 */
static void
client_look(ngx_http_request_t *r)
{
	kvroute_reader_t *reader = kvroute_reader_of(r);
	ngx_connection_t *c = r->connection;
	kvroute_srv_conf_t *up;

	if (reader == NULL || !reader->held) {
		ngx_http_block_reading(r);
		return;
	}
	up = reader->up;
	ngx_queue_remove(&reader->queue);
	reader->held = false;
	if (c->error)
		ngx_http_finalize_request(r, NGX_HTTP_CLIENT_CLOSED_REQUEST);
	else
		ngx_http_test_reading(r);
	/*
	 * The request ends by this, if it has not yet: its reader may be gone.
	 */
	if (c->error) {
		shared_count(up->fleet.shared, COUNT_CLIENTS_LEFT, 1);
		return;
	}
	reader->held = true;
	ngx_queue_insert_tail(&loop.queue, &reader->queue);
}

/*
 * The upstream of the location; before a request has one, that of proxy_pass,
 * whose configuration begins with that of its upstream.
 */
static const ngx_http_upstream_conf_t *
upstream_conf(ngx_http_request_t *r)
{
	ngx_module_t *proxy;

	if (r->upstream != NULL)
		return r->upstream->conf;
	proxy = ngx_cycle->modules[kvroute_module_find(
	    ngx_cycle->modules, "ngx_http_proxy_module")];
	return proxy == NULL ? NULL : r->loc_conf[proxy->ctx_index];
}

static bool
is_now(size_t size)
{
	return size <= SHORT && loop.spent < TURN_NS;
}

/* As ngx_http_upstream_init_request does a moment later. */
static void
client_watch(kvroute_reader_t *reader)
{
	ngx_http_request_t *r = reader->request;
	const ngx_http_upstream_conf_t *conf = upstream_conf(r);
	ngx_event_t *event = r->connection->read;

	if (r->post_action || (conf != NULL &&
	    (conf->store || conf->ignore_client_abort)))
		return;
	reader->reading = client_look;
	r->read_event_handler = client_look;
	if (event->ready) {
		ngx_post_event(event, &ngx_posted_events);
	} else {
		(void)ngx_handle_read_event(event, 0);
	}
}

static bool
reader_hold(kvroute_reader_t *reader, ngx_http_client_body_handler_pt then)
{
	if (!kvroute_reader_begin(reader))
		return false;
	reader->then = then;
	reader->held = true;
	ngx_queue_insert_tail(&loop.queue, &reader->queue);
	shared_count(reader->up->fleet.shared, COUNT_HELD, 1);
	turn_ask();
	return true;
}

static bool
read_whole(kvroute_reader_t *reader)
{
	int64_t began = kvr_clock_now(), ns;

	if (!kvroute_reader_begin(reader))
		return false;
	while (kvroute_reader_piece(reader))
		continue;
	kvroute_reader_end(reader);
	ns = kvr_clock_now() - began;
	reader->ns += (uint64_t)ns;
	time_spend(ns);
	return true;
}

ngx_int_t
kvroute_read_body(kvroute_reader_t *reader,
    ngx_http_client_body_handler_pt then)
{
	ngx_http_request_t *r = reader->request;

	if (r != r->main || is_now(kvroute_body_size(r)))
		return read_whole(reader) ? NGX_OK : NGX_ERROR;
	if (!reader_hold(reader, then))
		return NGX_ERROR;
	r->write_event_handler = ngx_http_request_empty_handler;
	client_watch(reader);
	return NGX_DONE;
}

/* Instead of the post_handler of nginx, which is reader->then. */
static void
body_came(ngx_http_request_t *r)
{
	kvroute_reader_t *reader = kvroute_reader_of(r);

	if (reader_hold(reader, reader->then))
		client_watch(reader);
	else
		reader->then(r);
}

/* The one to which the location led last, else any. */
kvroute_srv_conf_t *
kvroute_lender(ngx_http_request_t *r)
{
	kvroute_main_conf_t *main = ngx_http_get_module_main_conf(r,
	    ngx_http_upstream_kvroute_module);
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	kvroute_srv_conf_t **ups = main->upstreams.elts;
	ngx_uint_t i;

	if (loc->seen != NULL && loc->seen->fleet.shared != NULL)
		return loc->seen;
	for (i = 0; i < main->upstreams.nelts; i++) {
		if (ups[i]->fleet.shared != NULL)
			return ups[i];
	}
	return NULL;
}

/* Makes the reader of a request that must be held, else NULL. */
static kvroute_reader_t *
reader_ask(ngx_http_request_t *r, kvroute_srv_conf_t *up)
{
	enum endpoint endpoint = kvroute_endpoint(r);
	size_t size = kvroute_body_size(r);

	if (up == NULL || up->fleet.kvr == NULL || endpoint == ENDPOINT_OTHER ||
	    size == 0 || is_now(size) || kvroute_bypassed(r))
		return NULL;
	return kvroute_reader_make(r, up, endpoint);
}

/* ------------------------------------------------------ where they come --- */

static bool
is_host(ngx_http_upstream_srv_conf_t *us, ngx_http_upstream_resolved_t *to)
{
	return us->host.len == to->host.len &&
	    ((us->port == 0 && to->no_port) || us->port == to->port) &&
	    ngx_strncasecmp(us->host.data, to->host.data, to->host.len) == 0;
}

/* The one of ours to which nginx will send this request, or NULL. */
static kvroute_srv_conf_t *
upstream_of(ngx_http_request_t *r)
{
	kvroute_main_conf_t *main = ngx_http_get_module_main_conf(r,
	    ngx_http_upstream_kvroute_module);
	kvroute_srv_conf_t **ups = main->upstreams.elts;
	ngx_http_upstream_t *u = r->upstream;
	ngx_uint_t i;

	for (i = 0; i < main->upstreams.nelts; i++) {
		if (u->resolved == NULL ? u->conf->upstream ==
		    ups[i]->upstream : is_host(ups[i]->upstream, u->resolved))
			return ups[i];
	}
	return NULL;
}

/* Sees each body; the last of its buffers has been kept when rest is 0. */
static ngx_int_t
request_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
	ngx_http_request_body_t *rb = r->request_body;
	ngx_int_t rc = next_filter(r, in);
	kvroute_reader_t *reader;

	if (rc != NGX_OK || rb->rest != 0 || !rb->last_saved ||
	    r != r->main || r->upstream == NULL ||
	    r->request_body_no_buffering || rb->post_handler == body_came)
		return rc;
	reader = reader_ask(r, upstream_of(r));
	if (reader != NULL) {
		reader->then = rb->post_handler;
		rb->post_handler = body_came;
	}
	return rc;
}

/* Read, and not taken by a choice. */
static bool
is_unused(const kvroute_reader_t *reader, ngx_http_request_t *r)
{
	return reader != NULL && reader->read && reader->body != NULL &&
	    reader->from == r->request_body->bufs;
}

void
kvroute_reader_moved(ngx_http_request_t *r, ngx_chain_t *from,
    ngx_chain_t *to, off_t grown)
{
	kvroute_reader_t *reader = kvroute_reader_of(r);

	if (reader == NULL || reader->from != from)
		return;
	reader->from = to;
	if (reader->facts.end > 0)
		reader->facts.end += (uint64_t)grown;
}

void
kvroute_phases_go_on(ngx_http_request_t *r)
{
	r->write_event_handler = ngx_http_core_run_phases;
	ngx_http_core_run_phases(r);
}

/* A body that was there before the upstream was. */
ngx_int_t
kvroute_read_ahead(ngx_http_request_t *r)
{
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	kvroute_reader_t *reader;

	if (loc->seen == NULL || r != r->main || r->request_body == NULL ||
	    r->reading_body || r->request_body_no_buffering)
		return NGX_DECLINED;
	reader = kvroute_reader_of(r);
	if (reader != NULL && reader->held)
		return NGX_DONE;
	if (is_unused(reader, r))
		return NGX_DECLINED;
	reader = reader_ask(r, loc->seen);
	if (reader == NULL || !reader_hold(reader, kvroute_phases_go_on))
		return NGX_DECLINED;
	r->write_event_handler = ngx_http_request_empty_handler;
	return NGX_DONE;
}

/* ------------------------------------------------------------ at the choice */

/* Frees the text that was read for just this choice. */
static bool
is_fitting(const kvroute_reader_t *reader, kvroute_ctx_t *ctx)
{
	kvroute_loc_conf_t *loc = kvroute_loc(ctx->request);

	return is_unused(reader, ctx->request) &&
	    (reader->early || reader->up == ctx->up) &&
	    reader->endpoint == ctx->endpoint &&
	    reader->most == loc->max_body &&
	    reader->reasoning == loc->reasoning &&
	    reader->ignored == loc->ignored;
}

/* The text that was read early becomes a prompt of this upstream. */
static bool
prompt_make(kvroute_reader_t *reader, kvroute_ctx_t *ctx)
{
	int64_t began = kvr_clock_now();

	reader->up = ctx->up;
	reader->early = false;
	reader->prompt = spare_prompt(ctx->up->spares, ctx->up->fleet.kvr);
	if (reader->prompt == NULL)
		return false;
	reader->outcome = body_prompt(reader->body, reader->prompt);
	time_spend(kvr_clock_now() - began);
	return true;
}

kvroute_reader_t *
kvroute_reader_get(kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	kvroute_reader_t *reader = kvroute_reader_of(r);

	if (is_fitting(reader, ctx)) {
		ctx->ns += reader->ns;
		return !reader->early || prompt_make(reader, ctx) ? reader :
		    NULL;
	}
	kvroute_reader_early_leave(r);
	reader = kvroute_reader_make(r, ctx->up, ctx->endpoint);
	return reader != NULL && read_whole(reader) ? reader : NULL;
}

/* ---------------------------------------------------------------- begin --- */

void
kvroute_read_begin(ngx_cycle_t *cycle)
{
	ngx_queue_init(&loop.queue);
	loop.none.fd = (ngx_socket_t)-1;
	loop.spent = 0;
	kvroute_timer_make(&loop.work, queue_work, &loop.none, cycle->log);
	kvroute_timer_make(&loop.over, turn_over, &loop.none, cycle->log);
	kvroute_timer_make(&loop.stay, stay_on, &loop.none, cycle->log);
	loop.stay.cancelable = 0;
}

void
kvroute_read_add(void)
{
	next_filter = ngx_http_top_request_body_filter;
	ngx_http_top_request_body_filter = request_filter;
}
