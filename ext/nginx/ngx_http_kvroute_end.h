/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_end.h - finish or abort, also while the lock is held. */
#ifndef NGX_HTTP_KVROUTE_END_H
#define NGX_HTTP_KVROUTE_END_H

#include "ngx_http_kvroute_conf.h"

/* `taken`: the peer accepted the request with a status below 400. */
void kvroute_end(kvroute_ctx_t *ctx, bool taken);
/* The prefill is over; `taken`: the prompt is in the cache of its server. */
void kvroute_prefill_end(kvroute_ctx_t *ctx, bool taken);
/* Refused writes are tried again: now, and by a timer. */
void kvroute_late_look(kvroute_srv_conf_t *up);
void kvroute_late_run(ngx_event_t *event);

/* For the master, before the processes begin. */
void kvroute_health_prepare(kvroute_srv_conf_t *up, ngx_log_t *log);
/* A gray peer that this request is to try; n_known: none. */
ngx_uint_t kvroute_health_probe(kvroute_ctx_t *ctx, int64_t now);
/* The request was sent to this peer. */
void kvroute_health_sent(kvroute_ctx_t *ctx, ngx_uint_t i, int64_t now);
/* ctx->answer has read more of a stream. */
void kvroute_health_progress(kvroute_ctx_t *ctx);
/* The state that nginx gets for the peer that is given back. */
ngx_uint_t kvroute_health_free(kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc, ngx_uint_t state);

#endif
