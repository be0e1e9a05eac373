/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_peers.h - peers that were tried, may be taken, are taken. */
#ifndef NGX_HTTP_KVROUTE_PEERS_H
#define NGX_HTTP_KVROUTE_PEERS_H

#include "ngx_http_kvroute_conf.h"

/* Makes the bits of tried peers anew, for fleet.known; false: no memory. */
bool kvroute_tried_fit(kvroute_ctx_t *ctx);
/* By the stock method. */
ngx_int_t kvroute_stock_get(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc);
/* Peer i of fleet.known. NGX_BUSY: it became unusable meanwhile. */
ngx_int_t kvroute_take(kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc, ngx_uint_t i);
/* The one with the fewest connections by weight. */
ngx_int_t kvroute_take_least(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc);
/* NGX_BUSY, as the stock method returns it when no peer is left. */
ngx_int_t kvroute_take_none(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc);

/* Is one of the group that is in use usable, beside the current one? */
bool kvroute_another_usable(kvroute_ctx_t *ctx);
/* The name of the chosen worker; empty if it is gone. */
ngx_str_t kvroute_worker_name(kvroute_ctx_t *ctx);
/* The server of the latest try; empty: none. It outlives the peer. */
ngx_str_t kvroute_taken_name(const kvroute_ctx_t *ctx);
/* Has it tried peer i of fleet.known? */
bool kvroute_has_tried(const kvroute_ctx_t *ctx, ngx_uint_t i);
/* The one that the request went to, or the rank that `draw` draws. */
uint64_t kvroute_taken_worker(kvroute_ctx_t *ctx, uint64_t draw);
/* Where the server of the latest try is in fleet.known; n_known: none. */
ngx_uint_t kvroute_taken_peer(kvroute_ctx_t *ctx);

/* Books the requests on servers that were reset: again, as they change. */
void kvroute_stale_book(kvroute_srv_conf_t *up);

/* ctx->digest, or that of the body. The request has its pool. */
uint64_t kvroute_digest_of(const kvroute_ctx_t *ctx);
uint64_t kvroute_client_of(const kvroute_ctx_t *ctx);

/* Updates fleet.known for the choice of this request. */
void kvroute_peers_look(kvroute_ctx_t *ctx);
/* The same for usable or full peers, for a request without tries. */
void kvroute_room_look(kvroute_srv_conf_t *up);

#endif
