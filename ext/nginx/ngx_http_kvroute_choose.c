/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_choose.c - asks the library for the best worker among those
 * of usable peers, and books the request there, see booking.h.
 */
#include "ngx_http_kvroute_choose.h"

#include "ngx_http_kvroute_body.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_end.h"
#include "ngx_http_kvroute_param.h"
#include "ngx_http_kvroute_peers.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_variables.h"

/* ---------------------------------------------------------------- share --- */

/*
 * kvroute_share: how much of a full index a tenant, the value of
 * kvroute_scope, may have beside others. See kvr_tenant(3).
 */

static char unscoped[] = "\"kvroute_share\" needs \"kvroute_scope\", which "
    "says whose share it is";

/* 0: it is no share. */
static uint32_t
share_read(const ngx_str_t *text)
{
	ngx_int_t n = ngx_atoi(text->data, text->len);

	return n >= 1 && n <= KVR_SHARE_MAX ? (uint32_t)n : 0;
}

char *
kvroute_share_command(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	kvroute_loc_conf_t *loc = conf;
	char *wrong = ngx_http_set_complex_value_slot(cf, cmd, conf);

	if (wrong != NGX_CONF_OK || loc->share->lengths != NULL)
		return wrong;
	return share_read(&loc->share->value) > 0 ? NGX_CONF_OK :
	    "has a value that is no number from 1 to 10000, or a variable "
	    "that gives one; 100 is what tenants have without it";
}

/*
 * A location must know whose its share is. A server, or all of http, leaves
 * that to its locations: one of them at least must know it.
 */
char *
kvroute_share_merge(ngx_conf_t *cf, kvroute_loc_conf_t *loc,
    kvroute_loc_conf_t *of)
{
	ngx_http_core_loc_conf_t *core = ngx_http_conf_get_module_loc_conf(cf,
	    ngx_http_core_module);
	kvroute_main_conf_t *main = kvroute_main(cf);
	bool own = loc->share != NULL;

	if (!own)
		loc->share = of->share;
	if (loc->share == NULL)
		return NULL;
	main->shared = true;
	main->scoped |= loc->scope != NULL;
	return own && loc->scope == NULL && core->name.len > 0 ?
	    unscoped : NULL;
}

char *
kvroute_share_check(const kvroute_main_conf_t *main)
{
	return main->shared && !main->scoped ? unscoped : NULL;
}

static uint32_t
share_of(kvroute_ctx_t *ctx)
{
	kvroute_loc_conf_t *loc = kvroute_loc(ctx->request);
	ngx_str_t text = ngx_null_string;
	uint32_t share;

	if (ctx->up->options.tenants == 0)
		return 0;
	if (loc->share == NULL || loc->scope == NULL ||
	    ngx_http_complex_value(ctx->request, loc->share, &text) !=
	    NGX_OK || text.len == 0)
		return KVR_SHARE_DEFAULT;
	share = share_read(&text);
	if (share > 0)
		return share;
	text = kvroute_printable(ctx->request->pool, &text);
	ngx_log_error(NGX_LOG_WARN, ctx->request->connection->log, 0,
	    "kvroute_share is \"%V\", no number from 1 to 10000: 100 is used",
	    &text);
	return KVR_SHARE_DEFAULT;
}

/* --------------------------------------------------------------- choice --- */

void
kvroute_ask_make(kvroute_ctx_t *ctx)
{
	kvroute_loc_conf_t *loc = kvroute_loc(ctx->request);
	struct kvr_request *ask = &ctx->ask;

	(void)kvr_request_init(ask, sizeof(*ask));
	ask->owner = ctx->up->owners.seen.self;
	ask->flags = KVR_NOWAIT |
	    (ctx->facts.stream ? 0 : KVR_NO_FIRST_TOKEN);
	ask->share = share_of(ctx);
	if (ctx->keeps.session == 0)
		return;
	ask->affinity = ctx->keeps.session;
	ask->affinity_mode = loc->affinity_mode;
	ask->affinity_ttl = loc->affinity_ttl;
}

/* NULL: nothing can be predicted. */
static struct kvr_prompt *
prompt_of(kvroute_ctx_t *ctx)
{
	return ctx->opinion == REASON_COST &&
	    kvroute_prompt_make(ctx) ? ctx->reader->prompt : NULL;
}

bool
kvroute_choose(kvroute_ctx_t *ctx, int64_t now, bool book)
{
	if (!booking_choose(&ctx->book, prompt_of(ctx), &ctx->ask, now, book))
		return false;
	kvroute_trace_keep(ctx);
	return true;
}

void
kvroute_kept_book(kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_prompt *prompt = prompt_of(ctx);

	if (prompt == NULL)
		return;
	if (booking_kept(&ctx->book, prompt, &ctx->ask, now))
		kvroute_trace_keep(ctx);
}

void
kvroute_taken_book(kvroute_ctx_t *ctx, int64_t now)
{
	const struct fleet *f = &ctx->up->fleet;
	struct kvr_prompt *prompt = prompt_of(ctx);
	size_t i = kvroute_taken_peer(ctx);
	uint32_t rank;

	if (prompt == NULL)
		return;
	if (!booking_taken(&ctx->book, i, prompt, &ctx->ask, now))
		return;
	i = known_of_worker(f, ctx->book.worker, &rank);
	if (i < f->n_known && f->known[i].named)
		ctx->rank = (ngx_int_t)rank;
	kvroute_trace_keep(ctx);
}

void
kvroute_late_book(kvroute_ctx_t *ctx, int64_t now)
{
	if (!ctx->book.missed || ctx->opinion != REASON_COST ||
	    ctx->reader == NULL)
		return;
	booking_late(&ctx->book, kvroute_taken_peer(ctx),
	    &ctx->reader->prompt, &ctx->ask, now);
	kvroute_late_look(ctx->up);
}
