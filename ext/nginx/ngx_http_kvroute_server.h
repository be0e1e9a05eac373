/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_server.h - which facts of kvroute_server apply to a peer. */
#ifndef NGX_HTTP_KVROUTE_SERVER_H
#define NGX_HTTP_KVROUTE_SERVER_H

#include "ngx_http_kvroute_conf.h"

/* kvroute_server: facts about one address, or all those of a name. */
struct kvroute_server_s {
	ngx_str_t name;         /* as peers are named; empty: of no address */
	ngx_str_t text;         /* as configured, there: */
	ngx_str_t file;
	ngx_uint_t line;
	ngx_str_t host;         /* of a name, and */
	in_port_t port;
	bool ported;            /* it was given */
	struct server_facts told;
};

/* The configuration of this peer, or of the name it is of; or NULL. */
struct server_facts *kvroute_server_of(
    kvroute_srv_conf_t *up, const ngx_http_upstream_rr_peer_t *peer);
/* Finds the addresses of kvroute_server, once all servers are read. */
ngx_int_t kvroute_servers_settle(ngx_conf_t *cf, kvroute_srv_conf_t *up);
/* Warns of facts that are of no peer. */
void kvroute_servers_check(kvroute_srv_conf_t *up, ngx_log_t *log);

#endif
