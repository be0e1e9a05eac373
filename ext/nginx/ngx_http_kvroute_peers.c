/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_peers.c - the peers as nginx has them: those that a request
 * has tried, those that it may take now, and the taking.
 *
 * nginx decides which peers are usable (down, backup, max_fails, max_conns,
 * already tried) and takes the chosen one: all other peers are marked as tried
 * while the stock method looks for one. So weights, failures and connections
 * are counted only by nginx.
 *
 *     fleet.known    [ first | first | first | backup ]   updated for a choice
 *     rrp.tried      bits of `first`, or, once none is left there, `backup`
 *
 * Requests without a prediction go to the peer with the fewest connections by
 * weight. A drained server gets them only if there is no other.
 */
#include "ngx_http_kvroute_peers.h"

#include "judge.h"
#include "least.h"
#include "members.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_follow.h"
#include "ngx_http_kvroute_reader.h"
#include "roles.h"
#include "shared.h"
#include "stale.h"

/* --------------------------------------------------------------- tried --- */

/* By name: a peer may be freed once nginx has taken it back. */

/* By nginx's rules: not down, and not failed just now; at its max_conns. */
static bool
is_alive(const ngx_http_upstream_rr_peer_t *peer, time_t now)
{
	return !peer->down && !(peer->max_fails &&
	    peer->fails >= peer->max_fails &&
	    now - peer->checked <= peer->fail_timeout);
}

static bool
is_full(const ngx_http_upstream_rr_peer_t *peer)
{
	return peer->max_conns && peer->conns >= peer->max_conns;
}

static ngx_uint_t
connections_of(kvroute_srv_conf_t *up, size_t i)
{
	ngx_http_upstream_rr_peers_t *peers = up->upstream->peer.data;
	ngx_http_upstream_rr_peer_t *peer;
	ngx_uint_t conns = 0;

	if (i >= up->fleet.n_first)
		peers = peers->next;
	ngx_http_upstream_rr_peers_rlock(peers);
	for (peer = peers->peer; peer != NULL; peer = peer->next)
		if (known_is_called(&up->fleet.known[i], peer->name.data,
		    peer->name.len))
			conns = peer->conns;
	ngx_http_upstream_rr_peers_unlock(peers);
	return conns;
}

void
kvroute_stale_book(kvroute_srv_conf_t *up)
{
	size_t place = 0, i = stale_next(&up->fleet, &place, 0);

	for (; i < up->fleet.n_known; i = stale_next(&up->fleet, &place,
	    i + 1))
		stale_book(&up->fleet, i, connections_of(up, i),
		    kvr_clock_now());
}

ngx_str_t
kvroute_taken_name(const kvroute_ctx_t *ctx)
{
	const ngx_str_t *names = ctx->taken.elts;
	ngx_str_t none = ngx_null_string;

	return ctx->taken.nelts == 0 ? none : names[ctx->taken.nelts - 1];
}

bool
kvroute_has_tried(const kvroute_ctx_t *ctx, ngx_uint_t i)
{
	const ngx_str_t *names = ctx->taken.elts;
	ngx_uint_t n;

	for (n = 0; n < ctx->taken.nelts; n++) {
		if (known_is_called(&ctx->up->fleet.known[i],
		    names[n].data, names[n].len))
			return true;
	}
	return false;
}

/* The position in fleet.known; n_known: not there. */
ngx_uint_t
kvroute_taken_peer(kvroute_ctx_t *ctx)
{
	ngx_str_t name = kvroute_taken_name(ctx);

	return known_find(&ctx->up->fleet, name.data, name.len,
	    ctx->up->fleet.n_known);
}

/*
 * The engine alone has the rank, of several; but each rank reaches its state.
 */
uint64_t
kvroute_taken_worker(kvroute_ctx_t *ctx, uint64_t draw)
{
	const struct known *known;
	uint64_t id = 0;
	ngx_uint_t i;
	uint32_t n;

	if (ctx->book.worker != 0 && ctx->up->shadow == KVROUTE_CHOOSE)
		return ctx->book.worker;
	i = kvroute_taken_peer(ctx);
	if (i == ctx->up->fleet.n_known)
		return 0;
	known = &ctx->up->fleet.known[i];
	for (n = 0; n < known->ranks && id == 0; n++)
		id = known->ids[(draw + n) % known->ranks];
	return id;
}

