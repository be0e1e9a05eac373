/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_take.h - takes a peer by the stock method. */
#ifndef NGX_HTTP_KVROUTE_TAKE_H
#define NGX_HTTP_KVROUTE_TAKE_H

#include "ngx_http_kvroute_conf.h"

/* Makes the bits of tried peers anew, for fleet.known; false: no memory. */
bool kvroute_tried_fit(kvroute_ctx_t *ctx);
ngx_int_t kvroute_stock_get(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc);
/* Peer i of fleet.known. NGX_BUSY: it became unusable meanwhile. */
ngx_int_t kvroute_take(kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc, ngx_uint_t i);
/* The one with the fewest connections by weight. */
ngx_int_t kvroute_take_least(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc);
/* NGX_BUSY, as the stock method returns it when no peer is left. */
ngx_int_t kvroute_take_none(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc);

#endif
