/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_kept.h - structs of a request that outlive its contexts: a
 * cleanup of its pool keeps each, also after error_page and the like.
 */
#ifndef NGX_HTTP_KVROUTE_KEPT_H
#define NGX_HTTP_KVROUTE_KEPT_H

#include "ngx_http_kvroute_conf.h"

/*
 * All 0 but for its first member, which is the request. Structs of one request
 * differ by their cleanup. NULL: no memory.
 */
void *ngx_http_kvroute_kept_make(ngx_http_request_t *r,
    ngx_pool_cleanup_pt cleanup, size_t size);
/* NULL: there is no such struct. */
void *ngx_http_kvroute_kept_of(ngx_http_request_t *r,
    ngx_pool_cleanup_pt cleanup);

#endif
