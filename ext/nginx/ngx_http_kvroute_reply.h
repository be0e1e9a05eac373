/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_reply.h - what a status location answers, while it is
 * written.
 *
 * Memory is the request's. When there is no more of it the reply remembers
 * that, takes nothing further, and is sent as an error: so nothing needs to be
 * checked on the way. JSON is written by yajl_gen straight into the reply.
 */
#ifndef NGX_HTTP_KVROUTE_REPLY_H
#define NGX_HTTP_KVROUTE_REPLY_H

#include "ngx_http_kvroute.h"

#include <yajl/yajl_gen.h>

typedef struct {
	ngx_http_request_t *request;
	ngx_chain_t *first;
	ngx_chain_t **last;
	ngx_buf_t *buf;         /* the one that is being filled */
	size_t length;
	bool failed;
	yajl_gen json;          /* NULL: no JSON */
	u_char *arena;          /* of yajl_gen itself */
	size_t used;
} kvroute_reply_t;

void kvroute_reply_begin(kvroute_reply_t *o, ngx_http_request_t *r);
void kvroute_reply_put(kvroute_reply_t *o, const void *bytes, size_t n);
void kvroute_reply_text(kvroute_reply_t *o, const char *text);
/* Bytes that outlive the request, as they are. */
void kvroute_reply_share(kvroute_reply_t *o, const void *bytes, size_t n);
/* A header of the answer. */
void kvroute_reply_header(kvroute_reply_t *o, const char *name,
    const char *value);
/* The whole answer goes out; returns what a handler returns. */
ngx_int_t kvroute_reply_send(kvroute_reply_t *o, ngx_uint_t status,
    const char *type);

/* In an object every call has a key, in an array it is NULL. */
void kvroute_json_begin(kvroute_reply_t *o, ngx_http_request_t *r);
void kvroute_json_object(kvroute_reply_t *o, const char *key);
void kvroute_json_object_end(kvroute_reply_t *o);
void kvroute_json_array(kvroute_reply_t *o, const char *key);
void kvroute_json_array_end(kvroute_reply_t *o);
void kvroute_json_null(kvroute_reply_t *o, const char *key);
void kvroute_json_bool(kvroute_reply_t *o, const char *key, bool value);
void kvroute_json_whole(kvroute_reply_t *o, const char *key, uint64_t value);
/* Six decimals; null if there is no such number in JSON. */
void kvroute_json_real(kvroute_reply_t *o, const char *key, double value);
void kvroute_json_name(kvroute_reply_t *o, const char *key, const char *name);
/* Any bytes; of what is not UTF-8 each byte that is not ASCII is a '?'. */
void kvroute_json_text(kvroute_reply_t *o, const char *key, const void *text,
    size_t n);
ngx_int_t kvroute_json_send(kvroute_reply_t *o, ngx_uint_t status);

/* {"error": "..."} */
ngx_int_t kvroute_reply_error(ngx_http_request_t *r, ngx_uint_t status,
    const char *what);

#endif
