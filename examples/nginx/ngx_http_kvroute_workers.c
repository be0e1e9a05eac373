/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_workers.c - workers of the region are the upstream's peers,
 * by name, "address:port".
 *
 * The master makes them equal after each start and reload; what is on record
 * for those that stay, stays, and so does a state set at run time. An nginx
 * worker looks up the ids of its peers once, and again when a worker was
 * reset, added or removed anywhere, which the zone's epoch tells.
 */
#include "ngx_http_kvroute.h"

/* ---------------------------------------------------------------- peers --- */

typedef struct {
	ngx_http_upstream_rr_peers_t *peers;
	ngx_http_upstream_rr_peer_t *peer;
} walk_t;

static void
walk_settle(walk_t *w)
{
	while (w->peer == NULL && w->peers != NULL) {
		w->peers = w->peers->next;
		w->peer = w->peers == NULL ? NULL : w->peers->peer;
	}
}

/* All peers of an upstream, backup ones behind the others. */
static ngx_http_upstream_rr_peer_t *
walk_begin(ngx_http_kvroute_srv_conf_t *up, walk_t *w)
{
	w->peers = up->upstream->peer.data;
	w->peer = w->peers == NULL ? NULL : w->peers->peer;
	walk_settle(w);
	return w->peer;
}

static ngx_http_upstream_rr_peer_t *
walk_next(walk_t *w)
{
	w->peer = w->peer->next;
	walk_settle(w);
	return w->peer;
}

ngx_uint_t
ngx_http_kvroute_peers_count(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_uint_t n = 0;
	walk_t w;

	if (walk_begin(up, &w) == NULL)
		return 0;
	do {
		n++;
	} while (walk_next(&w) != NULL);
	return n;
}

static bool
same(const ngx_str_t *a, const void *name, size_t len)
{
	return a->len == len && ngx_memcmp(a->data, name, len) == 0;
}

static ngx_http_kvroute_server_t *
server_find(ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *name)
{
	ngx_http_kvroute_server_t *servers;
	ngx_uint_t i;

	if (up->servers == NULL)
		return NULL;
	servers = up->servers->elts;
	for (i = 0; i < up->servers->nelts; i++) {
		if (same(name, servers[i].name.data, servers[i].name.len))
			return &servers[i];
	}
	return NULL;
}

/* -------------------------------------------------------------- workers --- */

static void
facts_make(ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *name,
    ngx_uint_t weight, struct kvr_worker *facts)
{
	ngx_http_kvroute_server_t *server = server_find(up, name);

	if (server != NULL) {
		*facts = server->facts;
		server->used = true;
	} else {
		(void)kvr_worker_init(facts, sizeof(*facts));
	}
	facts->weight = weight > 0 ? (double)weight : 1.0;
	facts->retain = up->retain;
}

/* There, with the facts of the configuration; a state set by hand stays. */
static int
worker_ensure(ngx_http_kvroute_srv_conf_t *up, struct kvr *k,
    const ngx_str_t *name, ngx_uint_t weight, uint64_t *id)
{
	const char *text = (const char *)name->data;
	struct kvr_worker facts, now;
	int error;

	facts_make(up, name, weight, &facts);
	error = kvr_worker_find(k, text, name->len, 0, id);
	if (error != KVR_OK) {
		error = kvr_worker_add(k, text, name->len, &facts, id);
		/* Another process was quicker. */
		if (error == KVR_EEXIST)
			error = kvr_worker_find(k, text, name->len, 0, id);
		return error;
	}
	now.size = sizeof(now);
	error = kvr_worker_get(k, *id, &now);
	if (error != KVR_OK)
		return error;
	facts.state = now.state;
	return kvr_worker_set(k, *id, &facts);
}

static bool
is_peer(ngx_http_kvroute_srv_conf_t *up, const char *name, size_t len)
{
	ngx_http_upstream_rr_peer_t *peer;
	walk_t w;

	for (peer = walk_begin(up, &w); peer != NULL; peer = walk_next(&w)) {
		if (same(&peer->name, name, len))
			return true;
	}
	return false;
}

