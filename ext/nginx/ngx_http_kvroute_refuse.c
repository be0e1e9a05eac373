/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_refuse.c - the error of a refused request has a sentence,
 * where nginx's own page has none, and the server of a response has a header.
 *
 *   queue full, waited in vain      502, 504 --> 503, and refusal.h
 *   no salt                         400, 415, and the same
 *   all others                      502, 504, and the same
 *
 * Only nginx's own errors are replaced: the answer of an engine passes, and so
 * does a page of error_page.
 */
#include "ngx_http_kvroute_refuse.h"

#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_find.h"
#include "ngx_http_kvroute_peers.h"
#include "refusal.h"
#include "text_writer.h"

typedef struct {
	ngx_http_request_t *request;
	const char *why;        /* NULL: by the reason of the choice */
	bool on;                /* the response is this refusal; */
	ngx_buf_t *body;        /* its rest, or NULL */
} refusal_t;

/* By it the structs of a request differ; it has nothing to do. */
static void
refusal_cleanup(void *data)
{
	(void)data;
}

static refusal_t *
kept_refusal(ngx_http_request_t *r)
{
	return kvroute_kept_of(r, refusal_cleanup);
}

static refusal_t *
kept_refusal_make(ngx_http_request_t *r, const char *why)
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
	(void)kept_refusal_make(r, why);
}

/* ----------------------------------------------------------------- text --- */

static bool
buf_write(void *context, const void *bytes, size_t n)
{
	ngx_buf_t *b = context;

	if ((size_t)(b->end - b->last) < n)
		return false;
	b->last = ngx_cpymem(b->last, bytes, n);
	return true;
}

static ngx_buf_t *
text_make(ngx_http_request_t *r, const struct refusal *of)
{
	static const struct writer_calls calls = { .write = buf_write };
	ngx_buf_t *b = ngx_create_temp_buf(r->pool, REFUSAL_BYTES);
	struct writer w = { .calls = &calls, .context = b };

	if (b == NULL)
		return NULL;
	refusal_write(of, &w);
	b->last_buf = r == r->main;
	b->last_in_chain = 1;
	return w.failed ? NULL : b;
}

/* -------------------------------------------------------------- headers --- */

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
		refusal = kept_refusal_make(r, NULL);
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
