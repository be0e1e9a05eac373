/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_choose.c - asks the library for the best worker among those
 * of usable peers, and books the request there.
 *
 * Nothing here waits for the region's lock: if it is held, the request is
 * routed without a prediction.
 */
#include "ngx_http_kvroute_choose.h"

#include "counters.h"
#include "members.h"
#include "ngx_http_kvroute_body.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_end.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_share.h"
#include "ngx_http_kvroute_trace.h"
#include "ngx_http_kvroute_try.h"
#include "reason.h"
#include "shared.h"

void
ngx_http_kvroute_request_make(ngx_http_kvroute_ctx_t *ctx,
    struct kvr_request *request)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_kvroute_loc(ctx->request);

	(void)kvr_request_init(request, sizeof(*request));
	request->owner = ctx->up->owners.seen.self;
	request->flags = KVR_NOWAIT |
	    (ctx->facts.stream ? 0 : KVR_NO_FIRST_TOKEN);
	request->share = ngx_http_kvroute_share_of(ctx);
	/* A probe is no evidence of where its session is. */
	if (ctx->keeps.session == 0 || ctx->probe)
		return;
	request->affinity = ctx->keeps.session;
	request->affinity_mode = loc->affinity_mode;
	request->affinity_ttl = loc->affinity_ttl;
}

/* The best usable worker; booked unless this is only a query. */
static int
worker_ask(ngx_http_kvroute_ctx_t *ctx, int64_t now, bool book)
{
	struct kvr_prompt *prompt;
	struct kvr_decision *d = &ctx->decision;
	struct kvr_request request;
	bool missing;
	ngx_uint_t n = members_allow(&ctx->up->fleet, &missing);
	int error;

	if (n == 0)
		return missing ? KVR_EBUSY : KVR_ENOWORKER;
	if (!ngx_http_kvroute_prompt_make(ctx))
		return KVR_ENOMEM;
	prompt = ctx->reader->prompt;
	error = kvr_prompt_allow(prompt, ctx->up->fleet.allowed, n);
	if (error != KVR_OK)
		return error;
	ngx_http_kvroute_request_make(ctx, &request);
	d->size = sizeof(*d);
	return book ? kvr_lease_open(ctx->up->fleet.kvr, prompt, &request, now,
	    d) : kvr_route(ctx->up->fleet.kvr, prompt, &request, now, d);
}

bool
ngx_http_kvroute_choose(ngx_http_kvroute_ctx_t *ctx, int64_t now, bool book)
{
	int error = worker_ask(ctx, now, book);

	ctx->missed = error != KVR_OK;
	if (error != KVR_OK) {
		ctx->reason = reason_of_error(error);
		return false;
	}
	ctx->lease = ctx->decision.lease;
	ctx->worker = ctx->decision.worker;
	ctx->reason = (enum reason)ctx->decision.reason;
	if (ctx->decision.affinity != KVR_AFFINITY_NONE)
		ctx->affinity = ctx->decision.affinity;
	ngx_http_kvroute_trace_keep(ctx);
	return true;
}

/* The place is given, so a lease that cannot be had changes nothing. */
void
ngx_http_kvroute_kept_book(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_decision *d = &ctx->decision;
	struct kvr_request request;

	if (ctx->opinion != REASON_COST || !ngx_http_kvroute_prompt_make(ctx))
		return;
	ngx_http_kvroute_request_make(ctx, &request);
	d->size = sizeof(*d);
	ctx->missed = kvr_lease_open_on(ctx->up->fleet.kvr, ctx->reader->prompt,
	    &request, ctx->worker, now, d) != KVR_OK;
	if (ctx->missed)
		return;
	ctx->lease = d->lease;
	ngx_http_kvroute_trace_keep(ctx);
}

/* --------------------------------------------------------------- shadow --- */

static void
shadow_count(ngx_http_kvroute_ctx_t *ctx, const struct kvr_decision *taken)
{
	const struct kvr_decision *wanted = &ctx->decision;
	ngx_http_kvroute_srv_conf_t *up = ctx->up;

	shared_count(up->fleet.shared, COUNT_SHADOW, 1);
	if (wanted->worker == taken->worker)
		shared_count(up->fleet.shared, COUNT_SHADOW_SAME, 1);
	shared_count(up->fleet.shared, COUNT_SHADOW_BLOCKS,
	    wanted->prompt_blocks);
	shared_count(up->fleet.shared, COUNT_SHADOW_WANTED,
	    wanted->overlap_blocks);
	shared_count(up->fleet.shared, COUNT_SHADOW_TAKEN,
	    taken->overlap_blocks);
}

/*
 * Books the request on the worker that was used. The engine does not report its
 * rank: the best of them, as if it had been asked for.
 */
