/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_table.h - the peers as nginx has them. */
#ifndef NGX_HTTP_KVROUTE_TABLE_H
#define NGX_HTTP_KVROUTE_TABLE_H

#include "ngx_http_kvroute_conf.h"

/* By nginx's rules: not down, and not failed just now; at its max_conns. */
bool ngx_http_kvroute_is_alive(const ngx_http_upstream_rr_peer_t *peer,
    time_t now);
bool ngx_http_kvroute_is_full(const ngx_http_upstream_rr_peer_t *peer);
/* Books the requests on servers that were reset: again, as they change. */
void ngx_http_kvroute_stale_book(ngx_http_kvroute_srv_conf_t *up);

#endif
