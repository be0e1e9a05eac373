/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_answer.h - headers, first event and usage of a response ->
 * the report.
 */
#ifndef NGX_HTTP_KVROUTE_ANSWER_H
#define NGX_HTTP_KVROUTE_ANSWER_H

#include "ngx_http_kvroute_conf.h"

/* Of a directive: our filters are the first of all modules that were loaded. */
char *ngx_http_kvroute_filters_order(ngx_conf_t *cf);
void ngx_http_kvroute_filters_add(void);

#endif
