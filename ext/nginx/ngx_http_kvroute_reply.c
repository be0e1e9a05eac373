/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_reply.c - the response of a status location.
 */
#include "ngx_http_kvroute_reply.h"

#include "json_writer.h"
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_server.h"
#include "status.h"

/* --------------------------------------------------------- the question --- */

ngx_str_t
kvroute_argument(ngx_http_request_t *r, const char *name)
{
	ngx_str_t value = ngx_null_string;
	u_char *to, *from;

	if (ngx_http_arg(r, (u_char *)(uintptr_t)name, strlen(name), &value) !=
	    NGX_OK)
		return value;
	from = value.data;
	to = ngx_pnalloc(r->pool, value.len + 1);
	if (to == NULL) {
		value.len = 0;
		return value;
	}
	value.data = to;
	ngx_unescape_uri(&to, &from, value.len, 0);
	value.len = (size_t)(to - value.data);
	return value;
}

ngx_int_t
kvroute_blocked_answer(ngx_http_request_t *r)
{
	return kvroute_reply_error(r, NGX_HTTP_SERVICE_UNAVAILABLE,
	    "another process holds the lock of the index");
}

static void
text_free(void *hold)
{
	hold_free(hold);
}

void
kvroute_reply_begin(kvroute_reply_t *o, ngx_http_request_t *r)
{
	ngx_pool_cleanup_t *cln = ngx_pool_cleanup_add(r->pool,
	    sizeof(*o->hold));

	ngx_memzero(o, sizeof(*o));
	o->request = r;
	o->writer.failed = cln == NULL;
	if (cln == NULL)
		return;
	cln->handler = text_free;
	o->hold = cln->data;
	ngx_memzero(o->hold, sizeof(*o->hold));
	o->writer = hold_out(o->hold);
}

void
kvroute_reply_share(kvroute_reply_t *o, const void *bytes, size_t n)
{
	o->shared = (ngx_str_t){ n, (u_char *)(uintptr_t)bytes };
}

/* ------------------------------------------------------------ sending --- */

static ngx_str_t
buf_borrow(const char *text)
{
	ngx_str_t s;

	s.data = (u_char *)(uintptr_t)text;
	s.len = strlen(text);
	return s;
}

void
kvroute_reply_header(kvroute_reply_t *o, const char *name, const char *value)
{
	const ngx_str_t text = buf_borrow(value);

	if (kvroute_header_add(o->request, name, &text) != NGX_OK)
		o->writer.failed = true;
}

ngx_int_t
kvroute_reply_send(kvroute_reply_t *o, ngx_uint_t status, const char *type)
{
	ngx_http_request_t *r = o->request;
	ngx_buf_t *b = ngx_calloc_buf(r->pool);
	ngx_chain_t out = { b, NULL };
	ngx_int_t rc;

	kvroute_reply_header(o, "Cache-Control", "no-store");
	kvroute_reply_header(o, "X-Content-Type-Options", "nosniff");
	if (o->writer.failed || b == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	if (o->shared.len == 0)
		o->shared = (ngx_str_t){ o->hold->length, o->hold->data };
	r->headers_out.status = status;
	r->headers_out.content_length_n = (off_t)o->shared.len;
	r->headers_out.content_type = buf_borrow(type);
	r->headers_out.content_type_len = r->headers_out.content_type.len;
	r->headers_out.content_type_lowcase = NULL;
	rc = ngx_http_send_header(r);
	if (rc == NGX_ERROR || rc > NGX_OK || r->header_only)
		return rc;
	b->pos = o->shared.data;
	b->last = b->pos + o->shared.len;
	b->memory = 1;
	b->last_buf = r == r->main;
	b->last_in_chain = 1;
	return ngx_http_output_filter(r, &out);
}

ngx_int_t
kvroute_reply_send_json(kvroute_reply_t *o, ngx_uint_t status)
{
	return kvroute_reply_send(o, status, "application/json");
}

ngx_int_t
kvroute_reply_refuse(kvroute_reply_t *o, ngx_uint_t status, const char *why)
{
	struct json j;

	json_begin(&j, &o->writer);
	json_map(&j, NULL);
	json_text(&j, "error", why);
	json_map_end(&j);
	json_end(&j);
	return kvroute_reply_send_json(o, status);
}

ngx_int_t
kvroute_reply_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *why)
{
	kvroute_reply_t o;

	kvroute_reply_begin(&o, r);
	return kvroute_reply_refuse(&o, status, why);
}

/* ---------------------------------------------------------------- aside --- */

/*
 * Writes a status in a thread of nginx's pool.
 *
 *   event loop   facts of peers --> task      done --> response
 *   thread                           '--> text --'
 *
 * The text of 4,000 workers takes 200 ms, in which no request would go on. The
 * library may be called from any thread; the facts were copied before. Nothing
 * of nginx's is touched by the thread: its memory comes from malloc.
 */

