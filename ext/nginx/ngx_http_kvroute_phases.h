/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_phases.h - filters and handlers of phases. */
#ifndef NGX_HTTP_KVROUTE_PHASES_H
#define NGX_HTTP_KVROUTE_PHASES_H

#include "ngx_http_kvroute_conf.h"

ngx_int_t kvroute_phases_add(ngx_conf_t *cf);

#endif
