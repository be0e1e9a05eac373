/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_explain.h - the library's reading of a body. */
#ifndef NGX_HTTP_KVROUTE_EXPLAIN_H
#define NGX_HTTP_KVROUTE_EXPLAIN_H

#include "ngx_http_kvroute_conf.h"

ngx_int_t ngx_http_kvroute_explain_handler(ngx_http_request_t *r);

#endif
