/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_reply.c - answers of a status location.
 *
 *   put, json_* --> | 4 kB | 4 kB | ... a chain of buffers --> nginx
 *
 * yajl_gen cannot bear a failed allocation, so the little that it allocates,
 * its own struct, comes from an arena that was there before it.
 */
#include "ngx_http_kvroute_reply.h"

enum { PIECE = 4096, ARENA = 4096, ALIGN = 16 };

/* -------------------------------------------------------------- bytes --- */

void
kvroute_reply_begin(kvroute_reply_t *o, ngx_http_request_t *r)
{
	ngx_memzero(o, sizeof(*o));
	o->request = r;
	o->last = &o->first;
}

static bool
append(kvroute_reply_t *o, ngx_buf_t *b)
{
	ngx_chain_t *link = b == NULL ? NULL :
	    ngx_alloc_chain_link(o->request->pool);

	if (link == NULL) {
		o->failed = true;
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
	return append(o, o->buf);
}

void
kvroute_reply_put(kvroute_reply_t *o, const void *bytes, size_t n)
{
	const u_char *at = bytes;
	size_t room;

	while (n > 0 && !o->failed && has_room(o)) {
		room = ngx_min((size_t)(o->buf->end - o->buf->last), n);
		o->buf->last = ngx_cpymem(o->buf->last, at, room);
		o->length += room;
		at += room;
		n -= room;
	}
}

void
kvroute_reply_text(kvroute_reply_t *o, const char *text)
{
	kvroute_reply_put(o, text, strlen(text));
}

void
kvroute_reply_share(kvroute_reply_t *o, const void *bytes, size_t n)
{
	ngx_buf_t *b = ngx_calloc_buf(o->request->pool);

	o->buf = NULL;
	if (!append(o, b))
		return;
	b->pos = (u_char *)(uintptr_t)bytes;
	b->last = b->pos + n;
	b->memory = 1;
	o->length += n;
}

/* ------------------------------------------------------------ sending --- */

static ngx_str_t
borrow(const char *text)
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
		o->failed = true;
		return;
	}
	ngx_memzero(h, sizeof(*h));
	h->hash = 1;
	h->key = borrow(name);
	h->value = borrow(value);
}

ngx_int_t
kvroute_reply_send(kvroute_reply_t *o, ngx_uint_t status, const char *type)
{
	ngx_http_request_t *r = o->request;
	ngx_chain_t *link;
	ngx_int_t rc;

	kvroute_reply_header(o, "Cache-Control", "no-store");
	kvroute_reply_header(o, "X-Content-Type-Options", "nosniff");
	if (o->failed || o->first == NULL)
		return NGX_HTTP_INTERNAL_SERVER_ERROR;
	r->headers_out.status = status;
	r->headers_out.content_length_n = (off_t)o->length;
	r->headers_out.content_type = borrow(type);
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
kvroute_reply_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *what)
{
	kvroute_reply_t o;

	kvroute_json_begin(&o, r);
	kvroute_json_object(&o, NULL);
	kvroute_json_name(&o, "error", what);
	kvroute_json_object_end(&o);
	return kvroute_json_send(&o, status);
}

/* --------------------------------------------------------------- JSON --- */

static void *
arena_alloc(void *ctx, size_t size)
{
	kvroute_reply_t *o = ctx;
	u_char *at = o->arena + o->used;

	size = (size + ALIGN - 1) / ALIGN * ALIGN;
	if (size > ARENA - o->used)
		return NULL;
	o->used += size;
	return at;
}

/* Never called: nothing is ever put into yajl_gen's own buffer. */
static void *
arena_realloc(void *ctx, void *memory, size_t size)
{
	(void)memory;
	return arena_alloc(ctx, size);
}

static void
arena_free(void *ctx, void *memory)
{
	(void)ctx;
	(void)memory;
}

static void
print(void *ctx, const char *text, size_t n)
{
	kvroute_reply_put(ctx, text, n);
}

