/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_early.h - the body is read before the upstream is chosen. */
#ifndef NGX_HTTP_KVROUTE_EARLY_H
#define NGX_HTTP_KVROUTE_EARLY_H

#include "ngx_http_kvroute_conf.h"

ngx_int_t kvroute_early_add(ngx_conf_t *cf);
/* Empty if they are not known early. */
ngx_str_t kvroute_early_model(ngx_http_request_t *r);
ngx_str_t kvroute_early_id(ngx_http_request_t *r, ngx_uint_t which);

#endif
