/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_session.c - keys of sessions, and state that one engine
 * keeps.
 *
 * A SESSION is named by the first value of kvroute_affinity that is not empty.
 * Its digest goes with the request into the library's choice, see
 * kvr_affinity(3). It is a hint: it isolates nothing and is in no scope.
 *
 * STATE is an answer or a conversation that an engine keeps and clients name by
 * its id. Only that engine can go on from it, so this is no matter of cost:
 *
 *   answer passes      id -> its worker, kvr_affinity_bind     | answer.c
 *   previous_response_id, conversation, or an id in the path
 *     bound            that worker, also if it is drained
 *     worker gone, or down
 *                      reason state_lost: the least loaded one, whose engine
 *                      says in its own words that it does not know the id
 *     worker full, or failed, or the lock is held
 *                      reason state_busy: refused, since any other engine would
 *                      say for good that there is no such id
 *     not bound        as if there were no id
 *   accepted           the binding is made anew: it lives on while it is used;
 *                      or it ends, if the request was to delete the id
 *
 * All of it is within the tenant, the value of kvroute_scope: no tenant
 * reaches what another has named.
 */
#include "ngx_http_kvroute_session.h"

#include "answer.h"
#include "body.h"
#include "counters.h"
#include "endpoint.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_end.h"
#include "ngx_http_kvroute_look.h"
#include "ngx_http_kvroute_shared.h"
#include "ngx_http_kvroute_table.h"
#include "ngx_http_kvroute_try.h"
#include "reason.h"
#include "session_key.h"
#include "usage.h"

enum {
	TRIES = 4, /* of a lookup that finds writers in the way */
	ENDED_NS = 1000000 /* as short as a binding can be */
};

/* --------------------------------------------------------- of a request --- */

static uint64_t
key_make(ngx_http_kvroute_ctx_t *ctx, enum session_kind kind, const void *id,
    size_t n)
{
	return session_key(ctx->up->kvr, ctx->tenant.data, ctx->tenant.len,
	    kind, id, n);
}

/* The first value that is a key. */
static void
key_find(ngx_http_kvroute_ctx_t *ctx, const ngx_array_t *values)
{
	ngx_http_complex_value_t *value = values->elts;
	ngx_str_t text;
	ngx_uint_t i;

	for (i = 0; i < values->nelts && ctx->session == 0; i++) {
		if (ngx_http_complex_value(ctx->request, &value[i], &text) ==
		    NGX_OK)
			ctx->session = key_make(ctx, SESSION_KEY, text.data,
			    text.len);
	}
}

static void
state_read(ngx_http_kvroute_ctx_t *ctx)
{
	const ngx_str_t *uri = &ctx->request->uri;
	const ngx_str_t *previous = &ctx->body_ids[BODY_PREVIOUS];
	const ngx_str_t *conversation = &ctx->body_ids[BODY_CONVERSATION];
	bool post = ctx->request->method == NGX_HTTP_POST;
	struct session_path path;

	if (ctx->endpoint == ENDPOINT_RESPONSES) {
		ctx->binds = SESSION_RESPONSE;
		ctx->state = previous->len > 0 ?
		    key_make(ctx, SESSION_RESPONSE, previous->data,
		    previous->len) : key_make(ctx, SESSION_CONVERSATION,
		    conversation->data, conversation->len);
	} else if (session_path((const char *)uri->data, uri->len, post,
	    &path)) {
		if (path.length == 0) {
			ctx->binds = SESSION_CONVERSATION;
			return;
		}
		ctx->state = key_make(ctx, path.kind, path.id, path.length);
		/* not an item of it */
		ctx->ends = ctx->request->method == NGX_HTTP_DELETE &&
		    path.id + path.length == (const char *)uri->data + uri->len;
	}
}

void
ngx_http_kvroute_session_read(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(
	    ctx->request, ngx_http_upstream_kvroute_module);

	/* A mirrored request would move the session of its request. */
	if (ctx->request != ctx->request->main)
		return;
	if (ctx->up->kvr == NULL || ctx->opinion == REASON_BYPASS ||
	    (loc->scope != NULL && ngx_http_complex_value(ctx->request,
	    loc->scope, &ctx->tenant) != NGX_OK))
		return;
	if (loc->affinity != NULL && ctx->opinion == REASON_COST)
		key_find(ctx, loc->affinity);
	if (loc->responses_ttl > 0 && loc->feedback)
		state_read(ctx);
}

/* ----------------------------------------------------------- the choice --- */

static void
state_lost(ngx_http_kvroute_ctx_t *ctx, enum kvr_affinity_outcome how)
{
	ctx->worker = 0;
	ctx->reason = REASON_STATE_LOST;
	ctx->affinity = how;
	ctx->bound_held = false; /* that is of its session */
}

void
ngx_http_kvroute_session_busy(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t i)
{
	ctx->wait.wants = i < ctx->up->n_peers ? ctx->up->known[i].key : 0;
	ctx->wait.wants_at = i;
	ctx->worker = 0;
	ctx->reason = REASON_STATE_BUSY;
	ctx->affinity = KVR_AFFINITY_NONE;
}

/* Ids that may be new: their lookup found the lock held. */
static bool
ids_missing(const ngx_http_kvroute_srv_conf_t *up)
{
	ngx_uint_t i;

	for (i = 0; i < up->n_peers; i++) {
		if (up->known[i].due > 0)
			return true;
	}
	return false;
}

