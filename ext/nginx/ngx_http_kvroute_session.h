/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_session.h - keys of sessions; state that one engine keeps.
 */
#ifndef NGX_HTTP_KVROUTE_SESSION_H
#define NGX_HTTP_KVROUTE_SESSION_H

#include "ngx_http_kvroute_conf.h"

/* Once the body is read. */
void kvroute_session_read(kvroute_ctx_t *ctx);
/*
 * Does the request need state that is somewhere? If so, ctx->worker is that
 * worker; or it is 0 and ctx->reason has the cause: lost, or busy.
 */
bool kvroute_session_find(kvroute_ctx_t *ctx, int64_t now);
/* It is at peer i, n_known: that is not known, but cannot be had now. */
void kvroute_session_busy(kvroute_ctx_t *ctx, ngx_uint_t i);
/* The status is 2xx. */
void kvroute_session_accepted(kvroute_ctx_t *ctx);
/* ctx->answer has read more. */
void kvroute_session_answered(kvroute_ctx_t *ctx);

#endif
