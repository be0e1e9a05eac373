/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_path.h - the endpoint of a request; unknown paths. */
#ifndef NGX_HTTP_KVROUTE_PATH_H
#define NGX_HTTP_KVROUTE_PATH_H

#include "ngx_http_kvroute_conf.h"

#include "endpoint.h"

/* By kvroute_endpoint, or by the path that the engine gets. */
enum endpoint kvroute_endpoint(ngx_http_request_t *r);
/* The path of this request is not that of an endpoint. */
void kvroute_path_count(kvroute_srv_conf_t *up, ngx_http_request_t *r);

#endif
