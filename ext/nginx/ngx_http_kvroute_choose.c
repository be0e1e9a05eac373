/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_choose.c - asks the library for the best worker among those
 * of usable peers, and books the request there, see booking.h.
 */
#include "ngx_http_kvroute_choose.h"

#include "ngx_http_kvroute_body.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_end.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_share.h"
#include "ngx_http_kvroute_trace.h"
#include "ngx_http_kvroute_try.h"

/* As the location has it. */
static void
request_make(kvroute_ctx_t *ctx, struct kvr_request *request)
{
	kvroute_loc_conf_t *loc = kvroute_loc(ctx->request);

	(void)kvr_request_init(request, sizeof(*request));
	request->owner = ctx->up->owners.seen.self;
	request->flags = KVR_NOWAIT |
	    (ctx->facts.stream ? 0 : KVR_NO_FIRST_TOKEN);
	request->share = kvroute_share_of(ctx);
	/* A probe is no evidence of where its session is. */
	if (ctx->keeps.session == 0 || ctx->probe)
		return;
	request->affinity = ctx->keeps.session;
	request->affinity_mode = loc->affinity_mode;
	request->affinity_ttl = loc->affinity_ttl;
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
	struct kvr_request r;

	request_make(ctx, &r);
	if (!booking_choose(&ctx->book, prompt_of(ctx), &r, now, book))
		return false;
	kvroute_trace_keep(ctx);
	return true;
}

void
kvroute_kept_book(kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_prompt *prompt = prompt_of(ctx);
	struct kvr_request r;

	if (prompt == NULL)
		return;
	request_make(ctx, &r);
	if (booking_kept(&ctx->book, prompt, &r, now))
		kvroute_trace_keep(ctx);
}

void
kvroute_taken_book(kvroute_ctx_t *ctx, int64_t now)
{
	const struct fleet *f = &ctx->up->fleet;
	struct kvr_prompt *prompt = prompt_of(ctx);
	size_t i = kvroute_taken_peer(ctx);
	struct kvr_request r;
	uint32_t rank;

	if (prompt == NULL)
		return;
	request_make(ctx, &r);
	if (!booking_taken(&ctx->book, i, prompt, &r, now))
		return;
	i = known_of_worker(f, ctx->book.worker, &rank);
	if (i < f->n_known && f->known[i].named)
		ctx->rank = (ngx_int_t)rank;
	kvroute_trace_keep(ctx);
}

void
kvroute_shadow_book(kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_request r;

	request_make(ctx, &r);
	booking_shadow(&ctx->book, kvroute_taken_peer(ctx),
	    ctx->reader->prompt, &r, now);
}

void
kvroute_split_book(kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_request r;

	request_make(ctx, &r);
	booking_split(&ctx->book, kvroute_taken_peer(ctx),
	    ctx->reader->prompt, &r, now);
	kvroute_late_look(ctx->up);
}

void
kvroute_late_book(kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_request r;

	if (!ctx->book.missed || ctx->opinion != REASON_COST ||
	    ctx->reader == NULL)
		return;
	request_make(ctx, &r);
	booking_late(&ctx->book, kvroute_taken_peer(ctx),
	    &ctx->reader->prompt, &r, now);
	kvroute_late_look(ctx->up);
}

void
kvroute_other_book(kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_request r;

	if (ctx->up->fleet.kvr == NULL || ctx->opinion == REASON_COST ||
	    ctx->book.lease != 0 || ctx->request->method != NGX_HTTP_POST)
		return;
	request_make(ctx, &r);
	booking_plain(&ctx->book, kvroute_taken_peer(ctx), &r, now);
}
