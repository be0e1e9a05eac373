/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_reply.h - the response of a status location, while it is
 * written.
 *
 * A reply is a writer of ext/http whose text becomes the response. When a call
 * fails, the writer takes nothing further, and the response is an error:
 * nothing is checked on the way.
 */
#ifndef NGX_HTTP_KVROUTE_REPLY_H
#define NGX_HTTP_KVROUTE_REPLY_H

#include "ngx_http_kvroute_conf.h"

#include "json_writer.h"
#include "text_hold.h"

typedef struct {
	struct writer writer;
	ngx_http_request_t *request;
	struct hold *hold;      /* of the request's pool */
	ngx_str_t shared;       /* instead of it, if it is not empty */
} kvroute_reply_t;

/* The reply must not be moved from here on. */
void kvroute_reply_begin(kvroute_reply_t *o, ngx_http_request_t *r);
/* The response is these bytes, which outlive the request. */
void kvroute_reply_share(kvroute_reply_t *o, const void *bytes, size_t n);
/* A header of the response. */
void kvroute_reply_header(kvroute_reply_t *o, const char *name,
    const char *value);
/* Sends the whole response; returns the result of a handler. */
ngx_int_t kvroute_reply_send(kvroute_reply_t *o, ngx_uint_t status,
    const char *type);
ngx_int_t kvroute_reply_send_json(kvroute_reply_t *o, ngx_uint_t status);

/* {"error": "..."}, with the headers that are set, or with none. */
ngx_int_t kvroute_reply_refuse(kvroute_reply_t *o, ngx_uint_t status,
    const char *why);
ngx_int_t kvroute_reply_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *why);

/* A decoded argument of the request; empty if it is missing. */
ngx_str_t kvroute_argument(ngx_http_request_t *r, const char *name);

/* The requested upstreams; n == 0: no upstream has that name. */
typedef struct {
	kvroute_srv_conf_t **at;
	ngx_uint_t n;
} kvroute_upstreams_t;
kvroute_upstreams_t kvroute_upstreams(ngx_http_request_t *r);
ngx_int_t kvroute_no_upstream(ngx_http_request_t *r);
/* The requested one; NULL: *answer is the response. */
kvroute_srv_conf_t *kvroute_upstream(ngx_http_request_t *r, ngx_int_t *answer);

/* The response when status_blocked. */
ngx_int_t kvroute_blocked_answer(ngx_http_request_t *r);

#endif
