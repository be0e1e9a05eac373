/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_table.c - up->known, the peers as a process knows them, by
 * name, key or worker.
 */
#include "ngx_http_kvroute_table.h"

/* FNV-1a. */
uint64_t
ngx_http_kvroute_key(const u_char *name, size_t n)
{
	uint64_t key = UINT64_C(0xcbf29ce484222325);
	size_t i;

	for (i = 0; i < n; i++)
		key = (key ^ name[i]) * UINT64_C(0x100000001b3);
	return key | 1;
}

bool
ngx_http_kvroute_is_called(const ngx_http_kvroute_known_t *known,
    const ngx_str_t *name)
{
	return known->name_len == name->len &&
	    ngx_memcmp(known->name, name->data, name->len) == 0;
}

/* Its position among `n` first of up->known; n: none. */
ngx_uint_t
ngx_http_kvroute_peer_called(const ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *name, ngx_uint_t n)
{
	ngx_uint_t i;

	for (i = 0; i < n && !ngx_http_kvroute_is_called(&up->known[i], name);
	    i++)
		continue;
	return i;
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

void
ngx_http_kvroute_ids_due(ngx_http_kvroute_known_t *known)
{
	uint32_t i;

	for (i = 0; i < known->ranks; i++)
		known->flags[i] |= NGX_HTTP_KVROUTE_RANK_DUE;
	known->due = known->ranks;
}

/* ---------------------------------------------------- as nginx has them --- */

bool
ngx_http_kvroute_is_alive(const ngx_http_upstream_rr_peer_t *peer, time_t now)
{
	return !peer->down && !(peer->max_fails &&
	    peer->fails >= peer->max_fails &&
	    now - peer->checked <= peer->fail_timeout);
}

bool
ngx_http_kvroute_is_full(const ngx_http_upstream_rr_peer_t *peer)
{
	return peer->max_conns && peer->conns >= peer->max_conns;
}
