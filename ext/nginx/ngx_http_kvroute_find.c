/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_find.c - see ngx_http_kvroute_find.h. */
#include "ngx_http_kvroute_find.h"

bool
kvroute_same(const ngx_str_t *a, const ngx_str_t *b)
{
	return a->len == b->len && ngx_memcmp(a->data, b->data, a->len) == 0;
}

bool
kvroute_word_is(const ngx_str_t *text, const char *word)
{
	return text->len == ngx_strlen(word) &&
	    ngx_strncmp(text->data, word, text->len) == 0;
}

ngx_table_elt_t *
kvroute_header(ngx_http_request_t *r, const char *name)
{
	ngx_list_part_t *part = &r->headers_in.headers.part;
	const size_t n = ngx_strlen(name);
	ngx_table_elt_t *h;
	ngx_uint_t i;

	for (; part != NULL; part = part->next) {
		h = part->elts;
		for (i = 0; i < part->nelts; i++) {
			if (h[i].key.len == n && ngx_strncasecmp(h[i].key.data,
			    (u_char *)name, n) == 0)
				return &h[i];
		}
	}
	return NULL;
}

ngx_int_t
kvroute_header_add(ngx_http_request_t *r, const char *name,
    const ngx_str_t *value)
{
	ngx_table_elt_t *h = ngx_list_push(&r->headers_out.headers);

	if (h == NULL)
		return NGX_ERROR;
	ngx_memzero(h, sizeof(*h));
	h->hash = 1;
	h->key.data = (u_char *)(uintptr_t)name;
	h->key.len = ngx_strlen(name);
	h->value = *value;
	return NGX_OK;
}

/* Modules that are linked statically have names. */
ngx_uint_t
kvroute_module_find(ngx_module_t **modules, const char *name)
{
	ngx_uint_t i = 0;

	while (modules[i] != NULL && ngx_strcmp(modules[i]->name, name) != 0)
		i++;
	return i;
}

/* ------------------------------------------------- structs of a request --- */

void *
kvroute_kept_make(ngx_http_request_t *r, ngx_pool_cleanup_pt cleanup,
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
kvroute_kept_of(ngx_http_request_t *r, ngx_pool_cleanup_pt cleanup)
{
	ngx_pool_cleanup_t *cln;

	for (cln = r->pool->cleanup; cln != NULL; cln = cln->next)
		if (cln->handler == cleanup &&
		    *(ngx_http_request_t **)cln->data == r)
			return cln->data;
	return NULL;
}
