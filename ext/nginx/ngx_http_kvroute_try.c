/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_try.c - the servers that a request has tried, by name: a
 * peer may be freed once nginx has taken it back.
 */
#include "ngx_http_kvroute_try.h"

#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_reader.h"
#include "shared.h"
#include "stale.h"

/* ---------------------------------------------------------------- peers --- */

bool
kvroute_is_alive(const ngx_http_upstream_rr_peer_t *peer, time_t now)
{
	return !peer->down && !(peer->max_fails &&
	    peer->fails >= peer->max_fails &&
	    now - peer->checked <= peer->fail_timeout);
}

bool
kvroute_is_full(const ngx_http_upstream_rr_peer_t *peer)
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
	return kvroute_is_alive(peer, now) && !kvroute_is_full(peer);
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

/* By the blocks of the prompt and its length. */
void
kvroute_prompt_digest(kvroute_ctx_t *ctx)
{
	struct kvr_prompt_info info = { .size = sizeof(info) };
	uint64_t local, sequence, of[2];

	if (ctx->digest != 0 || ctx->reader == NULL ||
	    ctx->reader->prompt == NULL ||
	    kvr_prompt_info_get(ctx->reader->prompt, &info) != KVR_OK ||
	    info.blocks == 0 || kvr_prompt_hash(ctx->reader->prompt,
	    info.blocks - 1, &local, &sequence) != KVR_OK)
		return;
	of[0] = sequence;
	of[1] = info.units;
	ctx->digest = shared_key((u_char *)of, sizeof(of));
}

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
