/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_body.h - the body that was read -> the prompt. */
#ifndef NGX_HTTP_KVROUTE_BODY_H
#define NGX_HTTP_KVROUTE_BODY_H

#include "ngx_http_kvroute_conf.h"

void kvroute_body_read(kvroute_ctx_t *ctx);
/* Makes ctx->reader, with the prompt and its scope; facts are in ctx. */
bool kvroute_prompt_make(kvroute_ctx_t *ctx);
/* The prompt is no longer needed. */
void kvroute_prompt_leave(kvroute_ctx_t *ctx);

#endif
