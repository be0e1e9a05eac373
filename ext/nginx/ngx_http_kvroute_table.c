/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_table.c - the peers as nginx has them. */
#include "ngx_http_kvroute_table.h"

#include "stale.h"

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

static ngx_uint_t
connections_of(ngx_http_kvroute_srv_conf_t *up, size_t i)
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
ngx_http_kvroute_stale_book(ngx_http_kvroute_srv_conf_t *up)
{
	size_t place = 0, i = stale_next(&up->fleet, &place, 0);

	for (; i < up->fleet.n_known; i = stale_next(&up->fleet, &place,
	    i + 1))
		stale_book(&up->fleet, i, connections_of(up, i),
		    kvr_clock_now());
}
