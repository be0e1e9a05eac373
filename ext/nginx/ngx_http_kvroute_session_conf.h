/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_session_conf.h - directives about sessions and state. */
#ifndef NGX_HTTP_KVROUTE_SESSION_CONF_H
#define NGX_HTTP_KVROUTE_SESSION_CONF_H

#include "ngx_http_kvroute_conf.h"

char *ngx_http_kvroute_affinity_set(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_kvroute_responses_set(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void ngx_http_kvroute_session_create(ngx_http_kvroute_loc_conf_t *loc);
void ngx_http_kvroute_session_merge(ngx_http_kvroute_loc_conf_t *loc,
    const ngx_http_kvroute_loc_conf_t *of);

#endif
