/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_end.c - how a request ended, and what the engine reported.
 *
 * If the region's lock is held, the write is queued and retried every few
 * milliseconds: a lease that is not ended would count as load until it expires.
 */
#include "ngx_http_kvroute_end.h"

#include "answer.h"
#include "counters.h"
#include "endpoint.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_extend.h"
#include "ngx_http_kvroute_health.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_shared.h"
#include "ngx_http_kvroute_time.h"
#include "ngx_http_kvroute_workers.h"

/* Leases that are open bound the other writes, but there is no lease here. */
enum { LATE_MS = 5, LATE_BINDS = 512 };

/* Only of a held lock is there more to do. */
static int
late_finish(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_late_t *late,
    int64_t now)
{
	if (late->prompt != NULL) {
		if (ngx_http_kvroute_extend(up, late->id, late->prompt, now) ==
		    KVR_EBUSY)
			return KVR_EBUSY;
		ngx_http_kvroute_prompt_put(up, late->prompt);
		late->prompt = NULL;
	}
	return kvr_lease_finish(up->kvr, late->id, &late->report, now,
	    KVR_NOWAIT);
}

static int
late_try(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_late_t *late)
{
	int64_t now = kvr_clock_now();
	uint64_t id;
	int error;

	switch (late->what) {
	case NGX_HTTP_KVROUTE_FINISH:
		return late_finish(up, late, now);
	case NGX_HTTP_KVROUTE_ABORT:
		return kvr_lease_abort(up->kvr, late->id, now, KVR_NOWAIT);
	case NGX_HTTP_KVROUTE_BIND:
		return kvr_affinity_bind(up->kvr, late->digest, late->id,
		    late->ttl, now, KVR_NOWAIT);
	default:
		error = kvr_worker_reset(up->kvr, late->id, &id);
		if (error == KVR_OK)
			ngx_http_kvroute_workers_changed(up);
		return error;
	}
}

static void
late_keep(ngx_http_kvroute_srv_conf_t *up, const ngx_http_kvroute_late_t *of)
{
	const bool binds = of->what == NGX_HTTP_KVROUTE_BIND;
	ngx_http_kvroute_late_t *late;

	if (binds && up->late.binds == LATE_BINDS)
		return;
	late = ngx_alloc(sizeof(*late), up->late.timer.log);
	if (late == NULL) {
		if (!binds)
			ngx_http_kvroute_count(up, COUNT_LOST, 1);
		ngx_http_kvroute_prompt_put(up, of->prompt);
		return;
	}
	up->late.binds += binds;
	*late = *of;
	ngx_queue_insert_tail(&up->late.queue, &late->queue);
	ngx_http_kvroute_count(up, COUNT_DELAYED, 1);
	if (!up->late.timer.timer_set)
		ngx_add_timer(&up->late.timer, LATE_MS);
}

int
ngx_http_kvroute_write(ngx_http_kvroute_srv_conf_t *up,
    ngx_http_kvroute_late_t *write)
{
	/* A binding that waits must not replace a later one. */
	const bool behind = write->what == NGX_HTTP_KVROUTE_BIND &&
	    up->late.binds > 0 && !ngx_http_kvroute_late_write(up);
	int error = behind ? KVR_EBUSY : late_try(up, write);

	if (error == KVR_EBUSY)
		late_keep(up, write);
	return error;
}

/* Returns false if the lock is held and some writes still wait. */
bool
ngx_http_kvroute_late_write(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_late_t *late;
	ngx_queue_t *q;

	while (!ngx_queue_empty(&up->late.queue)) {
		q = ngx_queue_head(&up->late.queue);
		late = ngx_queue_data(q, ngx_http_kvroute_late_t, queue);
		if (late_try(up, late) == KVR_EBUSY)
			return false;
		ngx_queue_remove(q);
		up->late.binds -= late->what == NGX_HTTP_KVROUTE_BIND;
		ngx_free(late);
	}
	return true;
}

void
ngx_http_kvroute_late_run(ngx_event_t *event)
{
	ngx_http_kvroute_srv_conf_t *up = event->data;
	int64_t began = kvr_clock_now();

	if (!ngx_http_kvroute_late_write(up) && !event->timer_set)
		ngx_add_timer(event, LATE_MS);
	(void)ngx_http_kvroute_spent(up, began);
}

/* Compares the reported number of cached tokens with the prediction. */
static void
values_count(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	struct kvr_report *report = &ctx->report;
	double scale;

	ngx_http_kvroute_count(up, COUNT_VALUES, 1);
	ngx_http_kvroute_count(up, COUNT_PROMPT_TOKENS, report->prompt_tokens);
	ngx_http_kvroute_count(up, COUNT_CACHED_TOKENS, report->cached_tokens);
	if (ctx->decision.prompt_tokens == 0)
		return;
	/* The index estimates tokens from bytes; the engine counts them. */
	scale = (double)report->prompt_tokens /
	    (double)ctx->decision.prompt_tokens;
	ngx_http_kvroute_count(up, COUNT_PREDICTED_TOKENS,
	    (double)ctx->decision.overlap_tokens * scale);
	ngx_http_kvroute_count(up, COUNT_BEST_TOKENS,
	    (double)ctx->decision.best_tokens * scale);
}

/* The client or the engine closed before the response was complete. */
static bool
is_broken(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_upstream_t *u = ctx->request->upstream;

	return ctx->request->connection->error || (ctx->ending && !ctx->last) ||
	    (u != NULL && !u->buffering && u->length > 0);
}

static void
report_make(ngx_http_kvroute_ctx_t *ctx)
{
	struct kvr_report *report = &ctx->report;

	ctx->reported = true;
	ngx_memzero(report, sizeof(*report));
	report->size = sizeof(*report);
	report->endpoint = (uint32_t)ctx->endpoint;
	if (ctx->endpoint == ENDPOINT_OTHER)
		return;
	if (ctx->answer != NULL)
		answer_end(ctx->answer, report);
	ngx_http_kvroute_tokens_timed(ctx);
	if (ctx->tries > 1 || ctx->facts.several || ctx->facts.media ||
	    ctx->facts.prompt_logprobs || ctx->facts.stored ||
	    ctx->facts.cut || is_broken(ctx))
		report->flags |= KVR_REPORT_NO_EVIDENCE;
	if (report->kind == KVR_REPORT_NONE) {
		ngx_http_kvroute_count(ctx->up, COUNT_MISSING, 1);
		return;
	}
	ngx_http_kvroute_count(ctx->up, COUNT_USAGES, 1);
	if (report->kind == KVR_REPORT_VALUE)
		values_count(ctx);
}

/* Ends the current lease; without one it does nothing. */
void
ngx_http_kvroute_end(ngx_http_kvroute_ctx_t *ctx, bool taken)
{
	ngx_http_kvroute_late_t write;

	if (taken && !ctx->reported)
		report_make(ctx);
	ngx_http_kvroute_health_end(ctx, taken);
	if (ctx->lease == 0)
		return;
	ngx_memzero(&write, sizeof(write));
	write.what = taken ? NGX_HTTP_KVROUTE_FINISH : NGX_HTTP_KVROUTE_ABORT;
	write.id = ctx->lease;
	write.report = ctx->report;
	if (taken)
		write.prompt = ngx_http_kvroute_extend_end(ctx,
		    !is_broken(ctx));
	ctx->lease = 0;
	if (!taken)
		ngx_http_kvroute_count(ctx->up, COUNT_ABORTS, 1);
	(void)ngx_http_kvroute_write(ctx->up, &write);
}
