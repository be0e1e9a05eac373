/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_health.h - gray engines, broken responses, warming up. */
#ifndef NGX_HTTP_KVROUTE_HEALTH_H
#define NGX_HTTP_KVROUTE_HEALTH_H

#include "ngx_http_kvroute_conf.h"

struct status_health;

bool ngx_http_kvroute_health_on(const ngx_http_kvroute_srv_conf_t *up);
/* Of the master. */
void ngx_http_kvroute_health_prepare(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log);
/* Of each process: up->known is made, and up->fleet has room. */
void ngx_http_kvroute_health_follow(ngx_http_kvroute_srv_conf_t *up);
/* The same for peers that were there before places of others became free. */
void ngx_http_kvroute_health_follow_late(ngx_http_kvroute_srv_conf_t *up);
/* The worker of this key has left. */
void ngx_http_kvroute_health_leave(ngx_http_kvroute_srv_conf_t *up,
    uint64_t key);
/* For a choice: up->known[].held. */
void ngx_http_kvroute_health_look(ngx_http_kvroute_ctx_t *ctx, int64_t now);
/* A gray peer that this request is to try; n_peers: none. */
ngx_uint_t ngx_http_kvroute_health_probe(ngx_http_kvroute_ctx_t *ctx,
    int64_t now);
void ngx_http_kvroute_health_sent(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t i,
    int64_t now);
/* ctx->answer has read more of a stream. */
void ngx_http_kvroute_health_progress(ngx_http_kvroute_ctx_t *ctx);
/* The state that nginx is to be told of the peer that is given back. */
ngx_uint_t ngx_http_kvroute_health_free(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc, ngx_uint_t state);
void ngx_http_kvroute_health_end(ngx_http_kvroute_ctx_t *ctx, bool taken);
/* An operator says that it is good. */
void ngx_http_kvroute_health_forget(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *name);
/* What is known, at most n_peers of them. */
size_t ngx_http_kvroute_health_list(const ngx_http_kvroute_srv_conf_t *up,
    struct status_health *out);

#endif