/* In shadow mode this is not the worker that was used. */
ngx_str_t
kvroute_worker_name(kvroute_ctx_t *ctx)
{
	struct known *known = ctx->up->fleet.known;
	ngx_str_t name = ngx_null_string;
	ngx_uint_t i;
	uint32_t rank;

	if (ctx->book.worker == 0)
		return name;
	if (ctx->up->shadow == KVROUTE_CHOOSE)
		return kvroute_taken_name(ctx);
	i = known_of_worker(&ctx->up->fleet, ctx->book.worker, &rank);
	if (i < ctx->up->fleet.n_known) {
		name.data = (u_char *)known[i].name;
		name.len = known[i].name_len;
	}
	return name;
}

static bool
is_usable(const ngx_http_upstream_rr_peer_t *peer, time_t now)
{
	return is_alive(peer, now) && !is_full(peer);
}

bool
kvroute_another_usable(kvroute_ctx_t *ctx)
{
	ngx_http_upstream_rr_peers_t *peers = ctx->rrp.peers;
	ngx_http_upstream_rr_peer_t *peer;
	time_t now = ngx_time();
	bool found = false;

	ngx_http_upstream_rr_peers_rlock(peers);
	for (peer = peers->peer; peer != NULL && !found; peer = peer->next)
		found = peer != ctx->rrp.current && is_usable(peer, now);
	ngx_http_upstream_rr_peers_unlock(peers);
	return found;
}

/* -------------------------------------------------------------- digests --- */

/*
 * Digests of a request's prompt and client: a server that fails several of
 * both is to blame itself.
 */

enum { DIGEST_BYTES = 4096 }; /* of each buffer of a body */

/* For a short prompt the digest is that of its body. */
uint64_t
kvroute_digest_of(const kvroute_ctx_t *ctx)
{
	ngx_http_request_body_t *body = ctx->request->request_body;
	ngx_chain_t *cl = body == NULL ? NULL : body->bufs;
	uint64_t of[2] = { 0, 0 };
	size_t n;

	if (ctx->digest != 0)
		return ctx->digest;
	for (; cl != NULL; cl = cl->next) {
		n = ngx_buf_in_memory(cl->buf) ? (size_t)ngx_min(
		    cl->buf->last - cl->buf->pos, DIGEST_BYTES) : 0;
		of[1] = shared_key(cl->buf->pos, n) +
		    (uint64_t)ngx_buf_size(cl->buf);
		of[0] = shared_key((u_char *)of, sizeof(of));
	}
	return of[0] | 1;
}

/* The address, as far as a client cannot choose it, and the tenant. */
uint64_t
kvroute_client_of(const kvroute_ctx_t *ctx)
{
	ngx_http_request_t *r = ctx->request;
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	struct sockaddr *from = r->connection->sockaddr;
	u_char *at = (u_char *)from;
	size_t n = 0;
	ngx_str_t tenant = ngx_null_string;
	uint64_t of[2];

	if (from->sa_family == AF_INET) {
		at += offsetof(struct sockaddr_in, sin_addr);
		n = sizeof(struct in_addr);
	} else if (from->sa_family == AF_INET6) {
		at += offsetof(struct sockaddr_in6, sin6_addr);
		n = 8;
	}
	if (loc->scope != NULL)
		(void)ngx_http_complex_value(r, loc->scope, &tenant);
	of[0] = shared_key(at, n);
	of[1] = shared_key(tenant.data, tenant.len);
	return shared_key((u_char *)of, sizeof(of));
}

/* ----------------------------------------------------------------- look --- */

static bool
is_named(const ngx_str_t *a, const void *name, size_t len)
{
	return a->len == len && ngx_memcmp(a->data, name, len) == 0;
}

/* Does "sticky" ask for it? One that drains is only for such requests. */
static bool
is_hinted(const kvroute_ctx_t *ctx, const ngx_http_upstream_rr_peer_t *peer,
    bool *drains)
{
#if (KVROUTE_STICKY)
	const ngx_str_t *hint = ctx == NULL ? NULL :
	    ctx->request->upstream->peer.hint;

	*drains = peer->down == NGX_HTTP_UPSTREAM_DRAINING;
	return hint != NULL && is_named(&peer->sid, hint->data, hint->len);
#else
	(void)ctx;
	(void)peer;
	*drains = false;
	return false;
#endif
}

