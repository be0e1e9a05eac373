/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_peer.c - the choice, and the life of a request.
 *
 *     peer.init    body -> prompt, or the prompt of a body read before
 *     peer.get     usable peers (nginx) -> best peer (kvroute) -> take (nginx)
 *     headers      < 400: accepted; commit of a stream      | answer.c
 *     first event  first token                              | answer.c
 *     peer.free    finish with the engine's report; or abort, if the peer did
 *                  not accept the request or the status was >= 400
 *
 * peers.c has nginx's part of a choice of peers, choose.c kvroute's. Peers may
 * come and go between any two such calls: see follow.c. Requests that need the
 * state of one peer go there or, while it is busy, nowhere.
 */
#include "ngx_http_kvroute_module.h"

#include "capacities.h"
#include "counters.h"
#include "judge.h"
#include "ngx_http_kvroute_body.h"
#include "ngx_http_kvroute_choose.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_edit.h"
#include "ngx_http_kvroute_end.h"
#include "ngx_http_kvroute_follow.h"
#include "ngx_http_kvroute_module.h"
#include "ngx_http_kvroute_peers.h"
#include "ngx_http_kvroute_queue.h"
#include "ngx_http_kvroute_ranks.h"
#include "ngx_http_kvroute_server.h"
#include "ngx_http_kvroute_session.h"
#include "ngx_http_kvroute_time.h"
#include "reason.h"
#include "roles.h"
#include "shared.h"
#include "stale.h"

enum { LOOKS = 4 };

/* --------------------------------------------------------------- choice --- */

/*
 * Takes the worker. If it became unusable meanwhile, a backup may have been
 * found instead: then it is not `current`.
 */
static ngx_int_t
take_worker(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    bool *current)
{
	struct known *known = ctx->up->fleet.known;
	ngx_uint_t i;
	uint32_t rank;
	ngx_int_t rc;

	i = known_of_worker(&ctx->up->fleet, ctx->book.worker, &rank);
	rc = i < ctx->up->fleet.n_known && (known[i].usable ||
	    known[i].spared) ? kvroute_take(ctx, pc, i) : NGX_BUSY;
	*current = rc == NGX_OK && known_is_called(&known[i],
	    ctx->rrp.current->name.data, ctx->rrp.current->name.len);
	if (*current)
		ctx->rank = known[i].named ? (ngx_int_t)rank : -1;
	return rc;
}

/* Books it on its worker, perhaps its prompt on another. */
static void
split_book(kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_request r = ctx->ask;

	booking_split(&ctx->book, kvroute_taken_peer(ctx),
	    ctx->reader->prompt, &r, now);
	kvroute_late_look(ctx->up);
}

static ngx_int_t
take_best(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	const bool splits = ctx->up->parted && roles_split(&ctx->up->fleet);
	bool current;
	ngx_int_t rc;

	if (!kvroute_choose(ctx, now, !splits))
		return kvroute_take_least(ctx, pc);
	rc = take_worker(ctx, pc, &current);
	if (current && splits)
		split_book(ctx, now);
	if (current)
		return rc;
	kvroute_end(ctx, false);
	ctx->book.missed = true;
	ctx->book.worker = 0;
	ctx->book.reason = REASON_NO_WORKER;
	ctx->book.affinity = KVR_AFFINITY_NONE;
	return rc == NGX_BUSY ? kvroute_take_least(ctx, pc) : rc;
}

/*
 * Takes server i. False: none was taken; or a backup instead, where nothing is
 * booked before it has accepted the prompt.
 */
static bool
take_given(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, ngx_uint_t i,
    ngx_int_t *rc)
{
	*rc = kvroute_take(ctx, pc, i);
	if (*rc == NGX_OK && kvroute_taken_peer(ctx) == i)
		return true;
	ctx->book.missed = ctx->opinion == REASON_COST;
	if (*rc == NGX_OK && ctx->book.missed)
		ctx->book.reason = REASON_NO_WORKER;
	return false;
}

/* --------------------------------------------------------------- again --- */

