/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_args.h - the question of a request to a status location. */
#ifndef NGX_HTTP_KVROUTE_ARGS_H
#define NGX_HTTP_KVROUTE_ARGS_H

#include "ngx_http_kvroute_conf.h"

/* A decoded argument of the request; empty if it is missing. */
ngx_str_t kvroute_argument(ngx_http_request_t *r, const char *name);
bool kvroute_is(const ngx_str_t *text, const char *word);

/* The requested upstreams; n == 0: no upstream has that name. */
typedef struct {
	ngx_http_kvroute_srv_conf_t **at;
	ngx_uint_t n;
} kvroute_upstreams_t;
kvroute_upstreams_t kvroute_upstreams(ngx_http_request_t *r);
ngx_int_t kvroute_no_upstream(ngx_http_request_t *r);
/* The requested one; NULL: *answer is the response. */
ngx_http_kvroute_srv_conf_t *kvroute_upstream(ngx_http_request_t *r,
    ngx_int_t *answer);

/* The response when status_blocked. */
ngx_int_t kvroute_blocked_answer(ngx_http_request_t *r);

#endif
