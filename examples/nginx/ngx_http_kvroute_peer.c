/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_peer.c - the choice, and the life of a request.
 *
 *     peer.init    body -> prompt
 *     peer.get     who may be taken (as nginx says) -> who is best (as kvroute
 *                  says) -> take (as nginx does)
 *     headers      < 400: commit                            | answer.c
 *     first event  first token                              | answer.c
 *     peer.free    finish with what the engine reported; or abort, if the peer
 *                  did not take the request or answered >= 400
 *
 * Who may be taken is nginx's to say (down, backup, max_fails, max_conns, tried
 * before), and so is taking: all peers but the chosen one are marked as tried
 * for as long as the stock method looks for one. So weights, failures and
 * connections are counted in one place, that of nginx.
 *
 * Requests without an opinion go where the fewest connections are, by weight.
 *
 * Nothing here waits for the region's lock: a choice that meets it taken has no
 * opinion.
 */
#include "ngx_http_kvroute.h"

enum { WORD = 8 * sizeof(uintptr_t) };

/* --------------------------------------------------- who may be taken --- */

static bool
bit_of(const uintptr_t *bits, ngx_uint_t i)
{
	return (bits[i / WORD] >> (i % WORD) & 1) != 0;
}

static ngx_uint_t
words_of(const ngx_http_upstream_rr_peers_t *peers)
{
	return (peers->number + WORD - 1) / WORD;
}

static bool
usable(const ngx_http_kvroute_ctx_t *ctx, ngx_http_upstream_rr_peer_t *peer,
    ngx_uint_t i, time_t now)
{
	return !bit_of(ctx->rrp.tried, i) && !peer->down &&
	    !(peer->max_fails && peer->fails >= peer->max_fails &&
	    now - peer->checked <= peer->fail_timeout) &&
	    !(peer->max_conns && peer->conns >= peer->max_conns);
}

/* Where peers of the list that is looked at stand in up->known. */
static ngx_uint_t
known_from(const ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_upstream_rr_peers_t *first = ctx->up->upstream->peer.data;

	return ctx->rrp.peers == first ? 0 : first->number;
}

static uint64_t
worker_of(ngx_http_kvroute_ctx_t *ctx, ngx_http_upstream_rr_peer_t *peer,
    ngx_uint_t i)
{
	return ngx_http_kvroute_worker(ctx->up, known_from(ctx) + i,
	    &peer->name);
}

/* Ids of workers that may be taken, to up->allowed; how many. */
static ngx_uint_t
allowed_list(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_upstream_rr_peers_t *peers = ctx->rrp.peers;
	ngx_http_upstream_rr_peer_t *peer;
	time_t now = ngx_time();
	ngx_uint_t i, n = 0;
	uint64_t id;

	ngx_http_upstream_rr_peers_rlock(peers);
	for (peer = peers->peer, i = 0; peer != NULL; peer = peer->next, i++) {
		if (i >= peers->number || n >= ctx->up->n_peers)
			break;
		if (!usable(ctx, peer, i, now))
			continue;
		id = worker_of(ctx, peer, i);
		if (id != 0)
			ctx->up->allowed[n++] = id;
	}
	ngx_http_upstream_rr_peers_unlock(peers);
	return n;
}

/* Its place among the peers that are looked at; -1: none of them. */
static ngx_int_t
peer_of(ngx_http_kvroute_ctx_t *ctx, uint64_t worker)
{
	ngx_http_upstream_rr_peers_t *peers = ctx->rrp.peers;
	ngx_http_upstream_rr_peer_t *peer;
	time_t now = ngx_time();
	ngx_int_t found = -1;
	ngx_uint_t i;

	ngx_http_upstream_rr_peers_rlock(peers);
	for (peer = peers->peer, i = 0; peer != NULL && i < peers->number;
	    peer = peer->next, i++) {
		if (usable(ctx, peer, i, now) &&
		    worker_of(ctx, peer, i) == worker) {
			found = (ngx_int_t)i;
			break;
		}
	}
	ngx_http_upstream_rr_peers_unlock(peers);
	return found;
}

