/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_answer.c - response filters. They read a response while it
 * passes and delay nothing.
 *
 *   headers, < 400    the request was accepted; commit, if a stream follows
 *   first event       first token (headers come before prefill)
 *   usage, message    kept until the end, see passing.h
 *
 * If usage was requested on behalf of the client, the chunk that carries it is
 * removed. Only then are bytes held back: those of an incomplete event, until
 * the kind of the event is clear.
 */
#include "ngx_http_kvroute_module.h"

#include "endpoint.h"
#include "ngx_http_kvroute_body.h"
#include "ngx_http_kvroute_choose.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_end.h"
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_ranks.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_reply.h"
#include "ngx_http_kvroute_session.h"
#include "ngx_http_kvroute_time.h"
#include "shared.h"
#include "usage_ask.h"

static ngx_http_output_header_filter_pt next_header;
static ngx_http_output_body_filter_pt next_body;

/* ------------------------------------------------------------- comments --- */

/*
 * Comments in an event stream, which clients skip.
 *
 *   headers |--- kvroute_comments ---| ":" |---| ":" |---| first event ...
 *
 * Engines send headers before prefill, and proxies and clients between may
 * close a connection on which nothing comes for long. Once the stream has begun
 * it is left alone: a comment must not stand within an event. A stream that is
 * compressed has none.
 */

static ngx_chain_t *
comment_make(ngx_http_request_t *r)
{
	static u_char comment[] = ": prefill\n\n";
	ngx_chain_t *link = ngx_alloc_chain_link(r->pool);
	ngx_buf_t *b = ngx_calloc_buf(r->pool);

	if (link == NULL || b == NULL)
		return NULL;
	b->pos = comment;
	b->last = comment + sizeof(comment) - 1;
	b->memory = 1;
	b->flush = 1;
	link->buf = b;
	link->next = NULL;
	return link;
}

/* An error is seen by the next event of the client. */
static void
comment_send(ngx_event_t *event)
{
	kvroute_ctx_t *ctx = event->data;
	ngx_http_request_t *r = ctx->request;
	ngx_connection_t *c = r->connection;
	ngx_chain_t *comment;

	/* A client that reads nothing needs none. */
	comment = c->error || c->buffered || r->buffered ? NULL :
	    comment_make(r);
	if (comment != NULL && next_body(r, comment) == NGX_ERROR)
		return;
	ngx_add_timer(event, ctx->comments.ms);
}

/* The headers of a stream were sent. */
static void
comments_begin(kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	ngx_event_t *timer = &ctx->comments.timer;

	if (loc->comments == 0 || !ctx->passing.stream || r != r->main ||
	    r->header_only || r->headers_out.content_length_n >= 0 ||
	    r->headers_out.content_encoding != NULL ||
	    ctx->comments.ms != 0)
		return;
	ctx->comments.ms = loc->comments;
	timer->handler = comment_send;
	timer->data = ctx;
	timer->log = r->connection->log;
	ngx_add_timer(timer, loc->comments);
}

/* A stream has begun, or is over. Again is no error. */
void
kvroute_comments_end(kvroute_ctx_t *ctx)
{
	if (ctx->comments.timer.timer_set)
		ngx_del_timer(&ctx->comments.timer);
}

enum { STALL_MS = 10 };

/* -------------------------------------------------------------- headers --- */

static bool
type_is(ngx_http_request_t *r, const char *type)
{
	ngx_str_t *t = &r->headers_out.content_type;

	return passing_type_is((const char *)t->data, t->len, type);
}

static bool
is_readable(kvroute_ctx_t *ctx, ngx_uint_t status)
{
	ngx_http_request_t *r = ctx->request;
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	ngx_table_elt_t *coding = r->headers_out.content_encoding;

	return loc->feedback && status >= 200 && status < 300 &&
	    (ctx->endpoint != ENDPOINT_OTHER || ctx->keeps.binds != 0) &&
	    !r->header_only &&
	    (coding == NULL || coding->value.len == 0);
}

