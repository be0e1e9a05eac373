/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_health.h - gray engines, broken responses, warming up. */
#ifndef NGX_HTTP_KVROUTE_HEALTH_H
#define NGX_HTTP_KVROUTE_HEALTH_H

#include "ngx_http_kvroute_conf.h"

/* For the master, before the processes begin. */
void ngx_http_kvroute_health_prepare(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log);
/* For a choice: some servers are held back. */
void ngx_http_kvroute_health_look(ngx_http_kvroute_ctx_t *ctx, int64_t now);
/* A gray peer that this request is to try; n_known: none. */
ngx_uint_t ngx_http_kvroute_health_probe(ngx_http_kvroute_ctx_t *ctx,
    int64_t now);
/* The request was sent to this peer. */
void ngx_http_kvroute_health_sent(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t i,
    int64_t now);
/* ctx->answer has read more of a stream. */
void ngx_http_kvroute_health_progress(ngx_http_kvroute_ctx_t *ctx);
void ngx_http_kvroute_health_accepted(ngx_http_kvroute_ctx_t *ctx);
/* The state that nginx gets for the peer that is given back. */
ngx_uint_t ngx_http_kvroute_health_free(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc, ngx_uint_t state);
void ngx_http_kvroute_health_end(ngx_http_kvroute_ctx_t *ctx, bool taken);

#endif
