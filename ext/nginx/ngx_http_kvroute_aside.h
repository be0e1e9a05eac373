/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_aside.h - a long status is written beside the event loop. */
#ifndef NGX_HTTP_KVROUTE_ASIDE_H
#define NGX_HTTP_KVROUTE_ASIDE_H

#include "ngx_http_kvroute_conf.h"

struct status;
struct writer;

typedef void kvroute_write_pt(const struct status *, struct writer *);

enum { KVROUTE_ASIDE_WORKERS = 128 };

/* The configuration is read: threads are needed if workers are many. */
ngx_int_t kvroute_aside_prepare(ngx_conf_t *cf);
/* The handler's result; NGX_DECLINED: it must be written here and now. */
ngx_int_t kvroute_aside_send(ngx_http_request_t *r, const struct status *s,
    kvroute_write_pt *write, const char *type);

#endif
