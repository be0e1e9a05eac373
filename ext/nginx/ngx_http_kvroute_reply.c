/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_reply.c - the response of a status location.
 *
 *   writer --> | 4 kB | 4 kB | ... a chain of buffers --> nginx
 */
#include "ngx_http_kvroute_reply.h"

#include "json_writer.h"
#include "text_writer.h"

enum { PIECE = 4096 };

/* -------------------------------------------------------------- bytes --- */

static bool
buf_append(kvroute_reply_t *o, ngx_buf_t *b)
{
	ngx_chain_t *link = b == NULL ? NULL :
	    ngx_alloc_chain_link(o->request->pool);

	if (link == NULL) {
		o->writer.failed = true;
		return false;
	}
	link->buf = b;
	link->next = NULL;
	*o->last = link;
	o->last = &link->next;
	return true;
}

static bool
has_room(kvroute_reply_t *o)
{
	if (o->buf != NULL && o->buf->last < o->buf->end)
		return true;
	o->buf = ngx_create_temp_buf(o->request->pool, PIECE);
	return buf_append(o, o->buf);
}

static bool
out_write(void *context, const void *bytes, size_t n)
{
	kvroute_reply_t *o = context;
	const u_char *at = bytes;
	size_t room;

	while (n > 0 && has_room(o)) {
		room = ngx_min((size_t)(o->buf->end - o->buf->last), n);
		o->buf->last = ngx_cpymem(o->buf->last, at, room);
		o->length += room;
		at += room;
		n -= room;
	}
	return n == 0;
}

static void *
out_alloc(void *context, size_t size)
{
	kvroute_reply_t *o = context;

	return ngx_palloc(o->request->pool, size);
}

/* Small allocations stay until the request ends. */
static void
out_free(void *context, void *memory)
{
	kvroute_reply_t *o = context;

	(void)ngx_pfree(o->request->pool, memory);
}

void
kvroute_reply_begin(kvroute_reply_t *o, ngx_http_request_t *r)
{
	static const struct writer_calls calls = { out_write, out_alloc,
	    out_free };

	ngx_memzero(o, sizeof(*o));
	o->writer.calls = &calls;
	o->writer.context = o;
	o->request = r;
	o->last = &o->first;
}

void
kvroute_reply_share(kvroute_reply_t *o, const void *bytes, size_t n)
{
	ngx_buf_t *b = ngx_calloc_buf(o->request->pool);

	o->buf = NULL;
	if (!buf_append(o, b))
		return;
	b->pos = (u_char *)(uintptr_t)bytes;
	b->last = b->pos + n;
	b->memory = 1;
	o->length += n;
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
	ngx_table_elt_t *h = ngx_list_push(&o->request->headers_out.headers);

	if (h == NULL) {
		o->writer.failed = true;
		return;
	}
	ngx_memzero(h, sizeof(*h));
	h->hash = 1;
	h->key = buf_borrow(name);
	h->value = buf_borrow(value);
}

ngx_int_t
kvroute_reply_send(kvroute_reply_t *o, ngx_uint_t status, const char *type)
{
	ngx_http_request_t *r = o->request;
	ngx_chain_t *link;
	ngx_int_t rc;

	kvroute_reply_header(o, "Cache-Control", "no-store");
	kvroute_reply_header(o, "X-Content-Type-Options", "nosniff");
	if (o->writer.failed || o->first == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	r->headers_out.status = status;
	r->headers_out.content_length_n = (off_t)o->length;
	r->headers_out.content_type = buf_borrow(type);
	r->headers_out.content_type_len = r->headers_out.content_type.len;
	r->headers_out.content_type_lowcase = NULL;
	rc = ngx_http_send_header(r);
	if (rc == NGX_ERROR || rc > NGX_OK || r->header_only)
		return rc;
	for (link = o->first; link->next != NULL; link = link->next)
		continue;
	link->buf->last_buf = r == r->main;
	link->buf->last_in_chain = 1;
	return ngx_http_output_filter(r, o->first);
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
