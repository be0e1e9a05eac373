/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_look.c - the peers as they are now, for a choice: what nginx
 * says of them, and the ids of their workers.
 *
 * An nginx worker looks up the ids of its peers once, and again when the zone's
 * epoch says that a worker was reset, added or removed. What it knew stays in
 * force until the lookup is done: an id that is gone by then means nothing to
 * the library.
 *
 *     epoch changes     due due due         ids are those of before
 *     lock is held      due due due         the same
 *     looked up          -   -  due         a new id, or none: due until there
 *                                           is one
 */
#include "ngx_http_kvroute_look.h"

#include "ngx_http_kvroute_ctx.h"
#include "ngx_http_kvroute_follow.h"
#include "ngx_http_kvroute_shared.h"
#include "ngx_http_kvroute_table.h"

static bool
is_named(const ngx_str_t *a, const void *name, size_t len)
{
	return a->len == len && ngx_memcmp(a->data, name, len) == 0;
}

/*
 * If a process dies with nginx's lock of the peers, the lock stays held, so
 * only copying is done under it. A peer with another name is of another
 * generation, see follow.c.
 */
static void
list_look(ngx_http_upstream_rr_peers_t *peers, const uintptr_t *tried,
    ngx_http_kvroute_known_t *known, ngx_uint_t n)
{
	const ngx_uint_t word = 8 * sizeof(uintptr_t);
	ngx_http_upstream_rr_peer_t *peer;
	time_t now = ngx_time();
	ngx_uint_t i;

	ngx_http_upstream_rr_peers_rlock(peers);
	for (peer = peers->peer, i = 0; i < n; i++, known++) {
		known->usable = peer != NULL &&
		    ngx_http_kvroute_is_alive(peer, now) &&
		    is_named(&peer->name, known->name, known->name_len) &&
		    (tried == NULL || (tried[i / word] >> i % word & 1) == 0);
		known->full = known->usable && ngx_http_kvroute_is_full(peer);
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

/* If the lock is held, what was known stays. */
static void
id_look(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_known_t *known,
    uint32_t rank)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	uint64_t id = 0;
	int error = kvr_worker_find(up->kvr, (const char *)known->name,
	    known->name_len, rank, &id);

	if (error == KVR_OK)
		error = kvr_worker_get(up->kvr, id, &facts);
	if (error == KVR_EBUSY)
		return;
	if (error != KVR_OK) {
		known->ids[rank] = 0;
		known->flags[rank] = NGX_HTTP_KVROUTE_RANK_DUE;
		known->joined = false;
		return;
	}
	known->ids[rank] = id;
	known->flags[rank] = facts.state == KVR_STATE_UP ?
	    NGX_HTTP_KVROUTE_RANK_OPEN : 0;
	known->due--;
}

/*
 * If the lock is held, the lookup is left to the next request. A peer is closed
 * if all of its workers are.
 */
static void
ids_of_peer(ngx_http_kvroute_srv_conf_t *up, ngx_http_kvroute_known_t *known)
{
	bool open = false;
	uint32_t i;

	if (known->due == 0)
		return;
	for (i = 0; i < known->ranks; i++) {
		if ((known->flags[i] & NGX_HTTP_KVROUTE_RANK_DUE) != 0)
			id_look(up, known, i);
		open |= (known->flags[i] & NGX_HTTP_KVROUTE_RANK_OPEN) != 0;
	}
	if (known->due == 0)
		known->closed = !open;
}

static void
ids_look(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_atomic_uint_t epoch = up->shared->epoch;
	ngx_http_kvroute_known_t *known, *end = up->known + up->n_peers;

	for (known = up->known; known < end && up->epoch != epoch; known++)
		ngx_http_kvroute_ids_due(known);
	up->epoch = epoch;
	for (known = up->known; known < end; known++)
		ids_of_peer(up, known);
}

void
ngx_http_kvroute_peers_look(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_srv_conf_t *up = ctx->up;
	ngx_http_upstream_rr_peers_t *first = up->upstream->peer.data;
	ngx_http_kvroute_known_t *backup = up->known + up->n_first;
	bool on_backup = ctx->rrp.peers != first;
	ngx_uint_t i;

	if (up->kvr != NULL)
		ngx_http_kvroute_peers_join(up, ctx->request->connection->log);
	if (!on_backup)
		list_look(first, ctx->rrp.tried, up->known, up->n_first);
	else
		for (i = 0; i < up->n_first; i++)
			up->known[i].usable = up->known[i].full = false;
	if (up->n_peers > up->n_first)
		list_look(first->next, on_backup ? ctx->rrp.tried : NULL,
		    backup, up->n_peers - up->n_first);
	if (up->kvr != NULL)
		ids_look(up);
}

void
ngx_http_kvroute_room_look(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_upstream_rr_peers_t *first = up->upstream->peer.data;

	list_look(first, NULL, up->known, up->n_first);
	if (up->n_peers > up->n_first)
		list_look(first->next, NULL, up->known + up->n_first,
		    up->n_peers - up->n_first);
}
