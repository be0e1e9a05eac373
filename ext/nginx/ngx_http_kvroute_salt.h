/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_salt.h - cache_salt in the body that is sent. */
#ifndef NGX_HTTP_KVROUTE_SALT_H
#define NGX_HTTP_KVROUTE_SALT_H

#include "ngx_http_kvroute_conf.h"

char *kvroute_salt_command(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* For the PRECONTENT phase; NGX_DECLINED: the request may go on. */
ngx_int_t kvroute_salt_set(ngx_http_request_t *r);
/* The salt that was set in its body, or empty. */
ngx_str_t kvroute_salt_value(ngx_http_request_t *r);

#endif