static int
taken_open(ngx_http_kvroute_ctx_t *ctx, struct kvr_prompt *prompt, int64_t now,
    struct kvr_decision *d)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	ngx_uint_t i = ngx_http_kvroute_taken_peer(ctx), n;
	struct kvr_request request;
	bool missing = false;
	int error;

	if (i == up->fleet.n_known)
		return KVR_EWORKER;
	ngx_http_kvroute_request_make(ctx, &request);
	d->size = sizeof(*d);
	if (up->fleet.known[i].ranks == 1)
		return kvr_lease_open_on(up->fleet.kvr, prompt, &request,
		    up->fleet.known[i].ids[0], now, d);
	n = members_allow_one(&up->fleet, i, &missing);
	if (n == 0)
		return KVR_EBUSY;
	error = kvr_prompt_allow(prompt, up->fleet.allowed, n);
	return error != KVR_OK ? error :
	    kvr_lease_open(up->fleet.kvr, prompt, &request, now, d);
}

/* The same of a server that nginx asks for: its best rank is chosen. */
void
ngx_http_kvroute_taken_book(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	struct kvr_decision *d = &ctx->decision;
	ngx_uint_t i;
	uint32_t rank;

	if (ctx->opinion != REASON_COST || !ngx_http_kvroute_prompt_make(ctx))
		return;
	ctx->missed = taken_open(ctx, ctx->reader->prompt, now, d) != KVR_OK;
	if (ctx->missed)
		return;
	ctx->lease = d->lease;
	ctx->worker = d->worker;
	ctx->reason = REASON_AFFINITY;
	i = known_of_worker(&up->fleet, ctx->worker, &rank);
	if (i < up->fleet.n_known && up->fleet.known[i].named)
		ctx->rank = (ngx_int_t)rank;
	ngx_http_kvroute_trace_keep(ctx);
}

/* Records the request on the worker that was used, as if chosen. */
void
ngx_http_kvroute_shadow_book(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_decision d;
	int error = taken_open(ctx, ctx->reader->prompt, now, &d);

	ctx->missed = error != KVR_OK;
	if (error != KVR_OK) {
		ctx->reason = reason_of_error(error);
		return;
	}
	shadow_count(ctx, &d);
	ctx->lease = d.lease;
	/* The report is compared with the prediction for that worker. */
	ctx->decision.overlap_tokens = d.overlap_tokens;
}

/* ----------------------------------------------------------------- late --- */

/* The lock is held still: only the prompt is recorded, by a timer. */
static void
prompt_observe(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t i)
{
	struct known *known = &ctx->up->fleet.known[i];
	struct write_due write = { .kind = WRITE_RECORD, .id = known->ids[0],
	    .prompt = ctx->reader->prompt, .name = known->name,
	    .name_len = known->name_len };

	ctx->reader->prompt = NULL;
	(void)ngx_http_kvroute_write(ctx->up, &write);
}

/*
 * The engine has the prompt, so the next turn will find it there. If it chose
 * the rank, that is unknown.
 */
void
ngx_http_kvroute_late_book(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	ngx_uint_t i = ngx_http_kvroute_taken_peer(ctx);
	struct kvr_decision d;
	int error;

	if (!ctx->missed || ctx->lease != 0 || ctx->opinion != REASON_COST ||
	    ctx->reader == NULL || ctx->reader->prompt == NULL ||
	    i == ctx->up->fleet.n_known || ctx->up->fleet.known[i].ranks != 1)
		return;
	ctx->missed = false;
	error = ctx->up->fleet.known[i].ids[0] == 0 ? KVR_EBUSY :
	    taken_open(ctx, ctx->reader->prompt, now, &d);
	if (error == KVR_OK)
		ctx->lease = d.lease;
	else if (error == KVR_EBUSY)
		prompt_observe(ctx, i);
	else
		return;
	ctx->late = true;
	shared_count(ctx->up->fleet.shared, COUNT_LATE, 1);
}

/* ------------------------------------------------------- without prompt --- */

/* A prompt of one byte, which is on record nowhere. */
void
ngx_http_kvroute_other_book(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	struct kvr_prompt *prompt;
	struct kvr_decision d;

	if (up->fleet.kvr == NULL || ctx->opinion == REASON_COST ||
	    ctx->lease != 0 || ctx->request->method != NGX_HTTP_POST)
		return;
	prompt = spare_prompt(up->spares, up->fleet.kvr);
	if (prompt == NULL)
		return;
	if (kvr_prompt_begin(prompt, NULL) == KVR_OK &&
	    kvr_prompt_bytes(prompt, "", 1) == KVR_OK &&
	    kvr_prompt_end(prompt, NULL) == KVR_OK &&
	    taken_open(ctx, prompt, now, &d) == KVR_OK)
		ctx->lease = d.lease;
	spare_prompt_back(up->spares, prompt);
}
