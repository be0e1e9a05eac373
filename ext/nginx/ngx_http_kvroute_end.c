/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_end.c - how a request ended, and the report of the engine;
 * evidence for the health of its server.
 *
 * If the region's lock is held, the write is queued and retried every few
 * milliseconds: a lease that is not ended would count as load until it expires.
 */
#include "ngx_http_kvroute_end.h"

#include "answer.h"
#include "counters.h"
#include "endpoint.h"
#include "evidence.h"
#include "judge.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_peers.h"
#include "ngx_http_kvroute_time.h"
#include "reason.h"
#include "roles.h"
#include "shared.h"

/* --------------------------------------------------------------- health --- */

/*
 * Engines that are gray, that break off, and that warm up: evidence.h and
 * judge.h, fed with nginx's facts of a request.
 *
 *   peer.get     judge.h holds servers back; a request may be a probe
 *   peer.free    did it fail? broken off after its headers: nginx counts it
 *                like a failure before them, while another server is there; a
 *                status such as 500 is judged here only, and not by nginx
 *   end          evidence.h, with the report
 *
 * nginx reads a stream no faster than its client takes it, so one of a slow
 * client proves nothing.
 */

enum { CHEAP_BYTES = 16384 }; /* of the body of a probe */

void
kvroute_health_prepare(kvroute_srv_conf_t *up, ngx_log_t *log)
{
	ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;
	ngx_http_upstream_rr_peer_t *peer;
	uint64_t *keys;
	size_t n = 0;

	keys = ngx_alloc((peers->number + 1) * sizeof(*keys), log);
	if (keys == NULL)
		return;
	for (peer = peers->peer; peer != NULL && n < peers->number;
	    peer = peer->next)
		keys[n++] = shared_key(peer->name.data, peer->name.len);
	judge_prepare(&up->fleet, keys, n);
	ngx_free(keys);
}

ngx_uint_t
kvroute_health_probe(kvroute_ctx_t *ctx, int64_t now)
{
	/* Without a prompt it would show nothing. */
	if (ctx->endpoint == ENDPOINT_OTHER || ctx->tries != 1)
		return ctx->up->fleet.n_known;
	return judge_probe(&ctx->up->fleet,
	    ctx->request->headers_in.content_length_n <= CHEAP_BYTES, now);
}

void
kvroute_health_sent(kvroute_ctx_t *ctx, ngx_uint_t i, int64_t now)
{
	ngx_str_t name = kvroute_taken_name(ctx);

	evidence_sent(&ctx->up->fleet, &ctx->evidence, i, ctx->book.worker,
	    now);
	if (!ctx->evidence.due)
		return;
	ctx->evidence.name = (const char *)name.data;
	ctx->evidence.name_len = name.len;
	ctx->evidence.prompts = ctx->endpoint != ENDPOINT_OTHER;
	if (ctx->up->fleet.gray > 0 && ctx->digest == 0 && ctx->reader != NULL)
		ctx->digest = evidence_digest(ctx->reader->prompt);
}

/* More of a stream has come. */
void
kvroute_health_progress(kvroute_ctx_t *ctx)
{
	if (ctx->evidence.due && ctx->up->fleet.gray > 0 &&
	    answer_started(ctx->passing.answer))
		evidence_progress(&ctx->up->fleet, &ctx->evidence,
		    answer_events(ctx->passing.answer), ctx->book.worker,
		    kvr_clock_now(), ctx->request->connection->log);
}

/* The report is made, if there is one. Again is no error. */
static void
health_end(kvroute_ctx_t *ctx, bool taken)
{
	ngx_http_upstream_t *u = ctx->request->upstream;
	struct evidence_end how = { .worker = ctx->book.worker, .taken = taken,
	    .left = ctx->request->connection->error, .stream =
	    ctx->passing.stream, .head_ns = -1, .prompt_tokens =
	    ctx->book.decision.prompt_tokens, .overlap_tokens =
	    ctx->book.decision.overlap_tokens, .report = &ctx->passing.report };

	if (u != NULL && u->state != NULL &&
	    u->state->header_time != (ngx_msec_t)-1)
		how.head_ns = (int64_t)u->state->header_time * 1000000;
	evidence_end(&ctx->up->fleet, &ctx->evidence, &how, kvr_clock_now(),
	    ctx->request->connection->log);
}

/* After its headers: a connection that breaks, or a server that stops. */
static bool
broke_off(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	ngx_http_upstream_t *u = ctx->request->upstream;
	ngx_connection_t *c = pc->connection;
	ngx_event_pipe_t *p = u->pipe;

	/* One that was upgraded may be idle. */
	if (!ctx->headers || u->upgrade || c == NULL ||
	    ctx->request->connection->error)
		return false;
	if (c->read->timedout)
		return true;
	if (u->buffering && p != NULL)
		return p->upstream_error || (p->upstream_eof &&
		    !p->upstream_done && p->length > 0);
	return c->read->error || (c->read->eof && u->length > 0);
}

/*
 * The outcome that nginx is to count for the request that has ended. The last
 * server that is usable does not become unusable, and none does by one prompt
 * that no server can answer: where gray servers are judged, a status is
 * evidence for that, and not for nginx.
 */
ngx_uint_t
kvroute_health_free(kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc, ngx_uint_t state)
{
	ngx_uint_t status = ctx->request->upstream->headers_in.status_n;
	bool broke = (state & NGX_PEER_FAILED) == 0 && broke_off(ctx, pc);
	bool refuses = evidence_is_refusal((unsigned)status);
	struct evidence *e = &ctx->evidence;

	e->failed = (state & NGX_PEER_FAILED) != 0 || broke ||
	    (!ctx->headers && refuses && !ctx->request->connection->error);
	e->answered = status > 0;
	/* Without the request's pool, at its end, they cannot be computed. */
	if (e->failed && e->due && ctx->up->fleet.gray > 0) {
		e->failed_prompt = kvroute_digest_of(ctx);
		e->failed_client = kvroute_client_of(ctx);
	}
	if (broke) {
		shared_count(ctx->up->fleet.shared, COUNT_BROKEN, 1);
		if (kvroute_another_usable(ctx))
			state |= NGX_PEER_FAILED;
	}
	if (e->due && ctx->up->fleet.gray > 0 && refuses && !broke &&
	    (state & NGX_PEER_FAILED) != 0)
		state = (state & ~(ngx_uint_t)NGX_PEER_FAILED) | NGX_PEER_NEXT;
	e->cools = (state & NGX_PEER_FAILED) != 0;
	return state;
}

/* ------------------------------------------------------------------ end --- */

enum { LATE_MS = 5 };

/* Tries refused writes again. */
void
kvroute_late_look(kvroute_srv_conf_t *up)
{
	if (up->writes.n > 0 && !up->late.timer_set)
		ngx_add_timer(&up->late, LATE_MS);
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
	health_end(ctx, taken);
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
	(void)writes_do(&ctx->up->writes, &write, kvr_clock_now());
	kvroute_late_look(ctx->up);
}
