/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_replicas.h - what kvroute-sync has brought, once it is
 * silent.
 */
#ifndef NGX_HTTP_KVROUTE_REPLICAS_H
#define NGX_HTTP_KVROUTE_REPLICAS_H

#include "ngx_http_kvroute_conf.h"

/* Did kvroute-sync open leases of this owner? */
bool ngx_http_kvroute_is_brought(uint64_t owner);
/* Is it silent now? Then loads end; false: there is more to do soon. */
bool ngx_http_kvroute_replicas_watch(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log);

#endif
