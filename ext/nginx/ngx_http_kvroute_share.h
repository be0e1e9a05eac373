/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_share.h - the share of a tenant in a full index. */
#ifndef NGX_HTTP_KVROUTE_SHARE_H
#define NGX_HTTP_KVROUTE_SHARE_H

#include "ngx_http_kvroute_conf.h"

char *kvroute_share_command(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* These two return NULL, or the missing line: here, and at last. */
char *kvroute_share_merge(ngx_conf_t *cf,
    kvroute_loc_conf_t *loc, kvroute_loc_conf_t *of);
char *kvroute_share_check(const kvroute_main_conf_t *main);
/* For struct kvr_request; 0: the index is not shared. */
uint32_t kvroute_share_of(kvroute_ctx_t *ctx);

#endif
