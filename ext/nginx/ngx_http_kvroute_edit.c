/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_edit.c - the changes to the request that the engine gets.
 *
 * THE CHANGES are made in the proxy module's own copy, never in the bytes of
 * the client:
 *
 *   Accept-Encoding: gzip     ->  Accept-Encoding: identity feedback is on
 *   {... "stream":true ...}   ->  {... ,"stream_options":{"include_usage":
 *                                  true}}                   include_usage is
 *   Content-Length: 99        ->  Content-Length: 138       on and was not
 *                                                           requested
 *
 * usage_ask.h has the place of the insertion. Bytes ahead of it stay where they
 * are, in memory or in a file. Bytes behind it in a file are read into memory,
 * because nginx begins the file anew at each try; if that is much, usage is not
 * asked for.
 */
#include "ngx_http_kvroute_edit.h"

#include "counters.h"
#include "endpoint.h"
#include "ngx_http_kvroute_ctx.h"
#include "reason.h"
#include "shared.h"
#include "usage_ask.h"

enum { BYTES_BEHIND = 256 * 1024 }; /* in a file */

static const char IDENTITY[] = "Accept-Encoding: identity\r\n";

/* ----------------------------------------------------------------- head --- */

/* The end of the line at p, including its CRLF. */
static u_char *
line_end(u_char *p, u_char *last)
{
	while (p < last && *p != '\n')
		p++;
	return p < last ? p + 1 : last;
}

static bool
line_is(const u_char *p, const u_char *end, const char *name)
{
	const size_t n = name == NULL ? 0 : ngx_strlen(name);

	return n > 0 && (size_t)(end - p) > n && p[n] == ':' &&
	    ngx_strncasecmp((u_char *)p, (u_char *)name, n) == 0;
}

u_char *
kvroute_head_copy(ngx_buf_t *to, const ngx_buf_t *from, const char *name,
    const char *other)
{
	u_char *p = from->pos, *end;

	for (; p < from->last && *p != '\r'; p = end) {
		end = line_end(p, from->last);
		if (!line_is(p, end, name) && !line_is(p, end, other))
			to->last = ngx_cpymem(to->last, p, (size_t)(end - p));
	}
	return p;
}

/*
 * A copy of the head with Accept-Encoding: identity, because usage cannot be
 * read from gzip, and with another Content-Length unless that is negative.
 */
static ngx_buf_t *
head_make(ngx_pool_t *pool, ngx_buf_t *head, off_t length)
{
	ngx_buf_t *b = ngx_create_temp_buf(pool, (size_t)(head->last -
	    head->pos) + sizeof(IDENTITY) + sizeof("Content-Length: \r\n") +
	    NGX_OFF_T_LEN);
	u_char *p;

	if (b == NULL)
		return NULL;
	p = kvroute_head_copy(b, head, "Accept-Encoding", length >= 0 ?
	    "Content-Length" : NULL);
	b->last = ngx_cpymem(b->last, IDENTITY, sizeof(IDENTITY) - 1);
	if (length >= 0)
		b->last = ngx_sprintf(b->last, "Content-Length: %O\r\n",
		    length);
	/* The empty line, and the bytes behind it. */
	b->last = ngx_cpymem(b->last, p, (size_t)(head->last - p));
	return b;
}

/* ----------------------------------------------------------------- body --- */

/* The bytes of this buffer from the offset on. */
static ngx_buf_t *
rest_make(ngx_pool_t *pool, ngx_buf_t *buf, off_t offset)
{
	const size_t size = (size_t)(ngx_buf_size(buf) - offset);
	ngx_buf_t *b;

	if (ngx_buf_in_memory(buf)) {
		b = ngx_alloc_buf(pool);
		if (b == NULL)
			return NULL;
		*b = *buf;
		/* nginx begins there anew at each try. */
		b->start = b->pos = buf->pos + offset;
		return b;
	}
	if (size > BYTES_BEHIND)
		return NULL;
	b = ngx_create_temp_buf(pool, size);
	if (b == NULL || ngx_read_file(buf->file, b->last, size,
	    buf->file_pos + offset) != (ssize_t)size)
		return NULL;
	b->last += size;
	b->flush = buf->flush;
	b->last_buf = buf->last_buf;
	return b;
}

static ngx_buf_t *
text_make(ngx_pool_t *pool, const ngx_str_t *text)
{
	ngx_buf_t *b = ngx_calloc_buf(pool);

	if (b == NULL)
		return NULL;
	b->start = b->pos = text->data;
	b->end = b->last = text->data + text->len;
	b->temporary = 1;
	return b;
}

/* A copy that ends at the offset; the buffer in the chain is shared. */
static ngx_buf_t *
front_make(ngx_pool_t *pool, ngx_buf_t *buf, off_t offset)
{
	ngx_buf_t *b = ngx_alloc_buf(pool);

	if (b == NULL)
		return NULL;
	*b = *buf;
	if (ngx_buf_in_memory(b))
		b->last = b->pos + offset;
	if (b->in_file)
		b->file_last = b->file_pos + offset;
	b->flush = 0;
	b->last_buf = 0;
	return b;
}

