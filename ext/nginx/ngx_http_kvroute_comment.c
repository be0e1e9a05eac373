/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_comment.c - comments in an event stream, which clients skip.
 *
 *   headers |--- kvroute_comments ---| ":" |---| ":" |---| first event ...
 *
 * Engines send headers before prefill, and proxies and clients between may
 * close a connection on which nothing comes for long. Once the stream has begun
 * it is left alone: a comment must not stand within an event. A stream that is
 * compressed has none.
 */
#include "ngx_http_kvroute_comment.h"

#include "ngx_http_kvroute_ctx.h"

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
	ngx_http_kvroute_ctx_t *ctx = event->data;
	ngx_http_request_t *r = ctx->request;
	ngx_connection_t *c = r->connection;
	ngx_chain_t *comment;

	/* A client that reads nothing needs none. */
	comment = c->error || c->buffered || r->buffered ? NULL :
	    comment_make(r);
	if (comment != NULL && ctx->comments.filter(r, comment) == NGX_ERROR)
		return;
	ngx_add_timer(event, ctx->comments.ms);
}

void
ngx_http_kvroute_comments_begin(ngx_http_kvroute_ctx_t *ctx,
    ngx_http_output_body_filter_pt filter)
{
	ngx_http_request_t *r = ctx->request;
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_kvroute_loc(r);
	ngx_event_t *timer = &ctx->comments.timer;

	if (loc->comments == 0 || !ctx->passing.stream || r != r->main ||
	    r->header_only || r->headers_out.content_length_n >= 0 ||
	    r->headers_out.content_encoding != NULL ||
	    ctx->comments.filter != NULL)
		return;
	ctx->comments.filter = filter;
	ctx->comments.ms = loc->comments;
	timer->handler = comment_send;
	timer->data = ctx;
	timer->log = r->connection->log;
	ngx_add_timer(timer, loc->comments);
}

void
ngx_http_kvroute_comments_end(ngx_http_kvroute_ctx_t *ctx)
{
	if (ctx->comments.timer.timer_set)
		ngx_del_timer(&ctx->comments.timer);
}
