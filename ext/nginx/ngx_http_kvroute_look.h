/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_look.h - the peers as they are now, for a choice. */
#ifndef NGX_HTTP_KVROUTE_LOOK_H
#define NGX_HTTP_KVROUTE_LOOK_H

#include "ngx_http_kvroute_conf.h"

/* Updates fleet.known for the choice of this request. */
void kvroute_peers_look(kvroute_ctx_t *ctx);
/* The same for usable or full peers, for a request without tries. */
void kvroute_room_look(kvroute_srv_conf_t *up);

#endif
