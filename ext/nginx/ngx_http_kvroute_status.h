/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_status.h - what the files behind kvroute_status share.
 *
 *   status   which question is it?  orders
 *   show     upstreams -> struct status -> JSON, Prometheus; the page
 *   explain  what would happen to a body?
 *   reply    the response, while it is written
 *
 * The texts themselves are written by status_*.c of ext/http.
 */
#ifndef NGX_HTTP_KVROUTE_STATUS_H
#define NGX_HTTP_KVROUTE_STATUS_H

#include "ngx_http_kvroute_reply.h"

#include "status.h"

/* An argument of the request, decoded; empty if it is not there. */
ngx_str_t kvroute_argument(ngx_http_request_t *r, const char *name);
bool kvroute_is(const ngx_str_t *text, const char *word);

/* The upstreams that are asked for; n == 0: there is none of that name. */
typedef struct {
	ngx_http_kvroute_srv_conf_t **at;
	ngx_uint_t n;
} kvroute_upstreams_t;
kvroute_upstreams_t kvroute_upstreams(ngx_http_request_t *r);
ngx_int_t kvroute_no_upstream(ngx_http_request_t *r);
/* The one that is asked for, or NULL and what to answer. */
ngx_http_kvroute_srv_conf_t *kvroute_upstream(ngx_http_request_t *r,
    ngx_int_t *answer);

/* For status_blocked. */
ngx_int_t kvroute_blocked_answer(ngx_http_request_t *r);

ngx_int_t kvroute_state_show(ngx_http_request_t *r);
ngx_int_t kvroute_metrics_show(ngx_http_request_t *r);
ngx_int_t kvroute_page_show(ngx_http_request_t *r);

#endif