static void
answer_watch(kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;

	if (!passing_begin(&ctx->passing, ctx->up->spares,
	    type_is(r, "application/json"), ctx->asked))
		return;
	if (ctx->book.lease != 0 && ctx->reader != NULL && ctx->facts.extends)
		passing_extends(&ctx->passing, ctx->up->spares, ctx->endpoint,
		    ctx->reader->prompt);
	r->filter_need_in_memory = 1;
	if (ctx->passing.strip) {
		ngx_http_clear_content_length(r);
	}
}

static ngx_int_t
header_filter(ngx_http_request_t *r)
{
	kvroute_ctx_t *ctx = kvroute_ctx(r);
	ngx_uint_t status;
	int64_t began;

	if (ctx == NULL)
		kvroute_reader_early_leave(r);
	else if (kvroute_server_show(ctx) != NGX_OK)
		return NGX_ERROR;
	kvroute_refusal_begin(r);
	/* From nginx's cache, perhaps instead of a failed response. */
	if (ctx == NULL || r->upstream == NULL || ctx->headers ||
	    kvroute_cached(r))
		return next_header(r);
	status = r->upstream->headers_in.status_n;
	if (ctx->asked)
		usage_answered(&ctx->up->fleet, (unsigned)status, ngx_time(),
		    r->connection->log);
	if (status == r->headers_out.status)
		kvroute_rank_answered(ctx, status);
	if (status == 0 || status >= 400 || status != r->headers_out.status)
		return next_header(r);
	ctx->headers = true;
	ctx->passing.stream = type_is(r, "text/event-stream");
	began = kvr_clock_now();
	kvroute_late_book(ctx, began);
	/*
	 * Other responses are committed by their end, as is a commit that found
	 * the lock held here.
	 */
	if (ctx->book.lease != 0 && ctx->passing.stream) {
		(void)kvr_lease_commit(
		    ctx->up->fleet.kvr, ctx->book.lease, began, KVR_NOWAIT);
	}
	if (ctx->book.prefill != 0 && ctx->passing.stream)
		(void)kvr_lease_commit(ctx->up->fleet.kvr, ctx->book.prefill,
		    began, KVR_NOWAIT);
	ctx->ns += kvroute_spent(ctx->up, began);
	if (status >= 200 && status < 300) {
		kvroute_session_accepted(ctx);
		evidence_accepted(&ctx->up->fleet, &ctx->evidence,
		    kvr_clock_now(), r->connection->log);
	}
	if (is_readable(ctx, status))
		answer_watch(ctx);
	kvroute_prompt_leave(ctx);
	comments_begin(ctx);
	return next_header(r);
}

/* ----------------------------------------------------------------- body --- */

static void
prefill_note(kvroute_ctx_t *ctx)
{
	if (ctx->book.prefill == 0)
		return;
	(void)kvr_lease_first_token(ctx->up->fleet.kvr, ctx->book.prefill,
	    kvr_clock_now(), KVR_NOWAIT);
	kvroute_prefill_end(ctx, true);
}

static void
first_token(kvroute_ctx_t *ctx)
{
	if (ctx->passing.started || !answer_started(ctx->passing.answer) ||
	    !passing_token(&ctx->passing, ctx->up->fleet.kvr, ctx->book.lease,
	    kvr_clock_now()))
		return;
	kvroute_first_timed(ctx);
	prefill_note(ctx);
}

static void
chain_read(kvroute_ctx_t *ctx, ngx_chain_t *in)
{
	ngx_buf_t *b;

	for (; in != NULL; in = in->next) {
		b = in->buf;
		if (!ngx_buf_in_memory(b))
			continue;
		passing_data(&ctx->passing, b->pos,
		    (size_t)(b->last - b->pos));
	}
	kvroute_session_answered(ctx);
	first_token(ctx);
	kvroute_health_progress(ctx);
}

/* ---------------------------------------------------------------- strip --- */