/* A backup is not for use while a first peer is. */
static bool
kept_back(const ngx_http_kvroute_srv_conf_t *up, ngx_uint_t i)
{
	ngx_uint_t j;

	for (j = 0; i >= up->n_first && j < up->n_first; j++) {
		if (up->known[j].usable)
			return true;
	}
	return false;
}

/* Its worker, and that one's position in up->known; n_peers: it has none. */
static int
bound_look(ngx_http_kvroute_ctx_t *ctx, int64_t now, uint64_t *worker,
    ngx_uint_t *place)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	uint32_t rank;
	int error = kvr_affinity_find(up->kvr, ctx->state, now, worker);

	if (error != KVR_OK)
		return error;
	*place = ngx_http_kvroute_peer_of(up, *worker, &rank);
	if (*place < up->n_peers || !ids_missing(up))
		return KVR_OK;
	ngx_http_kvroute_peers_look(ctx);
	return KVR_EBUSY;
}

/* No turn of the loop may wait for a writer, so it is asked again at once. */
static int
bound_find(ngx_http_kvroute_ctx_t *ctx, int64_t now, uint64_t *worker,
    ngx_uint_t *place)
{
	int error = KVR_EBUSY, i;

	for (i = 0; i < TRIES && error == KVR_EBUSY; i++)
		error = bound_look(ctx, now, worker, place);
	return error;
}

bool
ngx_http_kvroute_session_find(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	ngx_uint_t i = up->n_peers;
	uint64_t worker = 0;
	int error;

	if (ctx->state == 0)
		return false;
	error = bound_find(ctx, now, &worker, &i);
	if (error == KVR_EWORKER) {
		state_lost(ctx, KVR_AFFINITY_GONE);
	} else if (error == KVR_EBUSY) {
		ngx_http_kvroute_session_busy(ctx, up->n_peers);
	} else if (error != KVR_OK) {
		ctx->affinity = KVR_AFFINITY_NEW;
		return false;
	} else if (i == up->n_peers || up->known[i].down || kept_back(up, i)) {
		state_lost(ctx, KVR_AFFINITY_MOVED);
	} else if (!up->known[i].usable) {
		ngx_http_kvroute_session_busy(ctx, i);
	} else {
		ctx->worker = worker;
		ctx->reason = REASON_AFFINITY;
		ctx->affinity = KVR_AFFINITY_HIT;
	}
	return true;
}

void
ngx_http_kvroute_session_count(ngx_http_kvroute_ctx_t *ctx)
{
	if (ctx->affinity != KVR_AFFINITY_NONE)
		ngx_http_kvroute_count(ctx->up, COUNT_AFFINITY +
		    ctx->affinity - KVR_AFFINITY_HIT, 1);
	if (ctx->affinity == KVR_AFFINITY_MOVED && ctx->bound_held)
		ngx_http_kvroute_count(ctx->up, COUNT_AFFINITY_GRAY, 1);
}

/* -------------------------------------------------------------- binding --- */

/* Of one that waits to be bound, the end waits too. */
static bool
is_unbound(ngx_http_kvroute_ctx_t *ctx, uint64_t digest)
{
	uint64_t worker;

	return ctx->up->late.binds == 0 && kvr_affinity_find(ctx->up->kvr,
	    digest, kvr_clock_now(), &worker) == KVR_EUNBOUND;
}

/* False: it is not. */
static bool
state_bind(ngx_http_kvroute_ctx_t *ctx, uint64_t digest, bool ends)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(
	    ctx->request, ngx_http_upstream_kvroute_module);
	ngx_http_kvroute_late_t write;
	int error;

	ngx_memzero(&write, sizeof(write));
	write.what = NGX_HTTP_KVROUTE_BIND;
	write.id = ngx_http_kvroute_taken_worker(ctx, digest);
	write.digest = digest;
	write.ttl = (int64_t)loc->responses_ttl * 1000000;
	if (digest == 0 || write.id == 0 || write.ttl == 0 ||
	    (ends && is_unbound(ctx, digest)))
		return false;
	if (ends)
		write.ttl = ENDED_NS;
	error = ngx_http_kvroute_write(ctx->up, &write);
	return error == KVR_OK || error == KVR_EBUSY;
}

/* What it continues is there, or the engine would have said that it is not. */
void
ngx_http_kvroute_session_accepted(ngx_http_kvroute_ctx_t *ctx)
{
	if (ctx->state != 0)
		(void)state_bind(ctx, ctx->state, ctx->ends);
}

/* Before these bytes reach the client: its next request may come at once. */
void
ngx_http_kvroute_session_answered(ngx_http_kvroute_ctx_t *ctx)
{
	enum session_kind kind;
	const char *id;
	ngx_uint_t i;
	size_t n;

	for (i = 0; ctx->binds != 0 && i < OBJECT_IDS; i++) {
		if ((ctx->bound >> i & 1) != 0 ||
		    !answer_id(ctx->answer, (enum object_id)i, &id, &n))
			continue;
		ctx->bound |= 1u << i;
		kind = i == OBJECT_ID ? ctx->binds : SESSION_CONVERSATION;
		if (kind == SESSION_RESPONSE && ctx->facts.unstored)
			continue;
		if (state_bind(ctx, key_make(ctx, kind, id, n), false))
			ngx_http_kvroute_count(ctx->up, COUNT_BOUND, 1);
	}
}
