/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_poll.h - engines are asked for their load. */
#ifndef NGX_HTTP_KVROUTE_POLL_H
#define NGX_HTTP_KVROUTE_POLL_H

#include "ngx_http_kvroute_conf.h"

struct status_load;

/* As asks: once up->known is made. Each process; one of them polls. */
void ngx_http_kvroute_polls_begin(ngx_http_kvroute_srv_conf_t *up,
    ngx_cycle_t *cycle);
void ngx_http_kvroute_polls_follow(ngx_http_kvroute_srv_conf_t *up);
void ngx_http_kvroute_poll_free(ngx_http_kvroute_poll_t *poll);
void ngx_http_kvroute_polls_leave(ngx_http_kvroute_srv_conf_t *up);
/* What is known, at most n_workers of them. */
size_t ngx_http_kvroute_polled_list(const ngx_http_kvroute_srv_conf_t *up,
    struct status_load *out);

#endif
