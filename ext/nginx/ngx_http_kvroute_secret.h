/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_secret.h - the secret of the hashes, from its file. */
#ifndef NGX_HTTP_KVROUTE_SECRET_H
#define NGX_HTTP_KVROUTE_SECRET_H

#include "ngx_http_kvroute_conf.h"

/* NULL, or the reason for which it is refused; "": no file is named. */
const char *ngx_http_kvroute_secret_read(ngx_conf_t *cf,
    ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *file);

#endif