/* ----------------------------------------------------------------- take --- */

/* This peer, by the stock method, which sees no other. */
static ngx_int_t
take(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, ngx_uint_t i)
{
	ngx_http_upstream_rr_peers_t *peers = ctx->rrp.peers;
	size_t bytes = words_of(peers) * sizeof(uintptr_t);
	ngx_int_t rc;

	ngx_memcpy(ctx->tried, ctx->rrp.tried, bytes);
	ngx_memset(ctx->rrp.tried, 0xff, bytes);
	ctx->rrp.tried[i / WORD] &= ~((uintptr_t)1 << (i % WORD));
	rc = ngx_http_upstream_get_round_robin_peer(pc, &ctx->rrp);
	/* If that one could not be had, it may look at backups now. */
	if (ctx->rrp.peers != peers)
		return rc;
	ngx_memcpy(ctx->rrp.tried, ctx->tried, bytes);
	ctx->rrp.tried[i / WORD] |= (uintptr_t)1 << (i % WORD);
	return rc;
}

/* Drained or put down at run time: no request goes there. */
static bool
closed(ngx_http_kvroute_ctx_t *ctx, ngx_http_upstream_rr_peer_t *peer,
    ngx_uint_t i)
{
	struct kvr_worker facts;

	if (ctx->up->kvr == NULL)
		return false;
	facts.size = sizeof(facts);
	return kvr_worker_get(ctx->up->kvr, worker_of(ctx, peer, i), &facts) ==
	    KVR_OK && facts.state != KVR_STATE_UP;
}

static bool
less_loaded(const ngx_http_upstream_rr_peer_t *a,
    const ngx_http_upstream_rr_peer_t *b)
{
	return a->conns * (ngx_uint_t)b->weight <
	    b->conns * (ngx_uint_t)a->weight;
}

/* The fewest connections by weight; equals take turns. -1: nobody. */
static ngx_int_t
least_loaded(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_upstream_rr_peers_t *peers = ctx->rrp.peers;
	ngx_http_upstream_rr_peer_t *peer, *best = NULL;
	ngx_uint_t i, first = ctx->up->turn++ %
	    (peers->number + (peers->number == 0));
	time_t now = ngx_time();
	ngx_int_t found = -1;
	bool after = false;

	ngx_http_upstream_rr_peers_rlock(peers);
	for (peer = peers->peer, i = 0; peer != NULL && i < peers->number;
	    peer = peer->next, i++) {
		if (!usable(ctx, peer, i, now) || closed(ctx, peer, i))
			continue;
		if (best == NULL || less_loaded(peer, best) || (!after &&
		    i >= first && !less_loaded(best, peer))) {
			after = i >= first;
			best = peer;
			found = (ngx_int_t)i;
		}
	}
	ngx_http_upstream_rr_peers_unlock(peers);
	return found;
}

/* Backups are looked at when nobody else is left. */
static bool
backups(ngx_http_kvroute_ctx_t *ctx)
{
	if (ctx->rrp.peers->next == NULL)
		return false;
	ctx->rrp.peers = ctx->rrp.peers->next;
	ngx_memzero(ctx->rrp.tried, words_of(ctx->rrp.peers) *
	    sizeof(uintptr_t));
	return true;
}

static ngx_int_t
take_least(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	ngx_int_t i;

	do {
		i = least_loaded(ctx);
	} while (i < 0 && backups(ctx));
	if (i >= 0)
		return take(ctx, pc, (ngx_uint_t)i);
	/* Nobody: the stock method knows what to do then. */
	ngx_memset(ctx->rrp.tried, 0xff, words_of(ctx->rrp.peers) *
	    sizeof(uintptr_t));
	return ngx_http_upstream_get_round_robin_peer(pc, &ctx->rrp);
}

