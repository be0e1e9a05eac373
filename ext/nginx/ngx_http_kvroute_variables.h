/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_variables.h - variables for logs. */
#ifndef NGX_HTTP_KVROUTE_VARIABLES_H
#define NGX_HTTP_KVROUTE_VARIABLES_H

#include "ngx_http_kvroute_conf.h"

ngx_int_t kvroute_variables_add(ngx_conf_t *cf);

#endif
