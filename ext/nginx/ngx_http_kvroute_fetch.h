/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_fetch.h - asks an engine by a connection of its own, beside
 * the requests.
 *
 *   request --> connect --> send --> receive --> read() --> true: more of it
 *                 |                    |           |
 *                 +--- failed() <------+           +--> false: it has left
 */
#ifndef NGX_HTTP_KVROUTE_FETCH_H
#define NGX_HTTP_KVROUTE_FETCH_H

#include "ngx_http_kvroute_conf.h"

typedef struct ngx_http_kvroute_fetch_s ngx_http_kvroute_fetch_t;

enum { NGX_HTTP_KVROUTE_FETCH_REQUEST = 512 };

struct ngx_http_kvroute_fetch_s {
	/* its user's, before init */
	void *data;
	/*
	 * A piece of the response; n is 0 at the end of the connection. False:
	 * the fetch has been left, or has begun anew.
	 */
	bool (*read)(ngx_http_kvroute_fetch_t *fetch, const u_char *bytes,
	    size_t n);
	/* It must be left. */
	void (*failed)(ngx_http_kvroute_fetch_t *fetch, const char *why);
	/* its user's, before each request; 0 bytes: it fails */
	u_char request[NGX_HTTP_KVROUTE_FETCH_REQUEST];
	size_t to_send;
	/* its own */
	ngx_str_t name;          /* in `text` */
	u_char text[KVR_NAME_MAX];
	ngx_sockaddr_t address;
	socklen_t address_len;
	ngx_log_t *log;
	ngx_connection_t *connection; /* or NULL */
	ngx_event_t deadline;
	size_t sent;
};

/* Failures to connect are expected: the log should pass over them. */
void ngx_http_kvroute_fetch_init(ngx_http_kvroute_fetch_t *fetch,
    const ngx_http_kvroute_known_t *known, ngx_log_t *log);
/* As nginx names peers; a local socket has no such name. */
ngx_str_t ngx_http_kvroute_fetch_host(ngx_http_kvroute_fetch_t *fetch);
/* Sends the request and waits for the response, so long for all of it. */
void ngx_http_kvroute_fetch(ngx_http_kvroute_fetch_t *fetch,
    ngx_msec_t deadline);
/* Closes what is open; again is no error. */
void ngx_http_kvroute_fetch_leave(ngx_http_kvroute_fetch_t *fetch);

#endif
