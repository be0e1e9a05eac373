#include "ngx_http_kvroute.h"
ngx_int_t ngx_http_kvroute_status_handler(ngx_http_request_t *r) { return NGX_HTTP_NOT_FOUND; }
