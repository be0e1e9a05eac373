/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_time.h - histograms of durations. */
#ifndef NGX_HTTP_KVROUTE_TIME_H
#define NGX_HTTP_KVROUTE_TIME_H

#include "ngx_http_kvroute_conf.h"

struct histogram;

void ngx_http_kvroute_time_begin(ngx_cycle_t *cycle);
/* Since `began`, which this turn of the loop spends in the module. */
uint64_t ngx_http_kvroute_spent(ngx_http_kvroute_srv_conf_t *up,
    int64_t began);
/* The first token has come; again is no error. */
void ngx_http_kvroute_first_timed(ngx_http_kvroute_ctx_t *ctx);
/* All of them have, and ctx->report says how many. */
void ngx_http_kvroute_tokens_timed(ngx_http_kvroute_ctx_t *ctx);
/* A request has waited for a server. */
void ngx_http_kvroute_waited(ngx_http_kvroute_srv_conf_t *up, uint64_t ns);
/* The request is over. */
void ngx_http_kvroute_request_timed(ngx_http_kvroute_ctx_t *ctx);
void ngx_http_kvroute_times_copy(struct histogram *to,
    const ngx_http_kvroute_shared_t *from);

#endif
