/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_workers.c - the workers of the region are the peers of the
 * upstream, by name, "address:port"; of an engine with data-parallel ranks one
 * for each, all of that name.
 *
 * The master makes them equal after each start and reload. A worker that stays
 * keeps its record and a state set at run time. Peers that come and go
 * meanwhile: follow.c.
 */
#include "ngx_http_kvroute_workers.h"

#include "ngx_http_kvroute_server.h"
#include "ngx_http_kvroute_shared.h"
#include "ngx_http_kvroute_table.h"

enum { ADD_TRIES = 1000 }; /* of the library, if it is busy */

static void
windows_keep(const ngx_http_kvroute_server_t *server,
    const struct kvr_worker *now, struct kvr_worker *facts)
{
	if (server->windows != KVR_WINDOW_FULL &&
	    now->window_mode == server->windows) {
		facts->window_mode = now->window_mode;
		facts->window_tokens = now->window_tokens;
	}
	if (facts->window_capacity == 0 &&
	    facts->window_mode == KVR_WINDOW_DUAL)
		facts->window_capacity = now->window_capacity;
}

/*
 * As configured. What was read off the engine stays in force until it is read
 * again; `now`: the facts of a worker that exists, or NULL.
 */
static void
facts_make(const ngx_http_kvroute_known_t *known, uint32_t rank,
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
	if (ask && now != NULL) {
		facts->capacity_tokens = now->capacity_tokens;
		if (facts->block_tokens == 0)
			facts->block_tokens = now->block_tokens;
		if (!server->evicts)
			facts->eviction = now->eviction;
		windows_keep(server, now, facts);
	}
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
		facts_make(known, rank, NULL, &facts);
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
	facts_make(known, rank, &now, &facts);
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
	if (!up->follow.resolves)
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

void
ngx_http_kvroute_workers_changed(ngx_http_kvroute_srv_conf_t *up)
{
	(void)ngx_atomic_fetch_add(&up->shared->epoch, 1);
}
