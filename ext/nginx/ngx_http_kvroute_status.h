/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_status.h - a location with kvroute_status. */
#ifndef NGX_HTTP_KVROUTE_STATUS_H
#define NGX_HTTP_KVROUTE_STATUS_H

#include "ngx_http_kvroute_conf.h"

ngx_int_t kvroute_status_handler(ngx_http_request_t *r);

#endif
