/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_module.h - called for nginx, by the tables of the module. */
#ifndef NGX_HTTP_KVROUTE_MODULE_H
#define NGX_HTTP_KVROUTE_MODULE_H

#include "ngx_http_kvroute_conf.h"

/* ngx_http_kvroute_region.c: nginx starts, reloads, ends. */
ngx_int_t kvroute_regions_prepare(ngx_cycle_t *cycle);
ngx_int_t kvroute_regions_attach(ngx_cycle_t *cycle);
void kvroute_regions_leave(ngx_cycle_t *cycle);
/* For the directive: the shared memory of the region, or its counters. */
char *kvroute_zone_add(ngx_conf_t *cf, kvroute_srv_conf_t *up);

/* ngx_http_kvroute_peer.c */
ngx_int_t kvroute_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
/* Has no directive behind "kvroute" put another method around it? */
bool kvroute_is_outermost(const ngx_http_upstream_srv_conf_t *us);

/* ngx_http_kvroute_answer.c: headers, first event and usage of a response. */
/* For a directive: makes our filters the first of all loaded modules. */
char *kvroute_filters_order(ngx_conf_t *cf);
void kvroute_filters_add(void);

/* The request is over. */
void kvroute_comments_end(kvroute_ctx_t *ctx);

/* ngx_http_kvroute_advice.c */
/* A location is merged, after those of nginx's own modules. */
void kvroute_location_advise(ngx_conf_t *cf);
/* The configuration is read; NGX_ERROR: an upstream has another method. */
ngx_int_t kvroute_upstreams_advise(ngx_conf_t *cf);

/* ngx_http_kvroute_status.c: a location with kvroute_status. */
ngx_int_t kvroute_status_handler(ngx_http_request_t *r);

#endif
