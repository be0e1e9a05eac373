/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_health.h - gray engines, broken responses, warming up. */
#ifndef NGX_HTTP_KVROUTE_HEALTH_H
#define NGX_HTTP_KVROUTE_HEALTH_H

#include "ngx_http_kvroute_conf.h"

/* For the master, before the processes begin. */
void kvroute_health_prepare(kvroute_srv_conf_t *up, ngx_log_t *log);
/* For a choice: some servers are held back. */
void kvroute_health_look(kvroute_ctx_t *ctx, int64_t now);
/* A gray peer that this request is to try; n_known: none. */
ngx_uint_t kvroute_health_probe(kvroute_ctx_t *ctx, int64_t now);
/* The request was sent to this peer. */
void kvroute_health_sent(kvroute_ctx_t *ctx, ngx_uint_t i, int64_t now);
/* ctx->answer has read more of a stream. */
void kvroute_health_progress(kvroute_ctx_t *ctx);
void kvroute_health_accepted(kvroute_ctx_t *ctx);
/* The state that nginx gets for the peer that is given back. */
ngx_uint_t kvroute_health_free(kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc, ngx_uint_t state);
void kvroute_health_end(kvroute_ctx_t *ctx, bool taken);

#endif
