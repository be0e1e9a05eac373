/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_queue.h - requests that wait while all servers are full. */
#ifndef NGX_HTTP_KVROUTE_QUEUE_H
#define NGX_HTTP_KVROUTE_QUEUE_H

#include "ngx_http_kvroute_conf.h"

/* For each process. */
void kvroute_queue_begin(kvroute_srv_conf_t *up, ngx_log_t *log);
/* Before a choice: saves the state of peers, to return to. */
void kvroute_queue_keep(kvroute_ctx_t *ctx);
/* A choice gave no peer. NGX_AGAIN: the request waits, else NGX_BUSY. */
ngx_int_t kvroute_queue_wait(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc);
/* A peer was given back. */
void kvroute_queue_freed(kvroute_srv_conf_t *up);
/* Warns if it cannot have an effect. */
void kvroute_queue_check(ngx_conf_t *cf, kvroute_srv_conf_t *up);

#endif