/*
 * If a process dies with nginx's lock of the peers, the lock stays held, so
 * only copying is done under it. A peer with another name is of another
 * generation, see follow.c.
 */
static void
list_look(const kvroute_ctx_t *ctx, ngx_http_upstream_rr_peers_t *peers,
    const uintptr_t *tried, struct known *known, ngx_uint_t n)
{
	const ngx_uint_t word = 8 * sizeof(uintptr_t);
	ngx_http_upstream_rr_peer_t *peer;
	time_t now = ngx_time();
	bool drains = false;
	ngx_uint_t i;

	ngx_http_upstream_rr_peers_rlock(peers);
	for (peer = peers->peer, i = 0; i < n; i++, known++) {
		known->hinted = peer != NULL && is_hinted(ctx, peer, &drains);
		known->usable = peer != NULL && (is_alive(peer, now) ||
		    (known->hinted && drains)) &&
		    is_named(&peer->name, known->name, known->name_len) &&
		    (tried == NULL || (tried[i / word] >> i % word & 1) == 0);
		known->full = known->usable && is_full(peer);
		known->usable = known->usable && !known->full;
		known->down = peer == NULL || peer->down;
		if (peer == NULL)
			continue;
		known->conns = peer->conns;
		known->weight = (ngx_uint_t)peer->weight;
		peer = peer->next;
	}
	ngx_http_upstream_rr_peers_unlock(peers);
}

/* All of them; `ctx` is NULL for a request without tries. */
static void
lists_look(kvroute_srv_conf_t *up, const kvroute_ctx_t *ctx)
{
	ngx_http_upstream_rr_peers_t *first = up->upstream->peer.data;
	const uintptr_t *tried = ctx == NULL ? NULL : ctx->rrp.tried;
	bool on_backup = ctx != NULL && ctx->rrp.peers != first;
	struct fleet *f = &up->fleet;
	ngx_uint_t i;

	if (!on_backup)
		list_look(ctx, first, tried, f->known, f->n_first);
	for (i = 0; on_backup && i < f->n_first; i++)
		f->known[i].usable = f->known[i].full = f->known[i].hinted =
		    false;
	if (f->n_known > f->n_first)
		list_look(ctx, first->next, on_backup ? tried : NULL, f->known +
		    f->n_first, f->n_known - f->n_first);
}

void
kvroute_peers_look(kvroute_ctx_t *ctx)
{
	kvroute_srv_conf_t *up = ctx->up;

	if (up->fleet.kvr != NULL)
		kvroute_peers_join(up, ctx->request->connection->log);
	lists_look(up, ctx);
	if (up->fleet.kvr != NULL)
		members_look(&up->fleet, kvr_clock_now());
	if (up->parted)
		roles_mark(&up->fleet, kvr_clock_now());
}

void
kvroute_room_look(kvroute_srv_conf_t *up)
{
	lists_look(up, NULL);
	if (up->parted)
		roles_mark(&up->fleet, kvr_clock_now());
	judge_mark(&up->fleet);
}

/* ----------------------------------------------------------------- take --- */

enum { WORD = 8 * sizeof(uintptr_t) };

/* Once nginx has taken it back, a peer may be freed. */
static void
name_keep(kvroute_ctx_t *ctx)
{
	const ngx_str_t *name = &ctx->rrp.current->name;
	ngx_str_t *copy = ngx_array_push(&ctx->taken);

	if (copy == NULL)
		return;
	copy->len = name->len;
	copy->data = ngx_pstrdup(ctx->request->pool, &ctx->rrp.current->name);
	if (copy->data == NULL)
		copy->len = 0;
}

ngx_int_t
kvroute_stock_get(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	ngx_int_t rc = ngx_http_upstream_get_round_robin_peer(pc, &ctx->rrp);

	if (rc == NGX_OK)
		name_keep(ctx);
	return rc;
}

/* For a wait, with so many bytes of tried peers; false: no memory. */
static bool
wait_make(kvroute_ctx_t *ctx, size_t bytes)
{
	if (ctx->up->fleet.queue == 0)
		return true;
	if (ctx->wait.tried == NULL || bytes > ctx->wait.bytes)
		ctx->wait.tried = ngx_palloc(ctx->request->pool, bytes + 1);
	ctx->wait.bytes = bytes;
	return ctx->wait.tried != NULL;
}

