/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_table.h - the peers as a process knows them. */
#ifndef NGX_HTTP_KVROUTE_TABLE_H
#define NGX_HTTP_KVROUTE_TABLE_H

#include "ngx_http_kvroute_conf.h"

/* A peer as it was when the current choice began; backups come last. */
struct ngx_http_kvroute_known_s {
	u_char name[KVR_NAME_MAX];
	size_t name_len;
	uint64_t key;           /* of the name */
	ngx_sockaddr_t address;
	socklen_t address_len;
	ngx_http_kvroute_server_t *server; /* its facts, or NULL */
	ngx_http_kvroute_ask_t *ask; /* of the process that asks, or NULL */
	ngx_http_kvroute_poll_t *poll; /* likewise */
	bool joined;            /* its workers are in the region; */
	bool refused;           /* they cannot be, and that was logged */
	uint64_t *ids;          /* [ranks] of its workers; 0: not known */
	uint8_t *flags;         /* [ranks], as below */
	uint32_t ranks;
	uint32_t due;           /* ids to be looked up */
	bool named;             /* the engine is told which */
	bool closed;            /* drained or set down at run time, all */
	bool usable;            /* by nginx's rules, now */
	bool full;              /* and it would be, were it not full */
	bool down;              /* as configured, so not for a while only */
	ngx_uint_t conns, weight;
	struct health *health;  /* in the zone, or NULL */
	bool held;              /* for requests that have no other */
};

/* Flags of a rank: look up its id; it was in use when that was done. */
enum {
	NGX_HTTP_KVROUTE_RANK_DUE = 1,
	NGX_HTTP_KVROUTE_RANK_OPEN = 2
};

/* The ranks of a peer of this name; 0: there is none. */
uint32_t ngx_http_kvroute_ranks_named(const ngx_http_kvroute_srv_conf_t *up,
    const void *name, size_t len);
/* All ids of a peer are to be looked up. */
void ngx_http_kvroute_ids_due(ngx_http_kvroute_known_t *known);
/* The peer of a worker, in up->known, and its rank; n_peers: there is none. */
ngx_uint_t ngx_http_kvroute_peer_of(ngx_http_kvroute_srv_conf_t *up,
    uint64_t worker, uint32_t *rank);
/* The key of a name; never 0. */
uint64_t ngx_http_kvroute_key(const u_char *name, size_t n);
bool ngx_http_kvroute_is_called(const ngx_http_kvroute_known_t *known,
    const ngx_str_t *name);
/* The peer of this name among the first n of up->known; n: none. */
ngx_uint_t ngx_http_kvroute_peer_called(const ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *name, ngx_uint_t n);
/* By nginx's rules: not down, and not failed just now; at its max_conns. */
bool ngx_http_kvroute_is_alive(const ngx_http_upstream_rr_peer_t *peer,
    time_t now);
bool ngx_http_kvroute_is_full(const ngx_http_upstream_rr_peer_t *peer);

#endif