/*
 * To the first rank of the server that refused another. NGX_BUSY: not now, so
 * the request goes anywhere, as after any failed try.
 */
static ngx_int_t
take_again(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	struct fleet *f = &ctx->up->fleet;
	ngx_uint_t i = kvroute_taken_peer(ctx);
	ngx_int_t rc = NGX_BUSY;

	if (i == f->n_known || !take_given(ctx, pc, i, &rc)) {
		ctx->again.rank = 0;
		return rc;
	}
	ctx->rank = 0;
	ctx->book.worker = f->known[i].ids[0];
	ctx->book.missed = ctx->book.worker == 0;
	if (ctx->book.worker != 0)
		kvroute_kept_book(ctx, now);
	return NGX_OK;
}

/* --------------------------------------------------------------- state --- */

/* To the worker that keeps the state of the request. */
static ngx_int_t
take_kept(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	bool current;
	uint32_t rank;
	ngx_int_t rc;

	if (ctx->book.reason == REASON_STATE_BUSY)
		return kvroute_take_none(ctx, pc);
	if (ctx->book.worker == 0)
		return kvroute_take_least(ctx, pc);
	rc = take_worker(ctx, pc, &current);
	if (current) {
		kvroute_kept_book(ctx, now);
		return rc;
	}
	/* A backup that was found instead is given back. */
	if (rc == NGX_OK) {
		ngx_http_upstream_free_round_robin_peer(pc, &ctx->rrp, 0);
		pc->sockaddr = NULL;
	}
	kvroute_session_busy(ctx,
	    known_of_worker(&ctx->up->fleet, ctx->book.worker, &rank));
	return kvroute_take_none(ctx, pc);
}

/* --------------------------------------------------------------- sticky --- */

/*
 * To the server that nginx's "sticky" asks for, if it is as usable as others;
 * NGX_BUSY: no such server.
 */
static ngx_int_t
take_hinted(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    int64_t now)
{
	kvroute_srv_conf_t *up = ctx->up;
	struct known *known;
	ngx_uint_t i;
	ngx_int_t rc;

	for (i = 0; i < up->fleet.n_first; i++) {
		known = &up->fleet.known[i];
		if (known->hinted && known->usable && !known->gray &&
		    !known->closed)
			break;
	}
	if (i == up->fleet.n_first)
		return NGX_BUSY;
	if (take_given(ctx, pc, i, &rc))
		kvroute_taken_book(ctx, now);
	return rc;
}

/* ---------------------------------------------------------------- probe --- */

/* To a gray server, whatever is cached; NGX_BUSY: the request is no probe. */
static ngx_int_t
take_probe(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	kvroute_srv_conf_t *up = ctx->up;
	ngx_uint_t i = kvroute_health_probe(ctx, now);
	struct known *known = &up->fleet.known[i];
	uint32_t rank;
	ngx_int_t rc;

	if (i == up->fleet.n_known)
		return NGX_BUSY;
	rank = (uint32_t)(up->fleet.turn++ % known->ranks);
	if (!take_given(ctx, pc, i, &rc))
		return rc;
	/* A probe is no evidence of where its session is. */
	ctx->ask.affinity = 0;
	ctx->book.reason = REASON_PROBE;
	ctx->book.worker = known->ids[rank];
	ctx->rank = known->named ? (ngx_int_t)rank : -1;
	ctx->book.missed = ctx->book.worker == 0;
	if (ctx->book.worker != 0)
		kvroute_kept_book(ctx, now);
	return rc;
}

/* --------------------------------------------------------------- shadow --- */

static ngx_int_t
take_shadowed(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    int64_t now)
{
	bool sure = ctx->opinion == REASON_COST &&
	    kvroute_choose(ctx, now, false);
	ngx_int_t rc = ctx->up->shadow == KVROUTE_ROUND_ROBIN ?
	    kvroute_stock_get(ctx, pc) :
	    kvroute_take_least(ctx, pc);

	if (sure && rc == NGX_OK)
		booking_shadow(&ctx->book, kvroute_taken_peer(ctx),
		    ctx->reader->prompt, &ctx->ask, now);
	return rc;
}

