/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_workers.c - the workers of the region are the peers of the
 * upstream, by name, "address:port"; of an engine with data-parallel ranks one
 * for each, all of that name.
 *
 * The master makes them equal after each start and reload. A worker that stays
 * keeps its record and a state set at run time. An nginx worker looks up the
 * ids of its peers once, and again when the zone's epoch says that a worker was
 * reset, added or removed. What it knew stays in force until the lookup is
 * done: an id that is gone by then means nothing to the library. Peers that
 * come and go meanwhile: follow.c.
 *
 *     epoch changes     due due due         ids are those of before
 *     lock is held      due due due         the same
 *     looked up          -   -  due         a new id, or none: due until there
 *                                           is one
 */
#include "ngx_http_kvroute.h"

enum { ADD_TRIES = 1000 }; /* of the library, if it is busy */

/* Of a rank: its id is to be looked up; it was in use when that was done. */
enum { RANK_DUE = 1, RANK_OPEN = 2 };

static bool
is_named(const ngx_str_t *a, const void *name, size_t len)
{
	return a->len == len && ngx_memcmp(a->data, name, len) == 0;
}

/* -------------------------------------------------------------- workers --- */

static void
windows_keep(const ngx_http_kvroute_server_t *server,
    const struct kvr_worker *now, struct kvr_worker *facts)
{
	if (server->windows && now->window_mode == KVR_WINDOW_LEARN) {
		facts->window_mode = now->window_mode;
		facts->window_tokens = now->window_tokens;
	}
	if (facts->window_capacity == 0 &&
	    (facts->window_mode == KVR_WINDOW_LEARN ||
	    facts->window_mode == KVR_WINDOW_DUAL))
		facts->window_capacity = now->window_capacity;
}

/*
 * As configured. What was read off the engine stays in force until it is read
 * again; `now`: the facts of a worker that exists, or NULL.
 */
static void
facts_make(ngx_http_kvroute_srv_conf_t *up,
    const ngx_http_kvroute_known_t *known, uint32_t rank,
    const struct kvr_worker *now, struct kvr_worker *facts)
{
	ngx_http_kvroute_server_t *server = known->server;
	bool ask = server != NULL && server->ask;

	if (server != NULL) {
		*facts = server->facts;
		server->used = true;
	} else {
		(void)kvr_worker_init(facts, sizeof(*facts));
	}
	facts->rank = rank;
	facts->weight = known->weight > 0 ? (double)known->weight : 1.0;
	facts->retain = up->retain;
	if (ask && now != NULL) {
		facts->capacity_tokens = now->capacity_tokens;
		if (facts->block_tokens == 0)
			facts->block_tokens = now->block_tokens;
		if (!server->evicts)
			facts->eviction = now->eviction;
		windows_keep(server, now, facts);
	}
	/* Until there is a capacity to go by. */
	if (ask && facts->capacity_tokens == 0 &&
	    facts->retain == KVR_RETAIN_CAPACITY)
		facts->retain = KVR_RETAIN_AUTO;
	if (now != NULL)
		facts->state = now->state;
}

/* It exists: sets the configured facts, keeps a state set by order. */
static int
rank_ensure(ngx_http_kvroute_srv_conf_t *up, struct kvr *k,
    const ngx_http_kvroute_known_t *known, uint32_t rank, ngx_uint_t tries)
{
	const char *text = (const char *)known->name;
	struct kvr_worker facts, now;
	uint64_t id;
	int error;

	error = kvr_worker_find(k, text, known->name_len, rank, &id);
	if (error == KVR_EBUSY)
		return error;
	if (error != KVR_OK) {
		facts_make(up, known, rank, NULL, &facts);
		do /* what earlier workers have left goes a piece at a time */
			error = kvr_worker_add(k, text, known->name_len,
			    &facts, &id);
		while (error == KVR_EBUSY && --tries > 0);
		/* Another process was faster. */
		return error == KVR_EEXIST ? KVR_OK : error;
	}
	now.size = sizeof(now);
	error = kvr_worker_get(k, id, &now);
	if (error != KVR_OK)
		return error;
	facts_make(up, known, rank, &now, &facts);
	return kvr_worker_set(k, id, &facts);
}

int
ngx_http_kvroute_workers_ensure(ngx_http_kvroute_srv_conf_t *up,
    struct kvr *k, const ngx_http_kvroute_known_t *known, ngx_uint_t tries)
{
	uint32_t rank;
	int error = KVR_OK;

	for (rank = 0; rank < known->ranks && error == KVR_OK; rank++)
		error = rank_ensure(up, k, known, rank, tries);
	return error;
}

uint32_t
ngx_http_kvroute_ranks_named(const ngx_http_kvroute_srv_conf_t *up,
    const void *name, size_t len)
{
	const ngx_http_kvroute_known_t *known, *end = up->known + up->n_peers;

	for (known = up->known; known < end; known++) {
		if (known->name_len == len &&
		    ngx_memcmp(known->name, name, len) == 0)
			return known->ranks;
	}
	return 0;
}

