/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_share.h - the share of a tenant in a full index. */
#ifndef NGX_HTTP_KVROUTE_SHARE_H
#define NGX_HTTP_KVROUTE_SHARE_H

#include "ngx_http_kvroute_conf.h"

char *ngx_http_kvroute_share_command(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* These two return NULL, or the missing line: here, and at last. */
char *ngx_http_kvroute_share_merge(ngx_conf_t *cf,
    ngx_http_kvroute_loc_conf_t *loc, ngx_http_kvroute_loc_conf_t *of);
char *ngx_http_kvroute_share_check(const ngx_http_kvroute_main_conf_t *main);
/* For struct kvr_request; 0: the index is not shared. */
uint32_t ngx_http_kvroute_share_of(ngx_http_kvroute_ctx_t *ctx);

#endif
