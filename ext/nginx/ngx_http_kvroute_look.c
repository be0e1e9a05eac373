/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_look.c - the peers as they are now, for a choice: their
 * states in nginx; members.h has the ids of their workers.
 */
#include "ngx_http_kvroute_look.h"

#include "judge.h"
#include "members.h"
#include "roles.h"
#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_follow.h"
#include "ngx_http_kvroute_try.h"

static bool
is_named(const ngx_str_t *a, const void *name, size_t len)
{
	return a->len == len && ngx_memcmp(a->data, name, len) == 0;
}

#if (KVROUTE_STICKY)

/* Does "sticky" ask for it? One that drains is only for such requests. */
static bool
is_hinted(const ngx_http_upstream_rr_peer_t *peer, const ngx_str_t *hint)
{
	return hint != NULL && is_named(&peer->sid, hint->data, hint->len);
}

static const ngx_str_t *
hint_of(const kvroute_ctx_t *ctx)
{
	return ctx->request->upstream->peer.hint;
}

static bool
is_draining(const ngx_http_upstream_rr_peer_t *peer)
{
	return peer->down == NGX_HTTP_UPSTREAM_DRAINING;
}

#else

static bool
is_hinted(const ngx_http_upstream_rr_peer_t *peer, const ngx_str_t *hint)
{
	(void)peer;
	return hint != NULL;
}

static const ngx_str_t *
hint_of(const kvroute_ctx_t *ctx)
{
	(void)ctx;
	return NULL;
}

static bool
is_draining(const ngx_http_upstream_rr_peer_t *peer)
{
	(void)peer;
	return false;
}

#endif

/*
 * If a process dies with nginx's lock of the peers, the lock stays held, so
 * only copying is done under it. A peer with another name is of another
 * generation, see follow.c.
 */
static void
list_look(ngx_http_upstream_rr_peers_t *peers, const uintptr_t *tried,
    const ngx_str_t *hint, struct known *known, ngx_uint_t n)
{
	const ngx_uint_t word = 8 * sizeof(uintptr_t);
	ngx_http_upstream_rr_peer_t *peer;
	time_t now = ngx_time();
	ngx_uint_t i;

	ngx_http_upstream_rr_peers_rlock(peers);
	for (peer = peers->peer, i = 0; i < n; i++, known++) {
		known->hinted = peer != NULL && is_hinted(peer, hint);
		known->usable = peer != NULL && (kvroute_is_alive(peer, now) ||
		    (known->hinted && is_draining(peer))) &&
		    is_named(&peer->name, known->name, known->name_len) &&
		    (tried == NULL || (tried[i / word] >> i % word & 1) == 0);
		known->full = known->usable && kvroute_is_full(peer);
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

void
kvroute_peers_look(kvroute_ctx_t *ctx)
{
	kvroute_srv_conf_t *up = ctx->up;
	ngx_http_upstream_rr_peers_t *first = up->upstream->peer.data;
	struct known *backup = up->fleet.known + up->fleet.n_first;
	bool on_backup = ctx->rrp.peers != first;
	ngx_uint_t i;

	if (up->fleet.kvr != NULL)
		kvroute_peers_join(up, ctx->request->connection->log);
	if (!on_backup)
		list_look(first, ctx->rrp.tried, hint_of(ctx), up->fleet.known,
		    up->fleet.n_first);
	else
		for (i = 0; i < up->fleet.n_first; i++)
			up->fleet.known[i].usable = up->fleet.known[i].full =
			    up->fleet.known[i].hinted = false;
	if (up->fleet.n_known > up->fleet.n_first)
		list_look(first->next, on_backup ? ctx->rrp.tried : NULL,
		    hint_of(ctx), backup, up->fleet.n_known -
		    up->fleet.n_first);
	if (up->fleet.kvr != NULL)
		members_look(&up->fleet, kvr_clock_now());
	if (up->parted)
		roles_mark(&up->fleet, kvr_clock_now());
}

void
kvroute_room_look(kvroute_srv_conf_t *up)
{
	ngx_http_upstream_rr_peers_t *first = up->upstream->peer.data;

	list_look(first, NULL, NULL, up->fleet.known, up->fleet.n_first);
	if (up->fleet.n_known > up->fleet.n_first)
		list_look(first->next, NULL, NULL, up->fleet.known +
		    up->fleet.n_first, up->fleet.n_known - up->fleet.n_first);
	if (up->parted)
		roles_mark(&up->fleet, kvr_clock_now());
	judge_mark(&up->fleet);
}
