/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_advice.h - lines of a configuration that lose requests. */
#ifndef NGX_HTTP_KVROUTE_ADVICE_H
#define NGX_HTTP_KVROUTE_ADVICE_H

#include "ngx_http_kvroute_conf.h"

/* A location is merged, after those of nginx's own modules. */
void kvroute_location_advise(ngx_conf_t *cf);
/* The configuration is read; NGX_ERROR: an upstream has another method. */
ngx_int_t kvroute_upstreams_advise(ngx_conf_t *cf);

#endif
