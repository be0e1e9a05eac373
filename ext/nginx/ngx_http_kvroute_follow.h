/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_follow.h - peers that nginx adds and removes while it runs.
 */
#ifndef NGX_HTTP_KVROUTE_FOLLOW_H
#define NGX_HTTP_KVROUTE_FOLLOW_H

#include "ngx_http_kvroute_conf.h"

/* Makes fleet.known of the peers as they are now; false: no memory. */
bool kvroute_peers_list(kvroute_srv_conf_t *up, ngx_log_t *log);
void kvroute_peers_free(kvroute_srv_conf_t *up);
/* The same, if they have changed since. */
void kvroute_peers_follow(kvroute_srv_conf_t *up, ngx_log_t *log);
bool kvroute_peers_changed(const kvroute_srv_conf_t *up);
/* Adds workers of new peers, as far as the lock is free. */
void kvroute_peers_join(kvroute_srv_conf_t *up, ngx_log_t *log);
/* Now and then: removes those of peers that have left. */
void kvroute_peers_leave(kvroute_srv_conf_t *up, ngx_log_t *log);

#endif
