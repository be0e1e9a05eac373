/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_poll.h - engines are asked for their capacity and load. */
#ifndef NGX_HTTP_KVROUTE_POLL_H
#define NGX_HTTP_KVROUTE_POLL_H

#include "ngx_http_kvroute_conf.h"

/* Once the list of peers is made. */
void kvroute_polls_begin(kvroute_srv_conf_t *up, ngx_cycle_t *cycle);
/* Peers of it are new, and one of them leaves. */
void kvroute_polls_follow(kvroute_srv_conf_t *up);
void kvroute_poll_free(struct known *known);
void kvroute_polls_leave(kvroute_srv_conf_t *up);

#endif