/* ------------------------------------------------------------ get, free --- */

/* Without a session or state that is somewhere. */
static ngx_int_t
take_any(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	ngx_int_t rc = take_hinted(ctx, pc, now);

	if (rc == NGX_BUSY)
		rc = take_probe(ctx, pc, now);
	if (rc != NGX_BUSY)
		return rc;
	return ctx->opinion == REASON_COST ? take_best(ctx, pc, now) :
	    kvroute_take_least(ctx, pc);
}

/* The peers are known. */
static ngx_int_t
take_one(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	bool chooses = ctx->up->shadow == KVROUTE_CHOOSE, found;
	ngx_int_t rc;

	waits_yield(&ctx->up->waits.line, &ctx->wait.turn, now);
	ctx->evidence.due = false;
	/* It is counted why sessions leave their servers. */
	ctx->bound_held = judge_look(&ctx->up->fleet, now) &&
	    judge_session(&ctx->up->fleet, ctx->keeps.session, now);
	if (ctx->again.conf != NULL &&
	    (rc = take_again(ctx, pc, now)) != NGX_BUSY)
		return rc;
	found = chooses && kvroute_session_find(ctx, now);
	if ((!found || ctx->book.reason == REASON_STATE_LOST) &&
	    !waits_lets(&ctx->up->waits.line, &ctx->wait.turn, now)) {
		ctx->book.reason = REASON_NO_WORKER;
		ctx->book.affinity = KVR_AFFINITY_NONE;
		return NGX_BUSY;
	}
	if (!chooses)
		return take_shadowed(ctx, pc, now);
	return found ? take_kept(ctx, pc, now) : take_any(ctx, pc, now);
}

/* Once, by the peers as they are now. */
static ngx_int_t
take_once(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, int64_t now)
{
	kvroute_srv_conf_t *up = ctx->up;

	booking_begin(&ctx->book, ctx->opinion);
	ctx->rank = -1;
	kvroute_ask_make(ctx);
	kvroute_peers_follow(up, ctx->request->connection->log);
	if (ctx->generation != up->follow.generation &&
	    !kvroute_tried_fit(ctx))
		return NGX_ERROR;
	kvroute_queue_keep(ctx);
	kvroute_peers_look(ctx);
	return take_one(ctx, pc, now);
}

/* NGX_AGAIN: the request waits, and this is called again; see queue.c. */
static ngx_int_t
peer_get(ngx_peer_connection_t *pc, void *data)
{
	kvroute_ctx_t *ctx = data;
	kvroute_srv_conf_t *up = ctx->up;
	int64_t began = kvr_clock_now();
	ngx_uint_t looks = LOOKS;
	ngx_int_t rc;

	if (ctx->wait.turn.line == NULL && ctx->tries++ > 0)
		shared_count(up->fleet.shared, COUNT_RETRIES, 1);
	do /* the peers may change meanwhile: then nginx has none */
		rc = take_once(ctx, pc, began);
	while (rc == NGX_BUSY && kvroute_peers_changed(up) &&
	    --looks > 0);
	if (rc == NGX_BUSY)
		rc = kvroute_queue_wait(ctx, pc);
	if (rc == NGX_OK && up->fleet.n_judged > 0)
		kvroute_health_sent(ctx,
		    kvroute_taken_peer(ctx), began);
	kvroute_rank_write(ctx, rc);
	if (rc == NGX_OK && up->fleet.kvr != NULL && ctx->opinion !=
	    REASON_COST && ctx->book.lease == 0 &&
	    ctx->request->method == NGX_HTTP_POST)
		booking_plain(&ctx->book, kvroute_taken_peer(ctx), &ctx->ask,
		    began);
	if (rc != NGX_AGAIN) {
		up->fleet.shared->reasons[ctx->book.reason]++;
		kept_count(up->fleet.shared, ctx->book.affinity,
		    ctx->bound_held);
	}
	ctx->ns += kvroute_spent(ctx->up, began);
	return rc;
}

/*
 * Was the connection refused? If so, the engine is gone, and its cache with it.
 * A broken keepalive connection is no evidence, nor is a timeout, nor a local
 * failure to connect. With TLS, failures after the connection look the same.
 */