static void
workers_drop(ngx_http_kvroute_srv_conf_t *up, struct kvr *k, ngx_log_t *log)
{
	char name[KVR_NAME_MAX];
	uint64_t id = 0;
	size_t len;

	while (kvr_worker_next(k, &id) == KVR_OK && id != 0) {
		if (kvr_worker_name(k, id, name, sizeof(name), &len) !=
		    KVR_OK || is_peer(up, name, len))
			continue;
		ngx_log_error(NGX_LOG_NOTICE, log, 0, "kvroute of upstream "
		    "\"%V\": worker %*s has gone", &up->upstream->host, len,
		    name);
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
			    "\"%V\" in upstream \"%V\" is no server of it",
			    &servers[i].name, &up->upstream->host);
	}
}

void
ngx_http_kvroute_workers_sync(ngx_http_kvroute_srv_conf_t *up, struct kvr *k,
    ngx_log_t *log)
{
	ngx_http_upstream_rr_peer_t *peer;
	uint64_t id;
	walk_t w;
	int error;

	/* From here on nobody adds what the past had; see found. */
	up->load = ngx_atomic_fetch_add(&up->shared->loads, 1) + 1;
	for (peer = walk_begin(up, &w); peer != NULL; peer = walk_next(&w)) {
		error = worker_ensure(up, k, &peer->name,
		    (ngx_uint_t)peer->weight, &id);
		if (error != KVR_OK)
			ngx_log_error(NGX_LOG_ERR, log, 0, "kvroute of "
			    "upstream \"%V\": worker \"%V\": %s",
			    &up->upstream->host, &peer->name,
			    kvr_strerror(error));
	}
	workers_drop(up, k, log);
	servers_check(up, log);
	(void)ngx_atomic_fetch_add(&up->shared->epoch, 1);
}

/* --------------------------------------------------- workers, while it runs */

/*
 * A peer that is no worker came while nginx ran, found by its resolver; or has
 * gone, and this nginx worker lives on with a configuration of the past.
 */
static bool
found(ngx_http_kvroute_srv_conf_t *up, ngx_str_t *name, uint64_t *id)
{
	int error = kvr_worker_find(up->kvr, (const char *)name->data,
	    name->len, 0, id);

	if (error == KVR_EWORKER && up->load == up->shared->loads)
		error = worker_ensure(up, up->kvr, name, 1, id);
	return error == KVR_OK;
}

uint64_t
ngx_http_kvroute_worker(ngx_http_kvroute_srv_conf_t *up, ngx_uint_t i,
    ngx_str_t *name)
{
	/* Peers that came after the start have no place there. */
	ngx_http_kvroute_known_t *known = i < up->n_peers ? &up->known[i]
	    : NULL;
	ngx_atomic_uint_t epoch = up->shared->epoch;
	uint64_t id;

	if (up->epoch != epoch) {
		ngx_memzero(up->known, up->n_peers * sizeof(*up->known));
		up->epoch = epoch;
	}
	if (known != NULL && known->id != 0 &&
	    same(name, known->name, known->name_len))
		return known->id;
	if (!found(up, name, &id))
		return 0;
	if (known != NULL) {
		known->id = id;
		known->name_len = name->len;
		ngx_memcpy(known->name, name->data, name->len);
	}
	return id;
}

uint64_t
ngx_http_kvroute_worker_reset(ngx_http_kvroute_srv_conf_t *up, uint64_t id)
{
	uint64_t now;

	if (kvr_worker_reset(up->kvr, id, &now) != KVR_OK)
		return id;
	(void)ngx_atomic_fetch_add(&up->shared->epoch, 1);
	return now;
}

size_t
ngx_http_kvroute_worker_name(ngx_http_kvroute_ctx_t *ctx, u_char *name)
{
	const ngx_http_kvroute_known_t *known = ctx->up->known;
	ngx_uint_t i;
	size_t len;

	if (ctx->up->kvr == NULL || ctx->worker == 0)
		return 0;
	for (i = 0; i < ctx->up->n_peers; i++) {
		if (known[i].id != ctx->worker)
			continue;
		ngx_memcpy(name, known[i].name, known[i].name_len);
		return known[i].name_len;
	}
	if (kvr_worker_name(ctx->up->kvr, ctx->worker, (char *)name,
	    KVR_NAME_MAX, &len) != KVR_OK)
		return 0;
	return ngx_min(len, KVR_NAME_MAX);
}
