/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_server.c - which facts of kvroute_server apply to a peer:
 * those of its address, or those of the name that it is of.
 */
#include "ngx_http_kvroute_server.h"

#include "ngx_http_kvroute_find.h"

#if (KVROUTE_RESOLVE)

/* Do these facts apply to a name with that port; 0: any, by its service? */
static bool
is_of_name(const kvroute_server_t *server, const ngx_str_t *host,
    in_port_t port)
{
	return server->host.len > 0 && kvroute_same(&server->host, host) &&
	    (port == 0 ? !server->ported : server->port == port);
}

static kvroute_server_t *
server_of_name(kvroute_srv_conf_t *up, const ngx_http_upstream_rr_peer_t *peer)
{
	kvroute_server_t *servers = up->servers.elts;
	ngx_http_upstream_host_t *host = peer->host;
	ngx_uint_t i;

	for (i = 0; i < up->servers.nelts && host != NULL; i++) {
		if (is_of_name(&servers[i], &host->name, host->service.len > 0 ?
		    0 : ngx_inet_get_port(peer->sockaddr)))
			return &servers[i];
	}
	return NULL;
}

/* Is it a name that nginx resolves while it runs? */
static bool
is_resolved(const kvroute_srv_conf_t *up, const kvroute_server_t *server)
{
	ngx_http_upstream_server_t *s = up->upstream->servers == NULL ? NULL :
	    up->upstream->servers->elts;
	ngx_uint_t i;

	for (i = 0; s != NULL && i < up->upstream->servers->nelts; i++) {
		if (s[i].host.len > 0 && is_of_name(server, &s[i].host,
		    s[i].service.len > 0 || s[i].naddrs == 0 ? 0 :
		    ngx_inet_get_port(s[i].addrs[0].sockaddr)))
			return true;
	}
	return false;
}

#endif

/* A line for an address counts more than the line for its name. */
struct server_facts *
kvroute_server_of(kvroute_srv_conf_t *up,
    const ngx_http_upstream_rr_peer_t *peer)
{
	kvroute_server_t *servers = up->servers.elts, *named = NULL;
	ngx_uint_t i;

	for (i = 0; i < up->servers.nelts; i++) {
		if (servers[i].name.len > 0 &&
		    kvroute_same(&servers[i].name, &peer->name))
			return &servers[i].told;
	}
#if (KVROUTE_RESOLVE)
	named = server_of_name(up, peer);
#endif
	return named == NULL ? NULL : &named->told;
}

/* A name that is resolved now has one address. */
static ngx_int_t
address_find(ngx_conf_t *cf, kvroute_server_t *server)
{
	ngx_url_t u;

	ngx_memzero(&u, sizeof(u));
	u.url = server->text;
	u.default_port = 80;
	if (ngx_parse_url(cf->pool, &u) != NGX_OK) {
		ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "%s in \"%V\" in "
		    "%V:%ui", u.err ? u.err : "error", &server->text,
		    &server->file, server->line);
		return NGX_ERROR;
	}
	if (u.naddrs != 1) {
		ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "\"%V\" has %ui "
		    "addresses: name each of them in %V:%ui", &server->text,
		    u.naddrs, &server->file, server->line);
		return NGX_ERROR;
	}
	server->name = u.addrs[0].name;
	server->host.len = 0;
	return NGX_OK;
}

ngx_int_t
kvroute_servers_settle(ngx_conf_t *cf, kvroute_srv_conf_t *up)
{
	kvroute_server_t *servers = up->servers.elts;
	ngx_uint_t i;

	for (i = 0; i < up->servers.nelts; i++) {
		if (servers[i].name.len > 0)
			continue;
#if (KVROUTE_RESOLVE)
		servers[i].told.used = is_resolved(up, &servers[i]);
#endif
		if (!servers[i].told.used &&
		    address_find(cf, &servers[i]) != NGX_OK)
			return NGX_ERROR;
	}
	return NGX_OK;
}

/* Once the workers are those of the peers. */
void
kvroute_servers_check(kvroute_srv_conf_t *up, ngx_log_t *log)
{
	kvroute_server_t *servers = up->servers.elts;
	ngx_uint_t i;

	for (i = 0; i < up->servers.nelts; i++) {
		if (!servers[i].told.used)
			ngx_log_error(NGX_LOG_WARN, log, 0, "kvroute_server "
			    "\"%V\" in upstream \"%V\" is not a server of it",
			    &servers[i].name, &up->upstream->host);
	}
}
