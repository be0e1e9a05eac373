/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_end.h - finish or abort, also while the lock is held. */
#ifndef NGX_HTTP_KVROUTE_END_H
#define NGX_HTTP_KVROUTE_END_H

#include "ngx_http_kvroute_conf.h"

/* `taken`: the peer accepted the request with a status below 400. */
void ngx_http_kvroute_end(ngx_http_kvroute_ctx_t *ctx, bool taken);
/* The prefill is over; `taken`: the prompt is in the cache of its server. */
void ngx_http_kvroute_prefill_end(ngx_http_kvroute_ctx_t *ctx, bool taken);
/* Now, or, KVR_EBUSY, once the lock is free. */
int ngx_http_kvroute_write(ngx_http_kvroute_srv_conf_t *up,
    const struct write_due *write);
/* What was refused is tried again in a moment; and then. */
void ngx_http_kvroute_late_look(ngx_http_kvroute_srv_conf_t *up);
void ngx_http_kvroute_late_run(ngx_event_t *event);

#endif
