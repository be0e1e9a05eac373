/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_edit.h - edits of the request that is sent. */
#ifndef NGX_HTTP_KVROUTE_EDIT_H
#define NGX_HTTP_KVROUTE_EDIT_H

#include "ngx_http_kvroute_conf.h"

/* Is the request nginx's proxy module's, with the whole head in memory? */
bool kvroute_request_editable(ngx_http_request_t *r);
/* Copies it without lines of these names, or NULL; returns its empty line. */
u_char *kvroute_head_copy(ngx_buf_t *to, const ngx_buf_t *from,
    const char *name, const char *other);
/*
 * Puts the text, which is not copied, in place of `cut` bytes at `at` of a body
 * that begins with *first, and goes on behind them. False: it cannot be done.
 */
bool kvroute_chain_splice(ngx_pool_t *pool, ngx_chain_t **first, off_t at,
    off_t cut, const ngx_str_t *put);
/* Edits the request to the engine, as feedback requires. */
ngx_int_t kvroute_request_edit(kvroute_ctx_t *ctx);

#endif
