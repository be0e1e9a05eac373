/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_session.c - keys of sessions, and state that one engine
 * keeps: see kept_state.h. A session is named by the first value of
 * kvroute_affinity that is not empty, and a tenant by kvroute_scope.
 */
#include "ngx_http_kvroute_session.h"

#include "answer.h"
#include "body.h"
#include "counters.h"
#include "endpoint.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_end.h"
#include "ngx_http_kvroute_peers.h"
#include "reason.h"
#include "session_key.h"
#include "shared.h"
#include "usage.h"

/* --------------------------------------------------------- of a request --- */

static struct kept_text
text_of(const ngx_str_t *text)
{
	return (struct kept_text){ (const char *)text->data, text->len };
}

/* The first value that is a key. */
static void
key_find(kvroute_ctx_t *ctx, const ngx_array_t *values)
{
	ngx_http_complex_value_t *value = values->elts;
	ngx_str_t text;
	ngx_uint_t i;

	for (i = 0; i < values->nelts && ctx->keeps.session == 0; i++) {
		if (ngx_http_complex_value(ctx->request, &value[i], &text) ==
		    NGX_OK)
			ctx->keeps.session = session_key(ctx->up->fleet.kvr,
			    ctx->tenant.data, ctx->tenant.len, SESSION_KEY,
			    text.data, text.len);
	}
}

static void
state_read(kvroute_ctx_t *ctx)
{
	const ngx_str_t *uri = &ctx->request->uri;
	struct session_path path;

	kept_path(&ctx->keeps, ctx->endpoint, (const char *)uri->data, uri->len,
	    ctx->request->method == NGX_HTTP_POST,
	    ctx->request->method == NGX_HTTP_DELETE, &path);
	kept_digest(&ctx->keeps, ctx->up->fleet.kvr, text_of(&ctx->tenant),
	    &path, text_of(&ctx->texts.ids[BODY_PREVIOUS]),
	    text_of(&ctx->texts.ids[BODY_CONVERSATION]));
}

void
kvroute_session_read(kvroute_ctx_t *ctx)
{
	kvroute_loc_conf_t *loc = kvroute_loc(ctx->request);

	/* A mirrored request would move the session of its request. */
	if (ctx->request != ctx->request->main)
		return;
	if (ctx->up->fleet.kvr == NULL || ctx->opinion == REASON_BYPASS ||
	    (loc->scope != NULL && ngx_http_complex_value(ctx->request,
	    loc->scope, &ctx->tenant) != NGX_OK))
		return;
	if (loc->affinity != NULL && ctx->opinion == REASON_COST)
		key_find(ctx, loc->affinity);
	if (loc->responses_ttl > 0 && loc->feedback)
		state_read(ctx);
}

/* ----------------------------------------------------------- the choice --- */

void
kvroute_session_busy(kvroute_ctx_t *ctx, ngx_uint_t i)
{
	ctx->wait.turn.wants = i < ctx->up->fleet.n_known ?
	    ctx->up->fleet.known[i].key : 0;
	ctx->wait.turn.wants_at = i;
	ctx->book.worker = 0;
	ctx->book.reason = REASON_STATE_BUSY;
	ctx->book.affinity = KVR_AFFINITY_NONE;
}

/* Ids that may be new: their lookup found the lock held. */
static bool
ids_missing(const kvroute_srv_conf_t *up)
{
	ngx_uint_t i;

	for (i = 0; i < up->fleet.n_known; i++) {
		if (up->fleet.known[i].due > 0)
			return true;
	}
	return false;
}

/* A backup is not for use while a first peer is. */
static bool
kept_back(const kvroute_srv_conf_t *up, ngx_uint_t i)
{
	ngx_uint_t j;

	for (j = 0; i >= up->fleet.n_first && j < up->fleet.n_first; j++) {
		if (up->fleet.known[j].usable)
			return true;
	}
	return false;
}

/*
 * The worker, and its position in fleet.known; n_known: it has no position. No
 * turn of the loop may wait for a writer, so it is asked again at once.
 */
static int
bound_find(kvroute_ctx_t *ctx, int64_t now, uint64_t *worker, ngx_uint_t *place)
{
	kvroute_srv_conf_t *up = ctx->up;
	int error = KVR_EBUSY, i;
	uint32_t rank;

	for (i = 0; i < KEPT_TRIES && error == KVR_EBUSY; i++) {
		error = kvr_affinity_find(up->fleet.kvr, ctx->keeps.state, now,
		    worker);
		if (error != KVR_OK)
			continue;
		*place = known_of_worker(&up->fleet, *worker, &rank);
		if (*place == up->fleet.n_known && ids_missing(up)) {
			kvroute_peers_look(ctx);
			error = KVR_EBUSY;
		}
	}
	return error;
}

bool
kvroute_session_find(kvroute_ctx_t *ctx, int64_t now)
{
	kvroute_srv_conf_t *up = ctx->up;
	ngx_uint_t i = up->fleet.n_known;
	uint64_t worker = 0;
	int error;

	if (ctx->keeps.state == 0)
		return false;
	error = bound_find(ctx, now, &worker, &i);
	ctx->book.reason = kept_verdict(error, i < up->fleet.n_known &&
	    !up->fleet.known[i].down && !kept_back(up, i),
	    i < up->fleet.n_known && (up->fleet.known[i].usable ||
	    up->fleet.known[i].spared), &ctx->book.affinity);
	if (ctx->book.reason == REASON_STATE_BUSY)
		kvroute_session_busy(ctx, i);
	else
		ctx->book.worker = ctx->book.reason == REASON_AFFINITY ? worker
		    : 0;
	if (ctx->book.reason == REASON_STATE_LOST)
		ctx->bound_held = false; /* that is of its session */
	if (ctx->book.reason == REASON_COST) {
		ctx->book.reason = ctx->opinion;
		return false;
	}
	return true;
}

/* -------------------------------------------------------------- binding --- */

/* False: it is not. */
static bool
state_bind(kvroute_ctx_t *ctx, uint64_t digest, bool ends)
{
	kvroute_loc_conf_t *loc = kvroute_loc(ctx->request);

	return kept_bind(&ctx->up->writes, digest, kvroute_taken_worker(ctx,
	    digest), loc->responses_ttl, ends, kvr_clock_now());
}

/* The response it continues is there, or the engine would have refused it. */
void
kvroute_session_accepted(kvroute_ctx_t *ctx)
{
	if (ctx->keeps.state != 0)
		(void)state_bind(ctx, ctx->keeps.state, ctx->keeps.ends);
}

/* Before these bytes reach the client: its next request may come at once. */
void
kvroute_session_answered(kvroute_ctx_t *ctx)
{
	uint64_t digest;

	while ((digest = kept_next(&ctx->keeps, ctx->passing.answer,
	    ctx->facts.unstored, ctx->up->fleet.kvr,
	    text_of(&ctx->tenant))) != 0)
		if (state_bind(ctx, digest, false))
			shared_count(ctx->up->fleet.shared, COUNT_BOUND, 1);
}
