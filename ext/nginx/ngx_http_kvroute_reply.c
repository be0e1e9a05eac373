/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_reply.c - responses of the module's own: of a status
 * location, and of a request that is refused.
 */
#include "ngx_http_kvroute_reply.h"

#include "json_writer.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_peers.h"
#include "refusal.h"
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

ngx_buf_t *
kvroute_reply_end(kvroute_reply_t *o)
{
	ngx_http_request_t *r = o->request;
	ngx_buf_t *b = o->writer.failed ? NULL : ngx_calloc_buf(r->pool);

	if (b == NULL)
		return NULL;
	if (o->shared.len == 0)
		o->shared = (ngx_str_t){ o->hold->length, o->hold->data };
	b->pos = o->shared.data;
	b->last = b->pos + o->shared.len;
	b->memory = 1;
	b->last_buf = r == r->main;
	b->last_in_chain = 1;
	return b;
}

ngx_int_t
kvroute_reply_send(kvroute_reply_t *o, ngx_uint_t status, const char *type)
{
	ngx_http_request_t *r = o->request;
	ngx_chain_t out = { NULL, NULL };
	ngx_int_t rc;

	kvroute_reply_header(o, "Cache-Control", "no-store");
	kvroute_reply_header(o, "X-Content-Type-Options", "nosniff");
	out.buf = kvroute_reply_end(o);
	if (out.buf == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	r->headers_out.status = status;
	r->headers_out.content_length_n = (off_t)o->shared.len;
	r->headers_out.content_type = buf_borrow(type);
	r->headers_out.content_type_len = r->headers_out.content_type.len;
	r->headers_out.content_type_lowcase = NULL;
	rc = ngx_http_send_header(r);
	if (rc == NGX_ERROR || rc > NGX_OK || r->header_only)
		return rc;
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

/* ------------------------------------------------------------- refusals --- */

/*
 * The error of a refused request has a sentence,
 * where nginx's own page has none, and the server of a response has a header.
 *
 *   queue full, waited in vain      502, 504 --> 503, and refusal.h
 *   no salt                         400, 415, and the same
 *   all others                      502, 504, and the same
 *
 * Only nginx's own errors are replaced: the answer of an engine passes, and so
 * does a page of error_page.
 */

typedef struct {
	ngx_http_request_t *request;
	const char *why;        /* NULL: by the reason of the choice */
	bool on;                /* the response is this refusal; */
	ngx_buf_t *body;        /* its rest, or NULL */
} refusal_t;

KVROUTE_KEPT(refusal_cleanup)

static refusal_t *
kept_refusal(ngx_http_request_t *r)
{
	return kvroute_kept_of(r, refusal_cleanup);
}

static refusal_t *
refusal_keep(ngx_http_request_t *r, const char *why)
{
	refusal_t *refusal = kept_refusal(r);

	if (refusal == NULL)
		refusal = kvroute_kept_make(r, refusal_cleanup,
		    sizeof(*refusal));
	if (refusal != NULL)
		refusal->why = why;
	return refusal;
}

void
kvroute_refusal_keep(ngx_http_request_t *r, const char *why)
{
	(void)refusal_keep(r, why);
}

static ngx_buf_t *
text_make(ngx_http_request_t *r, const struct refusal *of)
{
	kvroute_reply_t o;

	kvroute_reply_begin(&o, r);
	refusal_write(of, &o.writer);
	return kvroute_reply_end(&o);
}

/* An error of nginx's own, for a request of ours. */
static bool
is_own_error(ngx_http_request_t *r, const kvroute_ctx_t *ctx)
{
	ngx_uint_t status = r->headers_out.status;

	return ctx != NULL && r->upstream != NULL &&
	    r->upstream->headers_in.status_n == 0 &&
	    (status == NGX_HTTP_BAD_GATEWAY ||
	    status == NGX_HTTP_GATEWAY_TIME_OUT);
}

static void
status_set(ngx_http_request_t *r, const struct refusal *of)
{
	static ngx_str_t second = ngx_string("1");

	if (of->status != 0) {
		r->headers_out.status = r->err_status = of->status;
		r->headers_out.status_line.len = 0;
	}
	if (of->again)
		(void)kvroute_header_add(r, "Retry-After", &second);
}

void
kvroute_refusal_begin(ngx_http_request_t *r)
{
	kvroute_ctx_t *ctx = kvroute_ctx(r);
	struct refusal of;
	refusal_t *refusal;

	if (r->headers_out.status < NGX_HTTP_BAD_REQUEST || r->error_page)
		return;
	refusal = kept_refusal(r);
	if (refusal == NULL && is_own_error(r, ctx))
		refusal = refusal_keep(r, NULL);
	if (refusal == NULL)
		return;
	of = refusal->why != NULL ? refusal_invalid(refusal->why) :
	    refusal_of(ctx->book.reason, r->headers_out.status ==
	    NGX_HTTP_GATEWAY_TIME_OUT);
	status_set(r, &of);
	refusal->body = text_make(r, &of);
	if (refusal->body == NULL)
		return;
	refusal->on = true;
	ngx_str_set(&r->headers_out.content_type, "application/json");
	r->headers_out.content_type_len = r->headers_out.content_type.len;
	r->headers_out.content_type_lowcase = NULL;
	ngx_http_clear_content_length(r);
	r->headers_out.content_length_n = refusal->body->last -
	    refusal->body->pos;
}

ngx_int_t
kvroute_refusal_body(ngx_http_request_t *r, ngx_chain_t **in)
{
	refusal_t *refusal = r->headers_out.status < NGX_HTTP_BAD_REQUEST ?
	    NULL : kept_refusal(r);
	ngx_chain_t *link;

	if (refusal == NULL || !refusal->on || *in == NULL)
		return NGX_OK;
	link = refusal->body == NULL ? NULL : ngx_alloc_chain_link(r->pool);
	if (refusal->body != NULL && link == NULL)
		return NGX_ERROR;
	if (link != NULL) {
		link->buf = refusal->body;
		link->next = NULL;
	}
	refusal->body = NULL;
	for (; *in != NULL; *in = (*in)->next) /* nginx's page is not sent */
		(*in)->buf->pos = (*in)->buf->last;
	*in = link;
	return NGX_OK;
}

ngx_int_t
kvroute_server_show(kvroute_ctx_t *ctx)
{
	kvroute_loc_conf_t *loc = kvroute_loc(ctx->request);
	ngx_str_t name = kvroute_taken_name(ctx);

	return !loc->server_header || name.len == 0 ? NGX_OK :
	    kvroute_header_add(ctx->request, "X-Kvroute-Server", &name);
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

ngx_int_t
kvroute_aside_prepare(ngx_conf_t *cf)
{
	kvroute_main_conf_t *main = kvroute_main(cf);
	kvroute_srv_conf_t **ups = main->upstreams.elts;
	ngx_uint_t i, n = 0;

	for (i = 0; i < main->upstreams.nelts; i++)
		n += ups[i]->n_workers;
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
	kvroute_reply_t reply;
	ngx_event_t stay;       /* a process that ends waits for timers only */
} aside_t;

/* While the lock of the index is held it waits, as only a thread may. */
static void
aside_write(void *data, ngx_log_t *log)
{
	aside_t *a = data;
	kvroute_reply_t *o = &a->reply;
	ngx_uint_t tries = TRIES;

	(void)log;
	do {
		if (tries < TRIES)
			ngx_msleep(WAIT_MS);
		o->hold->length = 0;
		o->writer = hold_out(o->hold);
		a->write(&a->status, &o->writer);
	} while (o->writer.failed && --tries > 0);
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
	ngx_http_finalize_request(r, c->error ? NGX_ERROR :
	    a->reply.writer.failed ? kvroute_blocked_answer(r) :
	    kvroute_reply_send(&a->reply, NGX_HTTP_OK, a->type));
	ngx_http_run_posted_requests(c);
}

ngx_int_t
kvroute_aside_send(ngx_http_request_t *r, const struct status *s,
    kvroute_write_pt *write, const char *type)
{
	ngx_str_t name = ngx_string("default");
	ngx_thread_pool_t *pool = ngx_thread_pool_get((ngx_cycle_t *)ngx_cycle,
	    &name);
	ngx_thread_task_t *task;
	aside_t *a;

	task = pool == NULL ? NULL :
	    ngx_thread_task_alloc(r->pool, sizeof(*a));
	if (task == NULL)
		return NGX_DECLINED;
	a = task->ctx;
	ngx_memzero(a, sizeof(*a));
	a->request = r;
	a->status = *s;
	a->write = write;
	a->type = type;
	kvroute_reply_begin(&a->reply, r);
	if (a->reply.writer.failed)
		return NGX_DECLINED;
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