/* --------------------------------------------------------------- choice --- */

static void
request_make(ngx_http_kvroute_ctx_t *ctx, struct kvr_request *request)
{
	(void)kvr_request_init(request, sizeof(*request));
	request->owner = ctx->up->owner;
	request->flags = KVR_NOWAIT;
}

static ngx_http_kvroute_reason_t
reason_of(int error)
{
	switch (error) {
	case KVR_EBUSY:
		return NGX_HTTP_KVROUTE_BUSY;
	case KVR_ENOWORKER:
	case KVR_EALLBUSY:
		return NGX_HTTP_KVROUTE_NO_WORKER;
	default:
		return NGX_HTTP_KVROUTE_FAILED;
	}
}

/* Who is best of those that may be taken; booked unless only asked. */
static bool
choose(ngx_http_kvroute_ctx_t *ctx, int64_t now, bool book)
{
	struct kvr_prompt *prompt = ctx->up->prompt;
	struct kvr_request request;
	struct kvr_decision d;
	ngx_uint_t n;
	int error;

	while ((n = allowed_list(ctx)) == 0) {
		if (!backups(ctx)) {
			ctx->reason = NGX_HTTP_KVROUTE_NO_WORKER;
			return false;
		}
	}
	if (!ngx_http_kvroute_prompt_make(ctx)) {
		ctx->reason = NGX_HTTP_KVROUTE_FAILED;
		return false;
	}
	request_make(ctx, &request);
	d.size = sizeof(d);
	error = kvr_prompt_allow(prompt, ctx->up->allowed, n);
	if (error == KVR_OK && book)
		error = kvr_reserve(ctx->up->kvr, prompt, &request, now, &d);
	else if (error == KVR_OK)
		error = kvr_route(ctx->up->kvr, prompt, &request, now, &d);
	if (error != KVR_OK) {
		ctx->reason = reason_of(error);
		return false;
	}
	ctx->decision = d;
	ctx->lease = d.lease;
	ctx->worker = d.worker;
	ctx->reason = (ngx_http_kvroute_reason_t)d.reason;
	ngx_http_kvroute_trace_keep(ctx);
	return true;
}

static void
lease_drop(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_end(ctx, false);
}

static ngx_int_t
take_best(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    int64_t now)
{
	ngx_http_upstream_rr_peers_t *peers;
	ngx_int_t i, rc;

	if (!choose(ctx, now, true))
		return take_least(ctx, pc);
	i = peer_of(ctx, ctx->worker);
	peers = ctx->rrp.peers;
	rc = i < 0 ? NGX_BUSY : take(ctx, pc, (ngx_uint_t)i);
	if (rc == NGX_OK && ctx->rrp.peers == peers)
		return rc;
	/* It was taken away meanwhile, and perhaps another was found. */
	lease_drop(ctx);
	ctx->reason = NGX_HTTP_KVROUTE_NO_WORKER;
	return rc == NGX_BUSY ? take_least(ctx, pc) : rc;
}

/* --------------------------------------------------------------- shadow --- */

static void
shadow_count(ngx_http_kvroute_ctx_t *ctx, const struct kvr_decision *wanted,
    const struct kvr_decision *taken)
{
	ngx_http_kvroute_shared_t *s = ctx->up->shared;

	(void)ngx_atomic_fetch_add(&s->shadow, 1);
	if (wanted->worker == taken->worker)
		(void)ngx_atomic_fetch_add(&s->shadow_same, 1);
	(void)ngx_atomic_fetch_add(&s->shadow_blocks, wanted->prompt_blocks);
	(void)ngx_atomic_fetch_add(&s->shadow_wanted, wanted->overlap_blocks);
	(void)ngx_atomic_fetch_add(&s->shadow_taken, taken->overlap_blocks);
}

