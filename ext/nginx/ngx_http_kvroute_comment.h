/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_comment.h - keeps streams alive during a long prefill. */
#ifndef NGX_HTTP_KVROUTE_COMMENT_H
#define NGX_HTTP_KVROUTE_COMMENT_H

#include "ngx_http_kvroute_conf.h"

/* The headers of a stream were sent; comments follow by this filter. */
void ngx_http_kvroute_comments_begin(ngx_http_kvroute_ctx_t *ctx,
    ngx_http_output_body_filter_pt filter);
/* The stream itself has begun, or is over; again is no error. */
void ngx_http_kvroute_comments_end(ngx_http_kvroute_ctx_t *ctx);

#endif
