/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_places.h - what processes tell each other of requests that
 * wait.
 */
#ifndef NGX_HTTP_KVROUTE_PLACES_H
#define NGX_HTTP_KVROUTE_PLACES_H

#include "ngx_http_kvroute_ctx.h"

/* That waits, of a place in a queue. */
#define ngx_http_kvroute_waiter(q) \
	(ngx_queue_data((q), ngx_http_kvroute_ctx_t, wait.queue))

/* Milliseconds, for the order; never 0. */
uint32_t ngx_http_kvroute_stamp(void);
bool ngx_http_kvroute_is_before(uint32_t a, uint32_t b);
/* Requests that wait, of all processes. */
size_t ngx_http_kvroute_queue_length(const ngx_http_kvroute_srv_conf_t *up);
/* A place of this process; false: there is none. */
bool ngx_http_kvroute_place_have(ngx_http_kvroute_srv_conf_t *up);
/* What the others are to know of it. */
void ngx_http_kvroute_place_write(ngx_http_kvroute_srv_conf_t *up);
void ngx_http_kvroute_place_leave(ngx_http_kvroute_srv_conf_t *up);
/* Does a plain request wait elsewhere for longer? */
bool ngx_http_kvroute_older_elsewhere(const ngx_http_kvroute_srv_conf_t *up,
    uint32_t since);
/* Servers that one wants that waits for longer are full. */
void ngx_http_kvroute_wanted_leave(ngx_http_kvroute_srv_conf_t *up,
    uint32_t since);

#endif
