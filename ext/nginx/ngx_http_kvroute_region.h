/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_region.h - nginx starts, reloads, ends. */
#ifndef NGX_HTTP_KVROUTE_REGION_H
#define NGX_HTTP_KVROUTE_REGION_H

#include "ngx_http_kvroute_conf.h"

ngx_int_t kvroute_regions_prepare(ngx_cycle_t *cycle);
ngx_int_t kvroute_regions_attach(ngx_cycle_t *cycle);
void kvroute_regions_leave(ngx_cycle_t *cycle);
/* For the directive: the shared memory of the region, or its counters. */
char *kvroute_zone_add(ngx_conf_t *cf, kvroute_srv_conf_t *up);

#endif
