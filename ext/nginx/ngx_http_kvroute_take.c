/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_take.c - takes a peer by nginx's stock method.
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
#include "ngx_http_kvroute_take.h"

#include "least.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_queue.h"

enum { WORD = 8 * sizeof(uintptr_t) };

static ngx_uint_t
words_of(ngx_uint_t peers)
{
	return (peers + WORD - 1) / WORD;
}

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

/*
 * The bits of tried peers are about those of fleet.known, also when these are
 * others than at the latest try. A spare word: the backups may be more by now.
 */
bool
kvroute_tried_fit(kvroute_ctx_t *ctx)
{
	kvroute_srv_conf_t *up = ctx->up;
	const ngx_str_t *names = ctx->taken.elts;
	ngx_uint_t words = words_of(up->fleet.n_known) + 1, i, at;
	uintptr_t *place = ctx->rrp.tried;

	if (words > ctx->words) {
		place = ngx_palloc(ctx->request->pool,
		    2 * words * sizeof(uintptr_t));
		if (place == NULL)
			return false;
		ctx->words = words;
		ctx->tried = place + words;
	}
	if (!kvroute_queue_make(ctx, ctx->words * sizeof(uintptr_t)))
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
