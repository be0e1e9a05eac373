/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_zone.h - one region for each upstream, in a zone or in a
 * file.
 */
#ifndef NGX_HTTP_KVROUTE_ZONE_H
#define NGX_HTTP_KVROUTE_ZONE_H

#include "ngx_http_kvroute_conf.h"

char *ngx_http_kvroute_zone_add(ngx_conf_t *cf,
    ngx_http_kvroute_srv_conf_t *up);
/* KVR_OK or an error of kvr_attach_at or kvr_open. */
int ngx_http_kvroute_region_open(ngx_http_kvroute_srv_conf_t *up, bool master,
    struct kvr **k);
/* Logs the error; always NGX_ERROR. */
ngx_int_t ngx_http_kvroute_complain(ngx_log_t *log,
    ngx_http_kvroute_srv_conf_t *up, const char *what, int error);

#endif