void
kvroute_json_begin(kvroute_reply_t *o, ngx_http_request_t *r)
{
	yajl_alloc_funcs funcs;

	kvroute_reply_begin(o, r);
	o->arena = ngx_palloc(r->pool, ARENA);
	if (o->arena == NULL) {
		o->failed = true;
		return;
	}
	funcs.malloc = arena_alloc;
	funcs.realloc = arena_realloc;
	funcs.free = arena_free;
	funcs.ctx = o;
	o->json = yajl_gen_alloc(&funcs);
	if (o->json == NULL) {
		o->failed = true;
		return;
	}
	yajl_gen_config(o->json, yajl_gen_print_callback, print, (void *)o);
	yajl_gen_config(o->json, yajl_gen_validate_utf8, 1);
}

ngx_int_t
kvroute_json_send(kvroute_reply_t *o, ngx_uint_t status)
{
	kvroute_reply_put(o, "\n", 1);
	return kvroute_reply_send(o, status, "application/json");
}

static void
check(kvroute_reply_t *o, yajl_gen_status status)
{
	if (status != yajl_gen_status_ok)
		o->failed = true;
}

static bool
begun(kvroute_reply_t *o, const char *key)
{
	if (o->failed)
		return false;
	if (key != NULL)
		check(o, yajl_gen_string(o->json, (const u_char *)key,
		    strlen(key)));
	return !o->failed;
}

void
kvroute_json_object(kvroute_reply_t *o, const char *key)
{
	if (begun(o, key))
		check(o, yajl_gen_map_open(o->json));
}

void
kvroute_json_object_end(kvroute_reply_t *o)
{
	if (begun(o, NULL))
		check(o, yajl_gen_map_close(o->json));
}

void
kvroute_json_array(kvroute_reply_t *o, const char *key)
{
	if (begun(o, key))
		check(o, yajl_gen_array_open(o->json));
}

void
kvroute_json_array_end(kvroute_reply_t *o)
{
	if (begun(o, NULL))
		check(o, yajl_gen_array_close(o->json));
}

void
kvroute_json_null(kvroute_reply_t *o, const char *key)
{
	if (begun(o, key))
		check(o, yajl_gen_null(o->json));
}

void
kvroute_json_bool(kvroute_reply_t *o, const char *key, bool value)
{
	if (begun(o, key))
		check(o, yajl_gen_bool(o->json, value));
}

static void
put_number(kvroute_reply_t *o, const char *key, const u_char *text,
    const u_char *end)
{
	if (begun(o, key))
		check(o, yajl_gen_number(o->json, (const char *)text,
		    (size_t)(end - text)));
}

void
kvroute_json_whole(kvroute_reply_t *o, const char *key, uint64_t value)
{
	u_char text[NGX_INT64_LEN + 1];

	put_number(o, key, text, ngx_sprintf(text, "%uL", value));
}

/* ngx_sprintf takes numbers that have room in 64 bits. */
void
kvroute_json_real(kvroute_reply_t *o, const char *key, double value)
{
	u_char text[64];

	if (value > -1e18 && value < 1e18)
		put_number(o, key, text, ngx_sprintf(text, "%.6f", value));
	else
		kvroute_json_null(o, key);
}

void
kvroute_json_name(kvroute_reply_t *o, const char *key, const char *name)
{
	kvroute_json_text(o, key, name, strlen(name));
}

static u_char *
made_ascii(kvroute_reply_t *o, const u_char *text, size_t n)
{
	u_char *copy = ngx_pnalloc(o->request->pool, n + !n);
	size_t i;

	for (i = 0; copy != NULL && i < n; i++)
		copy[i] = text[i] < 0x80 ? text[i] : '?';
	return copy;
}

void
kvroute_json_text(kvroute_reply_t *o, const char *key, const void *text,
    size_t n)
{
	yajl_gen_status status;
	u_char *copy;

	if (!begun(o, key))
		return;
	status = yajl_gen_string(o->json, text, n);
	if (status != yajl_gen_invalid_string) {
		check(o, status);
		return;
	}
	copy = made_ascii(o, text, n);
	if (copy == NULL)
		o->failed = true;
	else
		check(o, yajl_gen_string(o->json, copy, n));
}