/*
 * The bits of tried peers are about those of fleet.known, also when these are
 * others than at the latest try. A spare word: the backups may be more by now.
 */
bool
kvroute_tried_fit(kvroute_ctx_t *ctx)
{
	kvroute_srv_conf_t *up = ctx->up;
	const ngx_str_t *names = ctx->taken.elts;
	ngx_uint_t i, at;
	ngx_uint_t words = (up->fleet.n_known + WORD - 1) / WORD + 1;
	uintptr_t *place = ctx->rrp.tried;

	if (words > ctx->words) {
		place = ngx_palloc(ctx->request->pool,
		    2 * words * sizeof(uintptr_t));
		if (place == NULL)
			return false;
		ctx->words = words;
		ctx->tried = place + words;
	}
	if (!wait_make(ctx, ctx->words * sizeof(uintptr_t)))
		return false;
	ngx_memzero(place, ctx->words * sizeof(uintptr_t));
	ctx->rrp.tried = place;
	ctx->rrp.peers = up->upstream->peer.data;
	ctx->generation = up->follow.generation;
#if (KVROUTE_RESOLVE)
	ctx->rrp.config = up->follow.generation;
#endif
	for (i = 0; i < ctx->taken.nelts; i++) {
		at = known_find(&up->fleet, names[i].data, names[i].len,
		    up->fleet.n_first);
		if (at < up->fleet.n_first)
			place[at / WORD] |= (uintptr_t)1 << (at % WORD);
	}
	return true;
}

/* Switches to the backups when no first peer is left; never back. */
static void
backups_use(kvroute_ctx_t *ctx)
{
	ngx_uint_t i;

	for (i = 0; i < ctx->up->fleet.n_first; i++)
		ctx->up->fleet.known[i].usable = false;
	ctx->rrp.peers = ctx->rrp.peers->next;
	ngx_memzero(ctx->rrp.tried, ctx->words * sizeof(uintptr_t));
}

/*
 * Takes peer i of fleet.known by the stock method, which sees no other.
 * NGX_BUSY: it became unusable meanwhile.
 */
ngx_int_t
kvroute_take(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc, ngx_uint_t i)
{
	struct known *known = &ctx->up->fleet.known[i];
	ngx_http_upstream_rr_peers_t *peers;
	size_t bytes;
	ngx_int_t rc;

	if (i >= ctx->up->fleet.n_first) {
		if (ctx->rrp.peers == ctx->up->upstream->peer.data)
			backups_use(ctx);
		i -= ctx->up->fleet.n_first;
	}
	peers = ctx->rrp.peers;
	bytes = ctx->words * sizeof(uintptr_t);
	ngx_memcpy(ctx->tried, ctx->rrp.tried, bytes);
	ngx_memset(ctx->rrp.tried, 0xff, bytes);
	ctx->rrp.tried[i / WORD] &= ~((uintptr_t)1 << (i % WORD));
	rc = kvroute_stock_get(ctx, pc);
	/* If that peer was not available, a backup may have been found. */
	if (ctx->rrp.peers != peers && rc == NGX_OK)
		return rc;
	ctx->rrp.peers = peers;
	ngx_memcpy(ctx->rrp.tried, ctx->tried, bytes);
	ctx->rrp.tried[i / WORD] |= (uintptr_t)1 << (i % WORD);
	known->usable = rc != NGX_BUSY;
	return rc;
}

/* As the stock method does when no peer is left. */
ngx_int_t
kvroute_take_none(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	pc->name = ctx->rrp.peers->name;
	return NGX_BUSY;
}

ngx_int_t
kvroute_take_least(kvroute_ctx_t *ctx, ngx_peer_connection_t *pc)
{
	ngx_uint_t i;
	ngx_int_t rc;

	while ((i = least_loaded(&ctx->up->fleet)) < ctx->up->fleet.n_known) {
		rc = kvroute_take(ctx, pc, i);
		if (rc != NGX_BUSY)
			return rc;
	}
	if (waits_full(&ctx->up->fleet))
		return kvroute_take_none(ctx, pc);
	/* None: the stock method handles that. */
	ngx_memset(ctx->rrp.tried, 0xff, ctx->words * sizeof(uintptr_t));
	return kvroute_stock_get(ctx, pc);
}
