/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_end.h - finish or abort, also while the lock is held. */
#ifndef NGX_HTTP_KVROUTE_END_H
#define NGX_HTTP_KVROUTE_END_H

#include "ngx_http_kvroute_conf.h"

/* `taken`: the peer accepted the request with a status below 400. */
void kvroute_end(kvroute_ctx_t *ctx, bool taken);
/* The prefill is over; `taken`: the prompt is in the cache of its server. */
void kvroute_prefill_end(kvroute_ctx_t *ctx, bool taken);
/* Now, or, KVR_EBUSY, once the lock is free. */
int kvroute_write(kvroute_srv_conf_t *up, const struct write_due *write);
/* Refused writes are tried again: now, and by a timer. */
void kvroute_late_look(kvroute_srv_conf_t *up);
void kvroute_late_run(ngx_event_t *event);

#endif
