/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_queue.h - requests that wait while all servers are full. */
#ifndef NGX_HTTP_KVROUTE_QUEUE_H
#define NGX_HTTP_KVROUTE_QUEUE_H

#include "ngx_http_kvroute_conf.h"

/* For each process. */
void ngx_http_kvroute_queue_begin(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log);
/* For a request, with so many bytes of tried peers; false: no memory. */
bool ngx_http_kvroute_queue_make(ngx_http_kvroute_ctx_t *ctx, size_t bytes);
/* Before a choice: saves the state of peers, to return to. */
void ngx_http_kvroute_queue_keep(ngx_http_kvroute_ctx_t *ctx);
/* A choice gave no peer. NGX_AGAIN: the request waits, else NGX_BUSY. */
ngx_int_t ngx_http_kvroute_queue_wait(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc);
/* A peer was given back. */
void ngx_http_kvroute_queue_freed(ngx_http_kvroute_srv_conf_t *up);
/* Warns if it cannot have an effect. */
void ngx_http_kvroute_queue_check(ngx_conf_t *cf,
    ngx_http_kvroute_srv_conf_t *up);

#endif
