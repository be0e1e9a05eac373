/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_extend.h - the answer becomes part of the prompt. */
#ifndef NGX_HTTP_KVROUTE_EXTEND_H
#define NGX_HTTP_KVROUTE_EXTEND_H

#include "ngx_http_kvroute_conf.h"

/* At the headers of a response, while its prompt is there. */
void ngx_http_kvroute_extend_begin(ngx_http_kvroute_ctx_t *ctx);
/* The prompt with the answer, if that has passed whole; or NULL. */
struct kvr_prompt *ngx_http_kvroute_extend_end(ngx_http_kvroute_ctx_t *ctx,
    bool whole);
void ngx_http_kvroute_extend_leave(ngx_http_kvroute_ctx_t *ctx);
void ngx_http_kvroute_extend_free(ngx_http_kvroute_srv_conf_t *up);
int ngx_http_kvroute_extend(ngx_http_kvroute_srv_conf_t *up, uint64_t lease,
    struct kvr_prompt *prompt, int64_t now);

#endif
