/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_time.h - histograms of durations. */
#ifndef NGX_HTTP_KVROUTE_TIME_H
#define NGX_HTTP_KVROUTE_TIME_H

#include "ngx_http_kvroute_conf.h"

void kvroute_time_begin(ngx_cycle_t *cycle);
/* A timer that, while it is pending, does not keep an exiting process alive. */
void kvroute_timer_make(ngx_event_t *timer, ngx_event_handler_pt handler,
    void *data, ngx_log_t *log);
/* Is the process about to end, or its configuration an old one? */
bool kvroute_is_ending(void);
/* Since `began`, which this turn of the loop spends in the module. */
uint64_t kvroute_spent(kvroute_srv_conf_t *up, int64_t began);
/* The first token has come. */
void kvroute_first_timed(kvroute_ctx_t *ctx);
/* The request is over. */
void kvroute_request_timed(kvroute_ctx_t *ctx);

#endif
