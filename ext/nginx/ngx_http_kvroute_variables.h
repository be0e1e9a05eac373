/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_variables.h - variables for logs; lines of a trace. */
#ifndef NGX_HTTP_KVROUTE_VARIABLES_H
#define NGX_HTTP_KVROUTE_VARIABLES_H

#include "ngx_http_kvroute_conf.h"

ngx_int_t kvroute_variables_add(ngx_conf_t *cf);

struct kvroute_trace_s {
	ngx_open_file_t *file;
	uint32_t sample;        /* millionths of the requests */
};

char *kvroute_trace_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* Of the LOG phase. */
ngx_int_t kvroute_trace_handler(ngx_http_request_t *r);
/* If this request is in the sample, keeps the fields of its line. */
void kvroute_trace_keep(kvroute_ctx_t *ctx);

#endif
