/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_end.c - how a request ended, and the report of the engine.
 *
 * If the region's lock is held, the write is queued and retried every few
 * milliseconds: a lease that is not ended would count as load until it expires.
 */
#include "ngx_http_kvroute_end.h"

#include "endpoint.h"
#include "evidence.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_health.h"
#include "ngx_http_kvroute_time.h"
#include "reason.h"
#include "roles.h"
#include "shared.h"

enum { LATE_MS = 5 };

/* Tries refused writes again. */
void
kvroute_late_look(kvroute_srv_conf_t *up)
{
	if (up->writes.n > 0 && !up->late.timer_set)
		ngx_add_timer(&up->late, LATE_MS);
}

int
kvroute_write(kvroute_srv_conf_t *up, const struct write_due *write)
{
	int error = writes_do(&up->writes, write, kvr_clock_now());

	kvroute_late_look(up);
	return error;
}

void
kvroute_late_run(ngx_event_t *event)
{
	kvroute_srv_conf_t *up = event->data;
	int64_t began = kvr_clock_now();

	if (!writes_run(&up->writes, began) && !event->timer_set)
		ngx_add_timer(event, LATE_MS);
	(void)kvroute_spent(up, began);
}

/* The client or the engine closed before the response was complete. */
static bool
is_broken(kvroute_ctx_t *ctx)
{
	ngx_http_upstream_t *u = ctx->request->upstream;

	return ctx->request->connection->error || (ctx->ending && !ctx->last) ||
	    (u != NULL && !u->buffering && u->length > 0);
}

static void
report_make(kvroute_ctx_t *ctx)
{
	const struct passing_way way = { .endpoint = ctx->endpoint,
	    .facts = &ctx->facts, .decision = &ctx->book.decision,
	    .proves = ctx->tries <= 1 && !ctx->book.late && !is_broken(ctx) &&
	    ctx->opinion == REASON_COST,
	    .apart = ctx->book.prefill_length > 0, .now = kvr_clock_now() };

	passing_report(&ctx->passing, &way, ctx->up->fleet.shared);
}

static struct kvr_prompt *
prompt_extend(kvroute_ctx_t *ctx)
{
	kvroute_loc_conf_t *loc = kvroute_loc(ctx->request);

	return passing_end(&ctx->passing, ctx->up->spares, ctx->up->fleet.kvr,
	    loc->reasoning == KVROUTE_KEEP, !is_broken(ctx),
	    ctx->up->fleet.shared);
}

void
kvroute_prefill_end(kvroute_ctx_t *ctx, bool taken)
{
	booking_prefill_end(&ctx->book, taken, kvr_clock_now());
	kvroute_late_look(ctx->up);
}

/* An error of the engine that decodes may be of the one that prefills. */
static void
prefill_failed(kvroute_ctx_t *ctx)
{
	ngx_http_upstream_t *u = ctx->request->upstream;

	if (ctx->book.prefill != 0 && u != NULL &&
	    evidence_is_refusal((unsigned)u->headers_in.status_n))
		roles_failed(&ctx->up->fleet, ctx->book.prefill_name,
		    ctx->book.prefill_length, kvr_clock_now());
}

/* Ends the current lease; without one it does nothing. */
void
kvroute_end(kvroute_ctx_t *ctx, bool taken)
{
	struct write_due write = { .kind = taken ? WRITE_FINISH : WRITE_ABORT,
	    .id = ctx->book.lease };

	if (taken && !ctx->passing.reported)
		report_make(ctx);
	kvroute_health_end(ctx, taken);
	if (!taken)
		prefill_failed(ctx);
	kvroute_prefill_end(ctx, taken);
	if (ctx->book.lease == 0)
		return;
	write.report = ctx->passing.report;
	if (taken)
		write.prompt = prompt_extend(ctx);
	ctx->book.lease = 0;
	if (!taken)
		shared_count(ctx->up->fleet.shared, COUNT_ABORTS, 1);
	(void)kvroute_write(ctx->up, &write);
}
