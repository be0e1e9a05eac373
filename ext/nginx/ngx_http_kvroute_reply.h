/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_reply.h - responses of the module's own: of a status
 * location, a long one beside the event loop; of a request that is refused.
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
/* The text in a buffer, the last one; NULL: no memory, or it has failed. */
ngx_buf_t *kvroute_reply_end(kvroute_reply_t *o);
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

/* The response when status_blocked. */
ngx_int_t kvroute_blocked_answer(ngx_http_request_t *r);

struct status;
struct writer;

typedef void kvroute_write_pt(const struct status *, struct writer *);

enum { KVROUTE_ASIDE_WORKERS = 128 };

/* The configuration is read: threads are needed if workers are many. */
ngx_int_t kvroute_aside_prepare(ngx_conf_t *cf);
/* The handler's result; NGX_DECLINED: it must be written here and now. */
ngx_int_t kvroute_aside_send(ngx_http_request_t *r, const struct status *s,
    kvroute_write_pt *write, const char *type);

/* This request is about to be refused with a status of 400 or more. */
void kvroute_refusal_keep(ngx_http_request_t *r, const char *why);
/* The headers of a response: nginx's own error becomes a refusal. */
void kvroute_refusal_begin(ngx_http_request_t *r);
/* The body of the response; *in is replaced if it is a refusal. */
ngx_int_t kvroute_refusal_body(ngx_http_request_t *r, ngx_chain_t **in);
/* With kvroute_server_header, the header that names the server. */
ngx_int_t kvroute_server_show(kvroute_ctx_t *ctx);

#endif