/* What went there is learnt as if it had been chosen. */
static void
shadow_book(ngx_http_kvroute_ctx_t *ctx, int64_t now)
{
	struct kvr_decision wanted = ctx->decision, d;
	ngx_http_upstream_rr_peer_t *peer = ctx->rrp.current;
	struct kvr_request request;
	uint64_t id;
	int error;

	if (kvr_worker_find(ctx->up->kvr, (const char *)peer->name.data,
	    peer->name.len, 0, &id) != KVR_OK)
		return;
	request_make(ctx, &request);
	d.size = sizeof(d);
	error = kvr_reserve_on(ctx->up->kvr, ctx->up->prompt, &request, id,
	    now, &d);
	if (error != KVR_OK) {
		ctx->reason = reason_of(error);
		return;
	}
	shadow_count(ctx, &wanted, &d);
	ctx->lease = d.lease;
	/* The report is compared with what was to be expected there. */
	ctx->decision.overlap_tokens = d.overlap_tokens;
}

static ngx_int_t
take_shadowed(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    int64_t now)
{
	bool sure = ctx->opinion == NGX_HTTP_KVROUTE_COST &&
	    choose(ctx, now, false);
	ngx_int_t rc = ctx->up->shadow == NGX_HTTP_KVROUTE_ROUND_ROBIN ?
	    ngx_http_upstream_get_round_robin_peer(pc, &ctx->rrp) :
	    take_least(ctx, pc);

	if (sure && rc == NGX_OK)
		shadow_book(ctx, now);
	return rc;
}

/* ----------------------------------------------------------- get, free --- */

static ngx_int_t
peer_get(ngx_peer_connection_t *pc, void *data)
{
	ngx_http_kvroute_ctx_t *ctx = data;
	int64_t began = kvr_clock_now();
	ngx_int_t rc;

	ctx->reason = ctx->opinion;
	ctx->worker = 0;
	if (ctx->tries++ > 0)
		(void)ngx_atomic_fetch_add(&ctx->up->shared->retries, 1);
	if (ctx->up->shadow != NGX_HTTP_KVROUTE_CHOOSE)
		rc = take_shadowed(ctx, pc, began);
	else if (ctx->opinion == NGX_HTTP_KVROUTE_COST)
		rc = take_best(ctx, pc, began);
	else
		rc = take_least(ctx, pc);
	(void)ngx_atomic_fetch_add(&ctx->up->shared->requests[ctx->reason], 1);
	ctx->ns += (uint64_t)(kvr_clock_now() - began);
	return rc;
}

/*
 * Nobody listens there: the engine is gone, and with it its cache. A connection
 * kept alive that broke says nothing, nor does one that took too long.
 */
static bool
was_refused(ngx_http_kvroute_ctx_t *ctx, ngx_peer_connection_t *pc,
    ngx_uint_t state)
{
	ngx_http_upstream_t *u = ctx->request->upstream;

	return (state & NGX_PEER_FAILED) != 0 && !pc->cached &&
	    u->state != NULL && u->state->connect_time == (ngx_msec_t)-1 &&
	    !(pc->connection != NULL && pc->connection->write->timedout);
}

static void
refusal_note(ngx_http_kvroute_ctx_t *ctx, ngx_http_upstream_rr_peer_t *peer)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	struct kvr_worker_stats s;
	uint64_t id, id_new;

	s.size = sizeof(s);
	if (up->kvr == NULL || kvr_worker_find(up->kvr,
	    (const char *)peer->name.data, peer->name.len, 0, &id) != KVR_OK ||
	    kvr_worker_stats(up->kvr, id, &s) != KVR_OK || s.entries == 0)
		return;
	ngx_log_error(NGX_LOG_NOTICE, ctx->request->connection->log, 0,
	    "kvroute: worker \"%V\" refuses connections: forgotten what it "
	    "had", &peer->name);
	id_new = ngx_http_kvroute_worker_reset(up, id);
	if (ctx->worker == id)
		ctx->worker = id_new;
	(void)ngx_atomic_fetch_add(&up->shared->refused, 1);
}

