/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_capacity.h - engines are asked for their capacity. */
#ifndef NGX_HTTP_KVROUTE_CAPACITY_H
#define NGX_HTTP_KVROUTE_CAPACITY_H

#include "ngx_http_kvroute_conf.h"

/* Once up->known is made. */
void ngx_http_kvroute_asks_begin(ngx_http_kvroute_srv_conf_t *up,
    ngx_cycle_t *cycle);
/* Peers of up->known are new. */
void ngx_http_kvroute_asks_follow(ngx_http_kvroute_srv_conf_t *up);
void ngx_http_kvroute_ask_free(ngx_http_kvroute_ask_t *ask);
void ngx_http_kvroute_asks_leave(ngx_http_kvroute_srv_conf_t *up);
/* A request failed at this peer. */
void ngx_http_kvroute_trouble(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *name);

#endif
