/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_kept.c - see ngx_http_kvroute_kept.h. */
#include "ngx_http_kvroute_kept.h"

void *
ngx_http_kvroute_kept_make(ngx_http_request_t *r, ngx_pool_cleanup_pt cleanup,
    size_t size)
{
	ngx_pool_cleanup_t *cln = ngx_pool_cleanup_add(r->pool, size);

	if (cln == NULL)
		return NULL;
	cln->handler = cleanup;
	ngx_memzero(cln->data, size);
	*(ngx_http_request_t **)cln->data = r;
	return cln->data;
}

void *
ngx_http_kvroute_kept_of(ngx_http_request_t *r, ngx_pool_cleanup_pt cleanup)
{
	ngx_pool_cleanup_t *cln;

	for (cln = r->pool->cleanup; cln != NULL; cln = cln->next)
		if (cln->handler == cleanup &&
		    *(ngx_http_request_t **)cln->data == r)
			return cln->data;
	return NULL;
}
