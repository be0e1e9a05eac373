/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_page.c - the page for people: page.html, whose bytes are
 * put here when the module is built. It may fetch from where it came from, and
 * nothing else may happen in it.
 */
#include "ngx_http_kvroute_status.h"

static const unsigned char page[] = {
#include "kvroute_page.h"
};

ngx_int_t
kvroute_page_show(ngx_http_request_t *r)
{
	kvroute_reply_t o;

	kvroute_reply_begin(&o, r);
	kvroute_reply_header(&o, "Content-Security-Policy",
	    "default-src 'none'; connect-src 'self'; img-src data:; "
	    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
	    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	kvroute_reply_share(&o, page, sizeof(page));
	return kvroute_reply_send(&o, NGX_HTTP_OK, "text/html; charset=utf-8");
}
