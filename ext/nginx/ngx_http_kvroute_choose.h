/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_choose.h - asks the library for a worker; kvroute_share. */
#ifndef NGX_HTTP_KVROUTE_CHOOSE_H
#define NGX_HTTP_KVROUTE_CHOOSE_H

#include "ngx_http_kvroute_conf.h"

/* A choice begins: ctx->ask is as the location has it. */
void kvroute_ask_make(kvroute_ctx_t *ctx);
/* As booking_choose(). */
bool kvroute_choose(kvroute_ctx_t *ctx, int64_t now, bool book);
/* Books the request on its worker, which is given; it may fail. */
void kvroute_kept_book(kvroute_ctx_t *ctx, int64_t now);
/* One that was accepted and has no lease: now, or once the lock is free. */
void kvroute_late_book(kvroute_ctx_t *ctx, int64_t now);
/* Books a request whose server nginx's "sticky" has chosen. */
void kvroute_taken_book(kvroute_ctx_t *ctx, int64_t now);

char *kvroute_share_command(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* These two return NULL, or the missing line: here, and at last. */
char *kvroute_share_merge(ngx_conf_t *cf,
    kvroute_loc_conf_t *loc, kvroute_loc_conf_t *of);
char *kvroute_share_check(const kvroute_main_conf_t *main);

#endif
