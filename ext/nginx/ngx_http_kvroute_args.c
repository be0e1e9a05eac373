/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_args.c - the question of a request to a status location.
 */
#include "ngx_http_kvroute_args.h"

#include "ngx_http_kvroute_reply.h"
#include "status.h"

bool
kvroute_is(const ngx_str_t *text, const char *word)
{
	return text->len == strlen(word) &&
	    ngx_strncmp(text->data, word, text->len) == 0;
}

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
	ngx_http_kvroute_main_conf_t *main = ngx_http_get_module_main_conf(r,
	    ngx_http_upstream_kvroute_module);
	ngx_str_t name = kvroute_argument(r, "upstream"), *host;
	kvroute_upstreams_t all;
	ngx_uint_t i;

	all.at = main->upstreams.elts;
	all.n = main->upstreams.nelts;
	for (i = 0; name.len > 0 && i < all.n; i++) {
		host = &all.at[i]->upstream->host;
		if (host->len == name.len &&
		    ngx_strncmp(host->data, name.data, name.len) == 0) {
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

ngx_http_kvroute_srv_conf_t *
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
