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
#include "ngx_http_kvroute_body.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_reader.h"
#include "ngx_http_kvroute_share.h"
#include "ngx_http_kvroute_shared.h"
#include "ngx_http_kvroute_table.h"
#include "ngx_http_kvroute_trace.h"
#include "ngx_http_kvroute_try.h"
#include "reason.h"

/* Appends the workers of one peer, whose ids are known, to the n there are. */
static ngx_uint_t
allowed_add(ngx_http_kvroute_srv_conf_t *up,
    const ngx_http_kvroute_known_t *known, ngx_uint_t n, bool *missing)
{
	uint32_t rank;

	for (rank = 0; rank < known->ranks; rank++) {
		if (known->ids[rank] != 0)
			up->allowed[n++] = known->ids[rank];
		else
			*missing = true;
	}
	return n;
}

/* Of the first peers those that are held back only if there is no other. */
static ngx_uint_t
allowed_first(ngx_http_kvroute_srv_conf_t *up, bool *missing)
{
	ngx_uint_t i, n = 0;
	int held;

	for (held = 0; held <= 1 && n == 0 && !*missing; held++)
		for (i = 0; i < up->n_first; i++)
			if (up->known[i].usable && up->known[i].held == held)
				n = allowed_add(up, &up->known[i], n, missing);
	return n;
}

/*
 * Collects the usable workers in up->allowed and returns their number. A worker
 * is left out if its lookup found the lock held.
 */
static ngx_uint_t
allowed_list(ngx_http_kvroute_srv_conf_t *up, bool *missing)
{
	ngx_uint_t i, n;

	*missing = false;
	n = allowed_first(up, missing);
	for (i = up->n_first; i < up->n_peers; i++) {
		if (i == up->n_first && (n > 0 || *missing))
			break;
		if (up->known[i].usable)
			n = allowed_add(up, &up->known[i], n, missing);
	}
	return n;
}

static void
request_make(ngx_http_kvroute_ctx_t *ctx, struct kvr_request *request)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(
	    ctx->request, ngx_http_upstream_kvroute_module);

	(void)kvr_request_init(request, sizeof(*request));
	request->owner = ctx->up->owners.self;
	request->flags = KVR_NOWAIT |
	    (ctx->facts.stream ? 0 : KVR_NO_FIRST_TOKEN);
	request->share = ngx_http_kvroute_share_of(ctx);
	/* A probe says nothing of where its session is. */
	if (ctx->session == 0 || ctx->probe)
		return;
	request->affinity = ctx->session;
	request->affinity_mode = loc->affinity_mode;
	request->affinity_ttl = (int64_t)loc->affinity_ttl * 1000000;
}

static enum reason
reason_of(int error)
{
	switch (error) {
	case KVR_EBUSY:
		return REASON_BUSY;
	case KVR_ENOWORKER:
	case KVR_EALLOVERLOADED:
		return REASON_NO_WORKER;
	default:
		return REASON_FAILED;
	}
}

/* The best usable worker; booked unless this is only a query. */
static int
worker_ask(ngx_http_kvroute_ctx_t *ctx, int64_t now, bool book)
{
	struct kvr_prompt *prompt;
	struct kvr_decision *d = &ctx->decision;
	struct kvr_request request;
	bool missing;
	ngx_uint_t n = allowed_list(ctx->up, &missing);
	int error;

	if (n == 0)
		return missing ? KVR_EBUSY : KVR_ENOWORKER;
	if (!ngx_http_kvroute_prompt_make(ctx))
		return KVR_ENOMEM;
	prompt = ctx->reader->prompt;
	error = kvr_prompt_allow(prompt, ctx->up->allowed, n);
	if (error != KVR_OK)
		return error;
	request_make(ctx, &request);
	d->size = sizeof(*d);
	return book ? kvr_lease_open(ctx->up->kvr, prompt, &request, now, d) :
	    kvr_route(ctx->up->kvr, prompt, &request, now, d);
}

bool
ngx_http_kvroute_choose(ngx_http_kvroute_ctx_t *ctx, int64_t now, bool book)
{
	int error = worker_ask(ctx, now, book);

	if (error != KVR_OK) {
		ctx->reason = reason_of(error);
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
	request_make(ctx, &request);
	d->size = sizeof(*d);
	if (kvr_lease_open_on(ctx->up->kvr, ctx->reader->prompt, &request,
	    ctx->worker, now, d) != KVR_OK)
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

	ngx_http_kvroute_count(up, COUNT_SHADOW, 1);
	if (wanted->worker == taken->worker)
		ngx_http_kvroute_count(up, COUNT_SHADOW_SAME, 1);
	ngx_http_kvroute_count(up, COUNT_SHADOW_BLOCKS, wanted->prompt_blocks);
	ngx_http_kvroute_count(up, COUNT_SHADOW_WANTED, wanted->overlap_blocks);
	ngx_http_kvroute_count(up, COUNT_SHADOW_TAKEN, taken->overlap_blocks);
}

/*
 * Books the request on the worker that was used. Which of an engine's ranks
 * that was, it does not tell: the best of them, as if it had been asked for.
 */
static int
taken_open(ngx_http_kvroute_ctx_t *ctx, int64_t now, struct kvr_decision *d)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	struct kvr_prompt *prompt = ctx->reader->prompt;
	ngx_uint_t i = ngx_http_kvroute_taken_peer(ctx), n;
	struct kvr_request request;
	bool missing = false;
	int error;

	if (i == up->n_peers)
		return KVR_EWORKER;
	request_make(ctx, &request);
	d->size = sizeof(*d);
	if (up->known[i].ranks == 1)
		return kvr_lease_open_on(up->kvr, prompt, &request,
		    up->known[i].ids[0], now, d);
	n = allowed_add(up, &up->known[i], 0, &missing);
	if (n == 0)
		return KVR_EBUSY;
	error = kvr_prompt_allow(prompt, up->allowed, n);
	return error != KVR_OK ? error :
	    kvr_lease_open(up->kvr, prompt, &request, now, d);
}

/* Records the request on the worker that was used, as if chosen. */
void
ngx_http_kvroute_shadow_book(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_decision d;
	int error = taken_open(ctx, now, &d);

	if (error != KVR_OK) {
		ctx->reason = reason_of(error);
		return;
	}
	shadow_count(ctx, &d);
	ctx->lease = d.lease;
	/* The report is compared with the prediction for that worker. */
	ctx->decision.overlap_tokens = d.overlap_tokens;
}
