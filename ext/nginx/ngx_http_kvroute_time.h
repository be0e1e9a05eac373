/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_time.h - histograms of durations. */
#ifndef NGX_HTTP_KVROUTE_TIME_H
#define NGX_HTTP_KVROUTE_TIME_H

#include "ngx_http_kvroute_conf.h"

void kvroute_time_begin(ngx_cycle_t *cycle);
/* Since `began`, which this turn of the loop spends in the module. */
uint64_t kvroute_spent(kvroute_srv_conf_t *up, int64_t began);
/* The first token has come. */
void kvroute_first_timed(kvroute_ctx_t *ctx);
/* The request is over. */
void kvroute_request_timed(kvroute_ctx_t *ctx);

#endif