/* Appends bytes of ours to those that have been passed on. */
static ngx_int_t
out_add(kvroute_ctx_t *ctx, ngx_chain_t ***last, const void *bytes, size_t n)
{
	ngx_chain_t *cl = ngx_chain_get_free_buf(ctx->request->pool,
	    &ctx->free);
	ngx_buf_t *b;

	if (cl == NULL)
		return NGX_ERROR;
	b = cl->buf;
	if (b->start == NULL || (size_t)(b->end - b->start) < n) {
		b->start = ngx_palloc(ctx->request->pool, n);
		if (b->start == NULL)
			return NGX_ERROR;
		b->end = b->start + n;
	}
	b->pos = b->start;
	b->last = ngx_cpymem(b->start, bytes, n);
	b->temporary = 1;
	b->flush = 1;
	b->tag = (ngx_buf_tag_t)&ngx_http_upstream_kvroute_module;
	**last = cl;
	*last = &cl->next;
	return NGX_OK;
}

/* Drops all buffers but those that mark the end of the response. */
static ngx_buf_t *
end_make(kvroute_ctx_t *ctx, const ngx_buf_t *of)
{
	ngx_buf_t *b = ngx_calloc_buf(ctx->request->pool);

	if (b == NULL)
		return NULL;
	b->last_buf = of->last_buf;
	b->last_in_chain = of->last_in_chain;
	b->sync = 1;
	return b;
}

/*
 * Buffers that nginx was given stay its own; a link is ours. A buffer that was
 * stripped of all its bytes is not passed: an empty one is an error to nginx.
 */
static ngx_int_t
out_pass(kvroute_ctx_t *ctx, ngx_chain_t ***last, ngx_buf_t *b)
{
	bool empty = ngx_buf_in_memory(b) && b->pos == b->last;
	ngx_chain_t *cl;

	if (empty && !b->last_buf && !b->last_in_chain)
		return NGX_OK;
	cl = ngx_alloc_chain_link(ctx->request->pool);
	if (cl == NULL)
		return NGX_ERROR;
	cl->buf = empty ? end_make(ctx, b) : b;
	if (cl->buf == NULL)
		return NGX_ERROR;
	cl->next = NULL;
	**last = cl;
	*last = &cl->next;
	return NGX_OK;
}

static ngx_int_t
buf_strip(kvroute_ctx_t *ctx, ngx_chain_t ***last, ngx_buf_t *b)
{
	size_t held = answer_held(ctx->passing.answer);
	size_t n = (size_t)(b->last - b->pos), left;
	u_char *room = ngx_alloc(held + n, ctx->request->connection->log);
	ngx_int_t rc = NGX_OK;

	if (room == NULL)
		return NGX_ERROR;
	left = passing_strip(&ctx->passing, ctx->up->fleet.shared, b->pos, n,
	    room);
	if (held > 0 || left != n) {
		/* b is consumed: its rest is passed as a copy */
		b->pos = b->last;
		if (left > 0)
			rc = out_add(ctx, last, room, left);
	}
	ngx_free(room);
	return rc;
}

/* At the end of the response, passes the bytes held back. */
static ngx_int_t
tail_strip(kvroute_ctx_t *ctx, ngx_chain_t ***last)
{
	size_t held = answer_held(ctx->passing.answer), n;
	ngx_int_t rc = NGX_OK;
	u_char *room;

	if (held == 0)
		return NGX_OK;
	room = ngx_alloc(held, ctx->request->connection->log);
	if (room == NULL)
		return NGX_ERROR;
	n = passing_flush(&ctx->passing, ctx->up->fleet.shared, room);
	if (n > 0)
		rc = out_add(ctx, last, room, n);
	ngx_free(room);
	return rc;
}

static ngx_int_t
chain_strip(kvroute_ctx_t *ctx, ngx_chain_t *in, ngx_chain_t **out)
{
	ngx_chain_t **last = out;
	ngx_buf_t *b;

	*out = NULL;
	for (; in != NULL; in = in->next) {
		b = in->buf;
		if (ngx_buf_in_memory(b) && b->last > b->pos &&
		    buf_strip(ctx, &last, b) != NGX_OK)
			return NGX_ERROR;
		if ((b->last_buf || b->last_in_chain) &&
		    tail_strip(ctx, &last) != NGX_OK)
			return NGX_ERROR;
		if (out_pass(ctx, &last, b) != NGX_OK)
			return NGX_ERROR;
	}
	first_token(ctx);
	kvroute_health_progress(ctx);
	return NGX_OK;
}

