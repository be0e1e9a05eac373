/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_peer.h - the life of a request, as kvr_lease(3) draws it. */
#ifndef NGX_HTTP_KVROUTE_PEER_H
#define NGX_HTTP_KVROUTE_PEER_H

#include "ngx_http_kvroute_conf.h"

ngx_int_t kvroute_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);
/* Has no directive behind "kvroute" put another method around it? */
bool kvroute_is_outermost(const ngx_http_upstream_srv_conf_t *us);

#endif
