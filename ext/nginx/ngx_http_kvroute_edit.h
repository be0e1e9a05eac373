/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_edit.h - edits of the request that is sent. */
#ifndef NGX_HTTP_KVROUTE_EDIT_H
#define NGX_HTTP_KVROUTE_EDIT_H

#include "ngx_http_kvroute_conf.h"

/* Is the request nginx's proxy module's, with the whole head in memory? */
bool kvroute_request_editable(ngx_http_request_t *r);
/* Edits the request to the engine, as feedback requires. */
ngx_int_t kvroute_request_edit(kvroute_ctx_t *ctx);
/* The engine answers with this status. */
void kvroute_asked(kvroute_ctx_t *ctx, ngx_uint_t status);

#endif