static ngx_int_t
chain_rewrite(kvroute_ctx_t *ctx, ngx_chain_t *in)
{
	ngx_http_request_t *r = ctx->request;
	int64_t began = kvr_clock_now();
	ngx_chain_t *out;
	ngx_int_t rc;

	if (chain_strip(ctx, in, &out) != NGX_OK)
		return NGX_ERROR;
	if (out == NULL)
		return NGX_OK;
	ctx->ns += kvroute_spent(ctx->up, began);
	rc = next_body(r, out);
	ngx_chain_update_chains(r->pool, &ctx->free, &ctx->busy, &out,
	    (ngx_buf_tag_t)&ngx_http_upstream_kvroute_module);
	return rc;
}

static bool
has_last(ngx_chain_t *in)
{
	for (; in != NULL; in = in->next) {
		if (in->buf->last_buf || in->buf->last_in_chain)
			return true;
	}
	return false;
}

static bool
has_bytes(ngx_chain_t *in)
{
	while (in != NULL && ngx_buf_size(in->buf) == 0)
		in = in->next;
	return in != NULL;
}

/* By limit_rate, which also waits when all is sent; a little is nothing. */
static bool
held_back(const ngx_event_t *write)
{
	return write->delayed && write->timer_set && (ngx_msec_int_t)
	    (write->timer.key - ngx_current_msec) > STALL_MS;
}

static ngx_int_t
body_filter(ngx_http_request_t *r, ngx_chain_t *in)
{
	kvroute_ctx_t *ctx = kvroute_ctx(r);
	ngx_int_t rc;
	int64_t began;
	bool last;

	if (kvroute_refusal_body(r, &in) != NGX_OK)
		return NGX_ERROR;
	if (ctx != NULL && (has_last(in) || has_bytes(in)))
		kvroute_comments_end(ctx);
	if (ctx == NULL || ctx->passing.answer == NULL || ctx->last ||
	    in == NULL)
		return next_body(r, in);
	last = has_last(in);
	if (ctx->passing.strip) {
		rc = chain_rewrite(ctx, in);
	} else {
		/* most last buffers are empty */
		began = ngx_buf_size(in->buf) > 0 ? kvr_clock_now() : 0;
		chain_read(ctx, in);
		if (began > 0)
			ctx->ns += kvroute_spent(ctx->up, began);
		rc = next_body(r, in);
	}
	ctx->evidence.stalled |= r->connection->buffered != 0 ||
	    held_back(r->connection->write);
	ctx->last = last;
	if (last && ctx->ending)
		kvroute_end(ctx, true);
	return rc;
}

/* ---------------------------------------------------------------- order --- */

/*
 * Modules add their filters in the order of this array, and the one that was
 * added last sees a response first:
 *
 *   load_module of          [ ... kvroute  lua  copy ... ]   lua sees the usage
 *   kvroute, then lua                                        chunk, we strip it
 *   afterwards              [ ... lua  kvroute  copy ... ]   we come first
 *
 * nginx puts each such module before the copy filter, which reads files into
 * memory for all filters after it, so the module loaded last comes first. Ours
 * takes that place, in any order of load_module. Only a directive may do this:
 * while nginx calls one it is in no loop over the array, except for the search
 * that has just found the directive.
 */
char *
kvroute_filters_order(ngx_conf_t *cf)
{
	ngx_module_t **modules = cf->cycle->modules;
	ngx_uint_t from = kvroute_module_find(modules,
	    ngx_http_upstream_kvroute_module.name);
	ngx_uint_t to = kvroute_module_find(modules,
	    "ngx_http_copy_filter_module");

	if (modules[from] == NULL || modules[to] == NULL || from > to)
		return "finds nginx's modules in an unknown order";
	ngx_memmove(&modules[from], &modules[from + 1],
	    (to - from - 1) * sizeof(ngx_module_t *));
	modules[to - 1] = &ngx_http_upstream_kvroute_module;
	return NGX_CONF_OK;
}

void
kvroute_filters_add(void)
{
	next_header = ngx_http_top_header_filter;
	ngx_http_top_header_filter = header_filter;
	next_body = ngx_http_top_body_filter;
	ngx_http_top_body_filter = body_filter;
}
