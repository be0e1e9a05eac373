/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_edit.c - the changes to what is sent to the engine.
 *
 * WHAT IS CHANGED, and only in the proxy module's own copy, never in what the
 * client sent:
 *
 *   Accept-Encoding: gzip     ->  Accept-Encoding: identity feedback is on
 *   {... "stream":true ...}   ->  {... ,"stream_options":{"include_usage":
 *                                  true}}                   include_usage is
 *   Content-Length: 99        ->  Content-Length: 138       on and was not
 *                                                           requested
 *
 * The insertion goes before the closing brace, so all but the last bytes of a
 * body in a file stay in the file.
 */
#include "ngx_http_kvroute_edit.h"

#include "counters.h"
#include "endpoint.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_shared.h"
#include "reason.h"

enum { BYTES_BEHIND = 64 };

static const char USAGE_MEMBER[] =
    ",\"stream_options\":{\"include_usage\":true}";
static const char IDENTITY[] = "Accept-Encoding: identity\r\n";

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
	size_t n = ngx_strlen(name);

	return (size_t)(end - p) > n && p[n] == ':' &&
	    ngx_strncasecmp((u_char *)p, (u_char *)name, n) == 0;
}

/*
 * A copy of the head with Accept-Encoding: identity, because usage cannot be
 * read from gzip, and with another Content-Length unless that is negative.
 */
static ngx_buf_t *
head_make(ngx_pool_t *pool, ngx_buf_t *head, off_t length)
{
	u_char *p = head->pos, *end;
	ngx_buf_t *b = ngx_create_temp_buf(pool, (size_t)(head->last - p) +
	    sizeof(IDENTITY) + sizeof("Content-Length: \r\n") + NGX_OFF_T_LEN);

	if (b == NULL)
		return NULL;
	for (; p < head->last && *p != '\r'; p = end) {
		end = line_end(p, head->last);
		if (line_is(p, end, "Accept-Encoding") ||
		    (length >= 0 && line_is(p, end, "Content-Length")))
			continue;
		b->last = ngx_cpymem(b->last, p, (size_t)(end - p));
	}
	b->last = ngx_cpymem(b->last, IDENTITY, sizeof(IDENTITY) - 1);
	if (length >= 0)
		b->last = ngx_sprintf(b->last, "Content-Length: %O\r\n",
		    length);
	/* The empty line, and what follows it. */
	b->last = ngx_cpymem(b->last, p, (size_t)(head->last - p));
	return b;
}

/* The bytes of this buffer from the offset on, including the brace. */
static ngx_buf_t *
tail_make(ngx_pool_t *pool, ngx_buf_t *buf, off_t offset)
{
	size_t size = (size_t)(ngx_buf_size(buf) - offset);
	size_t n = sizeof(USAGE_MEMBER) - 1;
	ngx_buf_t *b;

	if (size > BYTES_BEHIND)
		return NULL;
	b = ngx_create_temp_buf(pool, n + size);
	if (b == NULL)
		return NULL;
	b->last = ngx_cpymem(b->last, USAGE_MEMBER, n);
	if (ngx_buf_in_memory(buf))
		b->last = ngx_cpymem(b->last, buf->pos + offset, size);
	else if (ngx_read_file(buf->file, b->last, size, buf->file_pos +
	    offset) == (ssize_t)size)
		b->last += size;
	else
		return NULL;
	b->flush = buf->flush;
	b->last_buf = buf->last_buf;
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

/* The link that holds byte *offset; *offset becomes relative to it. */
static ngx_chain_t *
link_find(ngx_chain_t *cl, off_t *offset)
{
	for (; cl != NULL; cl = cl->next) {
		if (*offset < ngx_buf_size(cl->buf))
			return cl;
		*offset -= ngx_buf_size(cl->buf);
	}
	return NULL;
}

static off_t
chain_size(ngx_chain_t *cl)
{
	off_t size = 0;

	for (; cl != NULL; cl = cl->next)
		size += ngx_buf_size(cl->buf);
	return size;
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

/* Inserts the member; the new length, or -1: the body is unchanged. */
static off_t
usage_ask(ngx_http_request_t *r, off_t end)
{
	ngx_chain_t *body = r->upstream->request_bufs->next, *cl, *behind;
	off_t length = chain_size(body) + (off_t)sizeof(USAGE_MEMBER) - 1;
	ngx_buf_t *front, *tail;

	cl = link_find(body, &end);
	/* Not in the last link, or not from the start of the file: rare. */
	if (cl == NULL || chain_size(cl->next) > 0 || !sent_as_read(r) ||
	    (cl->buf->in_file && cl->buf->file_pos != 0))
		return -1;
	front = front_make(r->pool, cl->buf, end);
	tail = tail_make(r->pool, cl->buf, end);
	behind = ngx_alloc_chain_link(r->pool);
	if (front == NULL || tail == NULL || behind == NULL)
		return -1;
	/* nginx does not accept empty buffers. */
	if (end == 0) {
		cl->buf = tail;
		return length;
	}
	cl->buf = front;
	behind->buf = tail;
	behind->next = NULL;
	cl->next = behind;
	return length;
}

/* A cache would store the chunk and send it to clients without usage. */
static bool
wants_usage(ngx_http_kvroute_ctx_t *ctx, ngx_http_kvroute_loc_conf_t *loc)
{
	bool cached = false;

#if (NGX_HTTP_CACHE)
	cached = ctx->request->upstream->cacheable;
#endif
	return loc->include_usage && ctx->facts.stream && !cached &&
	    !ctx->facts.stream_options && !ctx->facts.cut &&
	    ctx->facts.end > 0 && (ctx->endpoint == ENDPOINT_CHAT ||
	    ctx->endpoint == ENDPOINT_COMPLETIONS);
}

bool
ngx_http_kvroute_request_editable(ngx_http_request_t *r)
{
	ngx_chain_t *head = r->upstream->request_bufs;
	ngx_str_t *module = &r->upstream->conf->module;

	return head != NULL && ngx_buf_in_memory(head->buf) &&
	    module->len == 5 && ngx_strncmp(module->data, "proxy", 5) == 0;
}

ngx_int_t
ngx_http_kvroute_request_edit(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(r,
	    ngx_http_upstream_kvroute_module);
	off_t length = -1;
	ngx_buf_t *head;

	if (!loc->feedback || !ngx_http_kvroute_request_editable(r) ||
	    (ctx->endpoint == ENDPOINT_OTHER && ctx->binds == 0))
		return NGX_OK;
	if (ctx->opinion == REASON_COST && wants_usage(ctx, loc))
		length = usage_ask(r, (off_t)ctx->facts.end);
	head = head_make(r->pool, r->upstream->request_bufs->buf, length);
	if (head == NULL)
		return NGX_ERROR;
	r->upstream->request_bufs->buf = head;
	ctx->asked = length >= 0;
	if (ctx->asked)
		ngx_http_kvroute_count(ctx->up, COUNT_REQUESTED, 1);
	return NGX_OK;
}
