/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_refuse.h - refusals: why, as JSON, and when to come back. */
#ifndef NGX_HTTP_KVROUTE_REFUSE_H
#define NGX_HTTP_KVROUTE_REFUSE_H

#include "ngx_http_kvroute_conf.h"

/* This request is about to be refused with a status of 400 or more. */
void kvroute_refusal_keep(ngx_http_request_t *r, const char *why);
/* The headers of a response: nginx's own error becomes a refusal. */
void kvroute_refusal_begin(ngx_http_request_t *r);
/* The body of the response; *in is replaced if it is a refusal. */
ngx_int_t kvroute_refusal_body(ngx_http_request_t *r, ngx_chain_t **in);
/* With kvroute_server_header, the header that names the server. */
ngx_int_t kvroute_server_show(kvroute_ctx_t *ctx);

#endif
