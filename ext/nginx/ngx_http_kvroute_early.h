/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_early.h - the body is read before the upstream is chosen. */
#ifndef NGX_HTTP_KVROUTE_EARLY_H
#define NGX_HTTP_KVROUTE_EARLY_H

#include "ngx_http_kvroute_reader.h"

/* Of the PREACCESS phase. */
ngx_int_t kvroute_early_handler(ngx_http_request_t *r);
/* NULL: they are not known early. */
const kvroute_texts_t *kvroute_early_texts(ngx_http_request_t *r);

#endif
