/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_take.h - takes a peer by the stock method. */
#ifndef NGX_HTTP_KVROUTE_TAKE_H
#define NGX_HTTP_KVROUTE_TAKE_H

#include "ngx_http_kvroute_conf.h"

/* Makes the bits of tried peers anew, for fleet.known; false: no memory. */
bool ngx_http_kvroute_tried_fit(ngx_http_kvroute_ctx_t *ctx);
ngx_int_t ngx_http_kvroute_stock_get(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc);
/* Peer i of fleet.known. NGX_BUSY: it became unusable meanwhile. */
ngx_int_t ngx_http_kvroute_take(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc, ngx_uint_t i);
/* The one with the fewest connections by weight. */
ngx_int_t ngx_http_kvroute_take_least(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc);
/* NGX_BUSY, as the stock method returns it when no peer is left. */
ngx_int_t ngx_http_kvroute_take_none(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc);

#endif
