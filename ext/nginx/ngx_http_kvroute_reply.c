/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_reply.c - the response of a status location.
 */
#include "ngx_http_kvroute_reply.h"

#include "json_writer.h"
#include "ngx_http_kvroute_find.h"
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

kvroute_upstreams_t
kvroute_upstreams(ngx_http_request_t *r)
{
	kvroute_main_conf_t *main = ngx_http_get_module_main_conf(r,
	    ngx_http_upstream_kvroute_module);
	ngx_str_t name = kvroute_argument(r, "upstream"), *host;
	kvroute_upstreams_t all;
	ngx_uint_t i;

	all.at = main->upstreams.elts;
	all.n = main->upstreams.nelts;
	for (i = 0; name.len > 0 && i < all.n; i++) {
		host = &all.at[i]->upstream->host;
		if (kvroute_same(host, &name)) {
			all.at += i;
			all.n = 1;
			return all;
		}
	}
	if (name.len > 0)
		all.n = 0;
	return all;
}

ngx_int_t
kvroute_no_upstream(ngx_http_request_t *r)
{
	return kvroute_reply_error(r, NGX_HTTP_NOT_FOUND,
	    "there is no such upstream");
}

kvroute_srv_conf_t *
kvroute_upstream(ngx_http_request_t *r, ngx_int_t *answer)
{
	kvroute_upstreams_t all = kvroute_upstreams(r);

	if (all.n == 0)
		*answer = kvroute_no_upstream(r);
	else if (all.n > 1)
		*answer = kvroute_reply_error(r, NGX_HTTP_BAD_REQUEST,
		    "there are several upstreams: name one by upstream=");
	else if (all.at[0]->fleet.kvr == NULL)
		*answer = kvroute_reply_error(r,
		    NGX_HTTP_SERVICE_UNAVAILABLE,
		    "this upstream has no index: see the error log");
	else if (status_blocked(all.at[0]->fleet.kvr))
		*answer = kvroute_blocked_answer(r);
	else
		return all.at[0];
	return NULL;
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
