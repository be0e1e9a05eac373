/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_show.h - the state of the upstreams, as JSON, metrics or
 * page.
 */
#ifndef NGX_HTTP_KVROUTE_SHOW_H
#define NGX_HTTP_KVROUTE_SHOW_H

#include "ngx_http_kvroute_conf.h"

ngx_int_t kvroute_state_show(ngx_http_request_t *r);
ngx_int_t kvroute_metrics_show(ngx_http_request_t *r);
ngx_int_t kvroute_page_show(ngx_http_request_t *r);

ngx_int_t kvroute_explain_handler(ngx_http_request_t *r);

#endif