static void
workers_drop(ngx_http_kvroute_srv_conf_t *up, struct kvr *k, ngx_log_t *log)
{
	struct kvr_worker facts = { .size = sizeof(facts) };
	char name[KVR_NAME_MAX];
	uint64_t id = 0;
	size_t len;

	while (kvr_worker_next(k, &id) == KVR_OK && id != 0) {
		if (kvr_worker_name(k, id, name, sizeof(name), &len) !=
		    KVR_OK || kvr_worker_get(k, id, &facts) != KVR_OK ||
		    facts.rank < ngx_http_kvroute_ranks_named(up, name, len))
			continue;
		ngx_log_error(NGX_LOG_NOTICE, log, 0, "kvroute of upstream "
		    "\"%V\": worker %*s, rank %uD, removed",
		    &up->upstream->host, len, name, facts.rank);
		(void)kvr_worker_remove(k, id);
	}
}

static void
servers_check(ngx_http_kvroute_srv_conf_t *up, ngx_log_t *log)
{
	ngx_http_kvroute_server_t *servers;
	ngx_uint_t i;

	if (up->servers == NULL)
		return;
	servers = up->servers->elts;
	for (i = 0; i < up->servers->nelts; i++) {
		if (!servers[i].used)
			ngx_log_error(NGX_LOG_WARN, log, 0, "kvroute_server "
			    "\"%V\" in upstream \"%V\" is not a server of it",
			    &servers[i].name, &up->upstream->host);
	}
}

void
ngx_http_kvroute_workers_sync(ngx_http_kvroute_srv_conf_t *up, struct kvr *k,
    ngx_log_t *log)
{
	ngx_http_kvroute_known_t *known, *end = up->known + up->n_peers;
	int error;

	/*
	 * First, because the table of workers may be full. Addresses of a name
	 * may be back soon: those are left to follow.c.
	 */
	if (!up->resolves)
		workers_drop(up, k, log);
	for (known = up->known; known < end; known++) {
		error = ngx_http_kvroute_workers_ensure(up, k, known,
		    ADD_TRIES);
		if (error != KVR_OK)
			ngx_log_error(NGX_LOG_ERR, log, 0, "kvroute of "
			    "upstream \"%V\": worker \"%*s\": %s",
			    &up->upstream->host, known->name_len, known->name,
			    kvr_strerror(error));
	}
	servers_check(up, log);
	ngx_http_kvroute_workers_changed(up);
}

/* ------------------------------------------------ peers, while it runs --- */

void
ngx_http_kvroute_ids_due(ngx_http_kvroute_known_t *known)
{
	uint32_t i;

	for (i = 0; i < known->ranks; i++)
		known->flags[i] |= RANK_DUE;
	known->due = known->ranks;
}

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

static bool
is_usable(const ngx_http_upstream_rr_peer_t *peer, time_t now)
{
	return is_alive(peer, now) && !is_full(peer);
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
		known->usable = peer != NULL && is_alive(peer, now) &&
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
		known->flags[rank] = RANK_DUE;
		known->joined = false;
		return;
	}
	known->ids[rank] = id;
	known->flags[rank] = facts.state == KVR_STATE_UP ? RANK_OPEN : 0;
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
		if ((known->flags[i] & RANK_DUE) != 0)
			id_look(up, known, i);
		open |= (known->flags[i] & RANK_OPEN) != 0;
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

void
ngx_http_kvroute_workers_changed(ngx_http_kvroute_srv_conf_t *up)
{
	(void)ngx_atomic_fetch_add(&up->shared->epoch, 1);
}

ngx_uint_t
ngx_http_kvroute_peer_of(ngx_http_kvroute_srv_conf_t *up, uint64_t worker,
    uint32_t *rank)
{
	ngx_uint_t i;

	for (i = 0; i < up->n_peers; i++) {
		for (*rank = 0; *rank < up->known[i].ranks; ++*rank) {
			if (up->known[i].ids[*rank] == worker)
				return i;
		}
	}
	return up->n_peers;
}

/* In shadow mode this is not the worker that was used. */
ngx_str_t
ngx_http_kvroute_worker_name(ngx_http_kvroute_ctx_t *ctx)
{
	ngx_http_kvroute_known_t *known = ctx->up->known;
	ngx_str_t name = ngx_null_string;
	ngx_uint_t i;
	uint32_t rank;

	if (ctx->worker == 0)
		return name;
	if (ctx->up->shadow == NGX_HTTP_KVROUTE_CHOOSE)
		return ngx_http_kvroute_taken_name(ctx);
	i = ngx_http_kvroute_peer_of(ctx->up, ctx->worker, &rank);
	if (i < ctx->up->n_peers) {
		name.data = known[i].name;
		name.len = known[i].name_len;
	}
	return name;
}
