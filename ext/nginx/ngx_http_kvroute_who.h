/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_who.h - digests of a request's prompt and client. */
#ifndef NGX_HTTP_KVROUTE_WHO_H
#define NGX_HTTP_KVROUTE_WHO_H

#include "ngx_http_kvroute_conf.h"

/* Keeps ctx->digest, while the request has a prompt. */
void ngx_http_kvroute_prompt_digest(ngx_http_kvroute_ctx_t *ctx);
/* The same, or the digest of the body. The request has its pool. */
uint64_t ngx_http_kvroute_digest_of(const ngx_http_kvroute_ctx_t *ctx);
uint64_t ngx_http_kvroute_client_of(const ngx_http_kvroute_ctx_t *ctx);

#endif
