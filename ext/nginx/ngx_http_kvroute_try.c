/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_try.c - the servers that a request has tried, by name: a
 * peer may be freed once nginx has taken it back.
 */
#include "ngx_http_kvroute_try.h"

#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_table.h"

ngx_str_t
ngx_http_kvroute_taken_name(const ngx_http_kvroute_ctx_t *ctx)
{
	const ngx_str_t *names = ctx->taken.elts;
	ngx_str_t none = ngx_null_string;

	return ctx->taken.nelts == 0 ? none : names[ctx->taken.nelts - 1];
}

bool
ngx_http_kvroute_has_tried(const ngx_http_kvroute_ctx_t *ctx, ngx_uint_t i)
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
ngx_http_kvroute_taken_peer(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_str_t name = ngx_http_kvroute_taken_name(ctx);

	return known_find(&ctx->up->fleet, name.data, name.len,
	    ctx->up->fleet.n_known);
}

/*
 * The engine alone has the rank, of several; but each rank reaches its state.
 */
uint64_t
ngx_http_kvroute_taken_worker(ngx_http_kvroute_ctx_t *ctx, uint64_t draw)
{
	const struct known *known;
	uint64_t id = 0;
	ngx_uint_t i;
	uint32_t n;

	if (ctx->book.worker != 0 && ctx->up->shadow == NGX_HTTP_KVROUTE_CHOOSE)
		return ctx->book.worker;
	i = ngx_http_kvroute_taken_peer(ctx);
	if (i == ctx->up->fleet.n_known)
		return 0;
	known = &ctx->up->fleet.known[i];
	for (n = 0; n < known->ranks && id == 0; n++)
		id = known->ids[(draw + n) % known->ranks];
	return id;
}

/* In shadow mode this is not the worker that was used. */
ngx_str_t
ngx_http_kvroute_worker_name(ngx_http_kvroute_ctx_t *ctx)
{
	struct known *known = ctx->up->fleet.known;
	ngx_str_t name = ngx_null_string;
	ngx_uint_t i;
	uint32_t rank;

	if (ctx->book.worker == 0)
		return name;
	if (ctx->up->shadow == NGX_HTTP_KVROUTE_CHOOSE)
		return ngx_http_kvroute_taken_name(ctx);
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
	return ngx_http_kvroute_is_alive(peer, now) &&
	    !ngx_http_kvroute_is_full(peer);
}

bool
ngx_http_kvroute_another_usable(ngx_http_kvroute_ctx_t *ctx)
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
