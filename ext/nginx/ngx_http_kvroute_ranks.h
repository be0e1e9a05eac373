/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_ranks.h - data-parallel ranks behind one address; their
 * header.
 */
#ifndef NGX_HTTP_KVROUTE_RANKS_H
#define NGX_HTTP_KVROUTE_RANKS_H

#include "ngx_http_kvroute_conf.h"

/* Is there room for so many? The peers are known. */
ngx_int_t kvroute_ranks_check(ngx_conf_t *cf,
    kvroute_srv_conf_t *up);
/* Makes a place for the rank in the head of the request, */
ngx_int_t kvroute_rank_prepare(kvroute_ctx_t *ctx);
/* and writes the chosen one there, or none; rc: of the choice. */
void kvroute_rank_write(kvroute_ctx_t *ctx, ngx_int_t rc);
/* The engine answers a request that names a rank: it may lack that. */
void kvroute_rank_answered(kvroute_ctx_t *ctx,
    ngx_uint_t status);

#endif
