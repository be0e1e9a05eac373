/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_read.h - when a body is read: now, or in turns while the
 * request is held.
 */
#ifndef NGX_HTTP_KVROUTE_READ_H
#define NGX_HTTP_KVROUTE_READ_H

#include "ngx_http_kvroute_conf.h"

/* For each process, before its first request. */
void kvroute_read_begin(ngx_cycle_t *cycle);
/* The body of this request, read to its end, for one choice; or NULL. */
kvroute_reader_t *kvroute_reader_get(kvroute_ctx_t *ctx);
/* For early and salt: the upstream that lends spares for reading, or NULL. */
kvroute_srv_conf_t *kvroute_lender(ngx_http_request_t *r);
/* NGX_OK: it is read; NGX_DONE: in turns, and `then` is called later. */
ngx_int_t kvroute_read_body(kvroute_reader_t *reader,
    ngx_http_client_body_handler_pt then);
void kvroute_phases_go_on(ngx_http_request_t *r);
/* The body was read, and has grown ahead of its end. */
void kvroute_reader_moved(ngx_http_request_t *r, ngx_chain_t *from,
    ngx_chain_t *to, off_t grown);
/* A body that was there before its upstream: NGX_DONE while it is read. */
ngx_int_t kvroute_read_ahead(ngx_http_request_t *r);
void kvroute_read_add(void);

#endif
