/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_try.h - the servers that a request has tried. */
#ifndef NGX_HTTP_KVROUTE_TRY_H
#define NGX_HTTP_KVROUTE_TRY_H

#include "ngx_http_kvroute_conf.h"

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

/* By nginx's rules: not down, and not failed just now; at its max_conns. */
bool kvroute_is_alive(const ngx_http_upstream_rr_peer_t *peer, time_t now);
bool kvroute_is_full(const ngx_http_upstream_rr_peer_t *peer);
/* Books the requests on servers that were reset: again, as they change. */
void kvroute_stale_book(kvroute_srv_conf_t *up);

/* Keeps ctx->digest, while the request has a prompt. */
void kvroute_prompt_digest(kvroute_ctx_t *ctx);
/* The same, or the digest of the body. The request has its pool. */
uint64_t kvroute_digest_of(const kvroute_ctx_t *ctx);
uint64_t kvroute_client_of(const kvroute_ctx_t *ctx);

#endif