/* At most: servers may have the ranks of others. */
static ngx_uint_t
workers_of(const kvroute_srv_conf_t *up)
{
	const kvroute_server_t *facts = up->servers == NULL ? NULL :
	    up->servers->elts;
	const ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;
	ngx_uint_t i, n = 0;

	for (; peers != NULL; peers = peers->next)
		n += peers->number;
	for (i = 0; facts != NULL && i < up->servers->nelts; i++)
		n += known_ranks(&facts[i].told);
	return n;
}

ngx_int_t
kvroute_aside_prepare(ngx_conf_t *cf)
{
	kvroute_main_conf_t *main = kvroute_main(cf);
	kvroute_srv_conf_t **ups = main->upstreams.elts;
	ngx_uint_t i, n = 0;

	for (i = 0; i < main->upstreams.nelts; i++)
		n += workers_of(ups[i]);
	if (n < KVROUTE_ASIDE_WORKERS)
		return NGX_OK;
#if (NGX_THREADS)
	return ngx_thread_pool_add(cf, NULL) != NULL ? NGX_OK : NGX_ERROR;
#else
	ngx_log_error(NGX_LOG_WARN, cf->log, 0, "kvroute: this nginx has no "
	    "threads: while a status of %ui workers is written, no request "
	    "goes on", n);
	return NGX_OK;
#endif
}

#if (NGX_THREADS)

enum {
	TRIES = 100,
	WAIT_MS = 20,            /* between them */
	STAY_MS = 60000
};

typedef struct {
	ngx_http_request_t *request;
	struct status status;
	kvroute_write_pt *write;
	const char *type;
	struct hold text;
	bool failed;
	ngx_event_t stay;       /* a process that ends waits for timers only */
} aside_t;

/* While the lock of the index is held it waits, as only a thread may. */
static void
aside_write(void *data, ngx_log_t *log)
{
	aside_t *a = data;
	struct writer w;
	ngx_uint_t tries = TRIES;

	(void)log;
	do {
		if (tries < TRIES)
			ngx_msleep(WAIT_MS);
		a->text.length = 0;
		w = hold_out(&a->text);
		a->write(&a->status, &w);
	} while (w.failed && --tries > 0);
	a->failed = w.failed;
}

static void
aside_cleanup(void *data)
{
	aside_t *a = data;

	hold_free(&a->text);
}

static ngx_int_t
aside_answer(aside_t *a)
{
	kvroute_reply_t o;

	if (a->failed)
		return kvroute_blocked_answer(a->request);
	kvroute_reply_begin(&o, a->request);
	kvroute_reply_share(&o, a->text.data, a->text.length);
	return kvroute_reply_send(&o, NGX_HTTP_OK, a->type);
}

static void
aside_stays(ngx_event_t *event)
{
	ngx_add_timer(event, STAY_MS);
}

static void
aside_done(ngx_event_t *event)
{
	aside_t *a = event->data;
	ngx_http_request_t *r = a->request;
	ngx_connection_t *c = r->connection;

	r->main->blocked--;
	ngx_del_timer(&a->stay);
	ngx_http_set_log_request(c->log, r);
	ngx_http_finalize_request(r, c->error ? NGX_ERROR : aside_answer(a));
	ngx_http_run_posted_requests(c);
}

ngx_int_t
kvroute_aside_send(ngx_http_request_t *r, const struct status *s,
    kvroute_write_pt *write, const char *type)
{
	ngx_str_t name = ngx_string("default");
	ngx_thread_pool_t *pool = ngx_thread_pool_get((ngx_cycle_t *)ngx_cycle,
	    &name);
	ngx_pool_cleanup_t *cln = ngx_pool_cleanup_add(r->pool, 0);
	ngx_thread_task_t *task;
	aside_t *a;

	task = pool == NULL || cln == NULL ? NULL :
	    ngx_thread_task_alloc(r->pool, sizeof(*a));
	if (task == NULL)
		return NGX_DECLINED;
	a = task->ctx;
	ngx_memzero(a, sizeof(*a));
	a->request = r;
	a->status = *s;
	a->write = write;
	a->type = type;
	cln->handler = aside_cleanup;
	cln->data = a;
	task->handler = aside_write;
	task->event.handler = aside_done;
	task->event.data = a;
	if (ngx_thread_task_post(pool, task) != NGX_OK)
		return NGX_DECLINED;
	a->stay.handler = aside_stays;
	a->stay.data = a;
	a->stay.log = r->connection->log;
	ngx_add_timer(&a->stay, STAY_MS);
	r->main->count++;
	r->main->blocked++;
	return NGX_DONE;
}

#endif
