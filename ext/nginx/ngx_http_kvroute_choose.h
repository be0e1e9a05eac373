/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_choose.h - asks the library for a worker. */
#ifndef NGX_HTTP_KVROUTE_CHOOSE_H
#define NGX_HTTP_KVROUTE_CHOOSE_H

#include "ngx_http_kvroute_conf.h"

/* As booking_choose(). */
bool kvroute_choose(kvroute_ctx_t *ctx, int64_t now, bool book);
/* Books the request on its worker, which is given; it may fail. */
void kvroute_kept_book(kvroute_ctx_t *ctx, int64_t now);
/* Books it on the worker that was used, as if chosen. */
void kvroute_shadow_book(kvroute_ctx_t *ctx, int64_t now);
/* One that was accepted and has no lease: now, or once the lock is free. */
void kvroute_late_book(kvroute_ctx_t *ctx, int64_t now);
/* One that has no prompt, on the server that was used: a request of load. */
void kvroute_other_book(kvroute_ctx_t *ctx, int64_t now);
/* Books it on its worker, perhaps its prompt on another: booking_split(). */
void kvroute_split_book(kvroute_ctx_t *ctx, int64_t now);
/* Books a request whose server nginx's "sticky" has chosen. */
void kvroute_taken_book(kvroute_ctx_t *ctx, int64_t now);

#endif
