/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_workers.h - the workers of the region are the peers of the
 * upstream.
 */
#ifndef NGX_HTTP_KVROUTE_WORKERS_H
#define NGX_HTTP_KVROUTE_WORKERS_H

#include "ngx_http_kvroute_conf.h"

/* Workers of the region = peers of the upstream, with configured facts. */
void ngx_http_kvroute_workers_sync(ngx_http_kvroute_srv_conf_t *up,
    struct kvr *k, ngx_log_t *log);
/* One worker and its ranks; `tries` while the lock is held. */
int ngx_http_kvroute_workers_ensure(ngx_http_kvroute_srv_conf_t *up,
    struct kvr *k, const ngx_http_kvroute_known_t *known, ngx_uint_t tries);
/* An id or a state has changed: all processes look them up again. */
void ngx_http_kvroute_workers_changed(ngx_http_kvroute_srv_conf_t *up);

#endif
