/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_time.h - histograms of durations. */
#ifndef NGX_HTTP_KVROUTE_TIME_H
#define NGX_HTTP_KVROUTE_TIME_H

#include "ngx_http_kvroute_conf.h"

void ngx_http_kvroute_time_begin(ngx_cycle_t *cycle);
/* Since `began`, which this turn of the loop spends in the module. */
uint64_t ngx_http_kvroute_spent(ngx_http_kvroute_srv_conf_t *up,
    int64_t began);
/* The first token has come. */
void ngx_http_kvroute_first_timed(ngx_http_kvroute_ctx_t *ctx);
/* The request is over. */
void ngx_http_kvroute_request_timed(ngx_http_kvroute_ctx_t *ctx);

#endif