static bool
was_refused(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    ngx_uint_t state, ngx_err_t error)
{
	ngx_http_upstream_t *u = ctx->request->upstream;

	if ((state & NGX_PEER_FAILED) == 0 || pc->cached || u->ssl ||
	    u->state == NULL || u->state->connect_time != (ngx_msec_t)-1)
		return false;
	if (pc->connection == ctx->wait.hold && pc->connection != NULL)
		error = ctx->wait.error;
	if (pc->connection == NULL || pc->connection == ctx->wait.hold)
		return error == NGX_ECONNREFUSED || error == NGX_ENOENT;
	return !pc->connection->write->timedout;
}

/* All ranks are behind the address. */
static void
refusal_note(kvroute_ctx_t *ctx)
{
	kvroute_srv_conf_t *up = ctx->up;
	ngx_str_t name = kvroute_taken_name(ctx);
	ngx_uint_t i = kvroute_taken_peer(ctx);
	bool any = false;
	uint32_t rank;

	if (up->fleet.kvr == NULL || i == up->fleet.n_known)
		return;
	stale_begin(&up->fleet, i, kvr_clock_now());
	for (rank = 0; rank < up->fleet.known[i].ranks; rank++)
		any |= writes_reset(&up->writes, up->fleet.known[i].ids[rank],
		    kvr_clock_now());
	kvroute_late_look(up);
	if (!any)
		return;
	ngx_log_error(NGX_LOG_NOTICE, ctx->request->connection->log, 0,
	    "kvroute: worker \"%V\" refuses connections: its record "
	    "is reset", &name);
	shared_count(up->fleet.shared, COUNT_REFUSED, 1);
}

static bool
was_taken(kvroute_ctx_t *ctx, ngx_uint_t state)
{
	ngx_uint_t status = ctx->request->upstream->headers_in.status_n;

	return (state & (NGX_PEER_FAILED | NGX_PEER_NEXT)) == 0 &&
	    status > 0 && status < 400 &&
	    !kvroute_cached(ctx->request);
}

/*
 * The engine is done. The response may not have passed our filter yet: it may
 * be in a file for a slow client, and the last event of a stripped stream waits
 * for the end. The request ends when all of it has passed.
 */
static bool
to_pass(kvroute_ctx_t *ctx)
{
	return ctx->passing.answer != NULL && !ctx->last &&
	    (ctx->passing.strip || ctx->request->upstream->buffering);
}

/*
 * Where there is one server nginx tries no other one. If the peers are others
 * than at the choice, or another rank is to be asked, that one is new to this
 * request.
 */
static void
give_back(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    ngx_uint_t state)
{
	ngx_uint_t tries = pc->tries;

	ngx_http_upstream_free_round_robin_peer(pc, &ctx->rrp, state);
	if (tries > 1 && pc->tries == 0 && (ctx->again.conf != NULL ||
	    ctx->generation != ctx->up->follow.generation ||
	    kvroute_peers_changed(ctx->up)))
		pc->tries = tries - 1;
}

static void
peer_free(ngx_peer_connection_t *pc, void *data, ngx_uint_t state)
{
	ngx_err_t error = ngx_socket_errno;
	kvroute_ctx_t *ctx = data;
	int64_t began = kvr_clock_now();
	bool taken = was_taken(ctx, state);
	ngx_str_t name = kvroute_taken_name(ctx);
	ngx_uint_t told;

	if (ctx->again.conf != NULL)
		ctx->request->upstream->headers_in.status_n = ctx->again.status;
	told = ctx->rrp.current == NULL ? state :
	    kvroute_health_free(ctx, pc, state);

	if (taken && to_pass(ctx))
		ctx->ending = true;
	else
		kvroute_end(ctx, taken);
	if (ctx->rrp.current != NULL && was_refused(ctx, pc, state, error))
		refusal_note(ctx);
	if (ctx->rrp.current != NULL && (told & NGX_PEER_FAILED))
		capacities_trouble(&ctx->up->fleet, shared_key(name.data,
		    name.len));
	ctx->ns += kvroute_spent(ctx->up, began);
	give_back(ctx, pc, told);
	kvroute_stale_book(ctx->up);
	kvroute_queue_freed(ctx->up);
}

