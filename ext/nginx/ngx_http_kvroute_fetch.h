/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_fetch.h - makes errands to engines, each by a connection of
 * its own, beside the requests.
 *
 *   errand --> connect --> send --> receive --> response.h --> errand_data
 *     ^           |                    |                           |
 *     |           +--- errand_failed <-+                           |
 *     +------------------------- ERRAND_AGAIN: another path -------+
 */
#ifndef NGX_HTTP_KVROUTE_FETCH_H
#define NGX_HTTP_KVROUTE_FETCH_H

#include "ngx_http_kvroute_conf.h"

#include "errand.h"

/* Does nginx have enough connections for one more? */
bool ngx_http_kvroute_fetch_room(void);
/* Begins an errand that is open. */
void ngx_http_kvroute_fetch(ngx_http_kvroute_srv_conf_t *up,
    struct errand *errand);
/* Closes all that is open of it; again is no error. */
void ngx_http_kvroute_fetch_leave(struct errand *errand);
/* The same, and it is to be freed. */
void ngx_http_kvroute_fetch_free(struct errand *errand);

#endif
