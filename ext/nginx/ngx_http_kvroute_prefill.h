/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_prefill.h - a server that prefills for another; roles.h. */
#ifndef NGX_HTTP_KVROUTE_PREFILL_H
#define NGX_HTTP_KVROUTE_PREFILL_H

#include "ngx_http_kvroute_conf.h"

/*
 * Books a request whose server is taken, and was only asked for: there, and its
 * prompt where it is prefilled.
 */
void ngx_http_kvroute_split_book(ngx_http_kvroute_ctx_t *ctx, int64_t now);

#endif
