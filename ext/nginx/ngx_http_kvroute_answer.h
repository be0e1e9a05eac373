/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_answer.h - headers, first event and usage of a response ->
 * the report.
 */
#ifndef NGX_HTTP_KVROUTE_ANSWER_H
#define NGX_HTTP_KVROUTE_ANSWER_H

#include "ngx_http_kvroute_conf.h"

/* For a directive: makes our filters the first of all loaded modules. */
char *kvroute_filters_order(ngx_conf_t *cf);
void kvroute_filters_add(void);

/* A stream has begun, or is over: it has no comments. Again is no error. */
void kvroute_comments_end(kvroute_ctx_t *ctx);

#endif