/* Is the body to be sent the one parsed? proxy_set_body replaces it. */
static bool
sent_as_read(ngx_http_request_t *r)
{
	ngx_chain_t *sent = r->upstream->request_bufs->next;
	ngx_chain_t *read = r->request_body->bufs;

	for (; sent != NULL && read != NULL;
	    sent = sent->next, read = read->next) {
		if (sent->buf->pos != read->buf->pos ||
		    ngx_buf_size(sent->buf) != ngx_buf_size(read->buf))
			return false;
	}
	return sent == NULL && read == NULL;
}

static bool
link_add(ngx_pool_t *pool, ngx_chain_t ***last, ngx_buf_t *buf)
{
	ngx_chain_t *cl = ngx_alloc_chain_link(pool);

	if (cl == NULL || buf == NULL)
		return false;
	cl->buf = buf;
	**last = cl;
	*last = &cl->next;
	return true;
}

/* No link is changed. nginx does not accept empty buffers. */
bool
kvroute_chain_splice(ngx_pool_t *pool, ngx_chain_t **first, off_t at, off_t cut,
    const ngx_str_t *put)
{
	ngx_chain_t *cl = *first, *body, **last = &body;
	ngx_buf_t *front, *rest;
	off_t size;

	for (; at >= (size = ngx_buf_size(cl->buf)); cl = cl->next, at -= size)
		if (size > 0 && !link_add(pool, &last, cl->buf))
			return false;
	/* Only its beginning can stay in a file. */
	if (cl->buf->in_file && cl->buf->file_pos != 0)
		return false;
	if (at > 0) {
		front = front_make(pool, cl->buf, at);
		if (!link_add(pool, &last, front))
			return false;
	}
	if (!link_add(pool, &last, text_make(pool, put)))
		return false;
	for (at += cut; at >= (size = ngx_buf_size(cl->buf)); at -= size)
		cl = cl->next;
	rest = at > 0 ? rest_make(pool, cl->buf, at) : cl->buf;
	if (!link_add(pool, &last, rest))
		return false;
	*last = cl->next;
	*first = body;
	return true;
}

/* The new length, or -1: the body is unchanged. A brace is behind the text. */
static off_t
usage_ask(ngx_http_request_t *r, const struct usage_ask *ask)
{
	ngx_chain_t **body = &r->upstream->request_bufs->next;
	const ngx_str_t put = { ngx_strlen(ask->text), (u_char *)ask->text };
	const off_t at = (off_t)ask->at, cut = (off_t)ask->cut;
	const off_t size = (off_t)kvroute_chain_size(*body);

	if (at + cut >= size || !sent_as_read(r) ||
	    !kvroute_chain_splice(r->pool, body, at, cut, &put))
		return -1;
	return size + (off_t)put.len - cut;
}

/* A cache would store the chunk and send it to clients without usage. */
static bool
wants_usage(kvroute_ctx_t *ctx, kvroute_loc_conf_t *loc, struct usage_ask *ask)
{
	bool cached = false;

#if (NGX_HTTP_CACHE)
	cached = ctx->request->upstream->cacheable;
#endif
	return ctx->opinion == REASON_COST && loc->include_usage && !cached &&
	    usage_ask_find(ask, &ctx->facts, ctx->endpoint) &&
	    shared_usage_asks(ctx->up->fleet.shared, ngx_time());
}

/* The first line ends in HTTP/1.0 or HTTP/1.1: HTTP/2 has frames. */
static bool
is_http1(const ngx_buf_t *head)
{
	const u_char *end = line_end(head->pos, head->last);

	return end - head->pos > 10 &&
	    ngx_strncmp(end - 10, "HTTP/1.", 7) == 0;
}

bool
kvroute_request_editable(ngx_http_request_t *r)
{
	ngx_chain_t *head = r->upstream->request_bufs;
	ngx_str_t *module = &r->upstream->conf->module;

	return head != NULL && ngx_buf_in_memory(head->buf) &&
	    is_http1(head->buf) && module->len == 5 &&
	    ngx_strncmp(module->data, "proxy", 5) == 0;
}

ngx_int_t
kvroute_request_edit(kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	struct usage_ask ask;
	off_t length = -1;
	ngx_buf_t *head;

	if (!loc->feedback || !kvroute_request_editable(r) ||
	    (ctx->endpoint == ENDPOINT_OTHER && ctx->keeps.binds == 0))
		return NGX_OK;
	if (wants_usage(ctx, loc, &ask))
		length = usage_ask(r, &ask);
	head = head_make(r->pool, r->upstream->request_bufs->buf, length);
	if (head == NULL)
		return NGX_ERROR;
	r->upstream->request_bufs->buf = head;
	ctx->asked = length >= 0;
	if (ctx->asked)
		shared_count(ctx->up->fleet.shared, COUNT_REQUESTED, 1);
	return NGX_OK;
}