/* --------------------------------------------------------------- begin --- */

/* Only the client of the main request gets an answer with a status. */
static void
answer_count(kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	ngx_uint_t status = r->err_status != 0 ? r->err_status :
	    r->headers_out.status;

	if (r == r->main && status >= 200)
		shared_count(ctx->up->fleet.shared, COUNT_SUCCESS +
		    ngx_min(status, 500) / 100 - 2, 1);
}

/* The request is over, in any way. */
static void
ctx_cleanup(void *data)
{
	kvroute_ctx_t *ctx = data;

	/* nginx reads on from a client that waits, so it sees the end. */
	if (ctx->request->connection->error)
		shared_count(ctx->up->fleet.shared, COUNT_CLIENTS_LEFT, 1);
	if (ctx->up->fleet.kvr != NULL)
		kvroute_end(ctx, ctx->headers);
	kvroute_comments_end(ctx);
	answer_count(ctx);
	kvroute_request_timed(ctx);
	kvroute_prompt_leave(ctx);
	passing_leave(&ctx->passing, ctx->up->spares);
	trace_line_leave(&ctx->trace);
}

static kvroute_ctx_t *
ctx_make(ngx_http_request_t *r, kvroute_srv_conf_t *up)
{
	kvroute_ctx_t *ctx = ngx_pcalloc(r->pool, sizeof(*ctx));
	ngx_pool_cleanup_t *cln;

	if (ctx == NULL)
		return NULL;
	ctx->request = r;
	ctx->up = up;
	ctx->book.fleet = &up->fleet;
	ctx->book.writes = &up->writes;
	ctx->rank = -1;
	cln = ngx_pool_cleanup_add(r->pool, 0);
	if (cln == NULL || ngx_array_init(&ctx->taken, r->pool, 2,
	    sizeof(ngx_str_t)) != NGX_OK)
		return NULL;
	cln->handler = ctx_cleanup;
	cln->data = ctx;
	return ctx;
}

static ngx_int_t
peer_init(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us)
{
	kvroute_srv_conf_t *up = ngx_http_conf_upstream_srv_conf(us,
	    ngx_http_upstream_kvroute_module);
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	int64_t began = kvr_clock_now();
	kvroute_ctx_t *ctx = ctx_make(r, up);

	if (ctx == NULL)
		return NGX_ERROR;
	loc->seen = up;
	r->upstream->peer.data = &ctx->rrp;
	kvroute_peers_follow(up, r->connection->log);
	if (up->init_stock(r, us) != NGX_OK || !kvroute_tried_fit(ctx))
		return NGX_ERROR;
	r->upstream->peer.get = peer_get;
	r->upstream->peer.free = peer_free;
	ngx_http_set_ctx(r, ctx, ngx_http_upstream_kvroute_module);
	kvroute_body_read(ctx);
	kvroute_session_read(ctx);
	if (kvroute_request_edit(ctx) != NGX_OK ||
	    kvroute_rank_prepare(ctx) != NGX_OK)
		return NGX_ERROR;
	ctx->ns += kvroute_spent(ctx->up, began);
	return NGX_OK;
}

bool
kvroute_is_outermost(const ngx_http_upstream_srv_conf_t *us)
{
	return us->peer.init == peer_init;
}

ngx_int_t
kvroute_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us)
{
	kvroute_srv_conf_t *up = ngx_http_conf_upstream_srv_conf(us,
	    ngx_http_upstream_kvroute_module);

	if (ngx_http_upstream_init_round_robin(cf, us) != NGX_OK)
		return NGX_ERROR;
	up->init_stock = us->peer.init;
	us->peer.init = peer_init;
	if (kvroute_servers_settle(cf, up) != NGX_OK)
		return NGX_ERROR;
	kvroute_queue_check(cf, up);
	return kvroute_ranks_check(cf, up);
}
