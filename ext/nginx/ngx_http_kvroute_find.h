/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_find.h - texts, headers and modules by name. */
#ifndef NGX_HTTP_KVROUTE_FIND_H
#define NGX_HTTP_KVROUTE_FIND_H

#include "ngx_http_kvroute_conf.h"

bool kvroute_same(const ngx_str_t *a, const ngx_str_t *b);
/* Is this the word? */
bool kvroute_word_is(const ngx_str_t *text, const char *word);
/* A header of the client's request; NULL: not found. */
ngx_table_elt_t *kvroute_header(ngx_http_request_t *r, const char *name);
/* A header of the response; the texts are not copied. */
ngx_int_t kvroute_header_add(ngx_http_request_t *r, const char *name,
    const ngx_str_t *value);
/* The place in the list; at the NULL at the end: this nginx lacks it. */
ngx_uint_t kvroute_module_find(ngx_module_t **modules, const char *name);

/*
 * All 0 but for its first member, which is the request. Structs of one request
 * differ by their cleanup. NULL: no memory.
 */
/* By a cleanup a struct is found again; this one has nothing to do. */
#define KVROUTE_KEPT(cleanup) static void cleanup(void *data) { (void)data; }
void *kvroute_kept_make(ngx_http_request_t *r,
    ngx_pool_cleanup_pt cleanup, size_t size);
/* NULL: there is no such struct. */
void *kvroute_kept_of(ngx_http_request_t *r, ngx_pool_cleanup_pt cleanup);

#endif
