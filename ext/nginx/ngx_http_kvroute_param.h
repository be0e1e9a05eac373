/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_param.h - parameters NAME=VALUE of directives.
 */
#ifndef NGX_HTTP_KVROUTE_PARAM_H
#define NGX_HTTP_KVROUTE_PARAM_H

#include "ngx_http_kvroute_conf.h"

/*
 * The parameters of one directive are fields of one struct. Writes their
 * defaults; nothing else of the struct changes.
 */
/* Names by kvroute_shadow_t; NULL: kvroute itself chooses. */
extern const char *const kvroute_shadows[];

void kvroute_param_defaults(const char *directive, void *fields);
/*
 * Reads an argument of the current directive. On an error the log has its name,
 * its value and the expected one.
 */
char *kvroute_param_read(ngx_conf_t *cf, ngx_str_t *argument, void *fields);
/* Logs that the argument is invalid, and the reason. */
char *kvroute_param_refuse(ngx_conf_t *cf, ngx_str_t *argument,
    const char *why);
/* Does the current directive have the parameter NAME? */
bool kvroute_param_given(ngx_conf_t *cf, const char *name);
/* A copy that is one line of a log, whatever a client has sent. */
ngx_str_t kvroute_printable(ngx_pool_t *pool, const ngx_str_t *text);
/* Is this argument NAME=...? If so, *value is the rest. */
bool kvroute_param_is(const ngx_str_t *argument, const char *name,
    ngx_str_t *value);

char *kvroute_affinity_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *kvroute_responses_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

#endif