static bool
was_taken(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t state)
{
	ngx_uint_t status = ctx->request->upstream->headers_in.status_n;

	return (state & (NGX_PEER_FAILED | NGX_PEER_NEXT)) == 0 &&
	    status > 0 && status < 400;
}

static void
peer_free(ngx_peer_connection_t *pc, void *data, ngx_uint_t state)
{
	ngx_http_kvroute_ctx_t *ctx = data;
	ngx_http_upstream_rr_peer_t *peer = ctx->rrp.current;
	int64_t began = kvr_clock_now();

	ngx_http_kvroute_end(ctx, was_taken(ctx, state));
	if (peer != NULL && was_refused(ctx, pc, state))
		refusal_note(ctx, peer);
	ctx->ns += (uint64_t)(kvr_clock_now() - began);
	ngx_http_upstream_free_round_robin_peer(pc, &ctx->rrp, state);
}

/* --------------------------------------------------------------- begin --- */

/* The request is over, however. */
static void
cleanup(void *data)
{
	ngx_http_kvroute_ctx_t *ctx = data;

	if (ctx->up->kvr != NULL)
		ngx_http_kvroute_end(ctx, ctx->committed);
	if (ctx->up->parsed == ctx)
		ctx->up->parsed = NULL;
	answer_free(ctx->answer);
	ctx->answer = NULL;
}

static ngx_http_kvroute_ctx_t *
ctx_make(ngx_http_request_t *r, ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_ctx_t *ctx = ngx_pcalloc(r->pool, sizeof(*ctx));
	ngx_pool_cleanup_t *cln;

	if (ctx == NULL)
		return NULL;
	ctx->request = r;
	ctx->up = up;
	cln = ngx_pool_cleanup_add(r->pool, 0);
	if (cln == NULL)
		return NULL;
	cln->handler = cleanup;
	cln->data = ctx;
	return ctx;
}

static ngx_int_t
tried_make(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_upstream_rr_peers_t *peers = ctx->rrp.peers;
	ngx_uint_t words = words_of(peers);

	if (peers->next != NULL)
		words = ngx_max(words, words_of(peers->next));
	ctx->tried = ngx_pcalloc(ctx->request->pool,
	    (words + 1) * sizeof(uintptr_t));
	return ctx->tried == NULL ? NGX_ERROR : NGX_OK;
}

static ngx_int_t
peer_init(ngx_http_request_t *r, ngx_http_upstream_srv_conf_t *us)
{
	ngx_http_kvroute_srv_conf_t *up = ngx_http_conf_upstream_srv_conf(us,
	    ngx_http_upstream_kvroute_module);
	int64_t began = kvr_clock_now();
	ngx_http_kvroute_ctx_t *ctx = ctx_make(r, up);

	if (ctx == NULL)
		return NGX_ERROR;
	r->upstream->peer.data = &ctx->rrp;
	if (up->init_stock(r, us) != NGX_OK || tried_make(ctx) != NGX_OK)
		return NGX_ERROR;
	r->upstream->peer.get = peer_get;
	r->upstream->peer.free = peer_free;
	ngx_http_set_ctx(r, ctx, ngx_http_upstream_kvroute_module);
	ctx->began = began;
	ngx_http_kvroute_body_read(ctx);
	if (ngx_http_kvroute_request_edit(ctx) != NGX_OK)
		return NGX_ERROR;
	ctx->ns += (uint64_t)(kvr_clock_now() - began);
	return NGX_OK;
}

ngx_int_t
ngx_http_kvroute_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us)
{
	ngx_http_kvroute_srv_conf_t *up = ngx_http_conf_upstream_srv_conf(us,
	    ngx_http_upstream_kvroute_module);

	if (ngx_http_upstream_init_round_robin(cf, us) != NGX_OK)
		return NGX_ERROR;
	up->init_stock = us->peer.init;
	us->peer.init = peer_init;
	return NGX_OK;
}
