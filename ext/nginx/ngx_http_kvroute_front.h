/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_front.h - the front of prompts: lines that do not count, and
 * whether there should be some.
 */
#ifndef NGX_HTTP_KVROUTE_FRONT_H
#define NGX_HTTP_KVROUTE_FRONT_H

#include "ngx_http_kvroute_conf.h"

/* kvroute_ignore_line REGEX ...; or off. */
char *kvroute_ignore_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* A body_line; its context is an ngx_array_t. */
bool kvroute_line_ignored(void *lines, const char *line, size_t n);
/* Counts a prompt, with its end, that is like an earlier one but in front. */
void kvroute_front_look(kvroute_srv_conf_t *up,
    const struct kvr_prompt *prompt, const struct kvr_scope *scope);

#endif
