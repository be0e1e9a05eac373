/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_path.c - the endpoint of a request.
 *
 *   location = /ask { proxy_pass http://engines/v1/chat/completions; }
 *
 *   client's path    /ask                    r->uri
 *   engine's path    /v1/chat/completions    r->upstream->uri, since nginx has
 *                                            made the request for the engine
 *
 * The engine's path counts. A long body is read before nginx has made it, so a
 * location remembers which endpoint a client's path has led to: such a body is
 * read as that, and again if that was wrong. Only the first one of a process is
 * read in one turn of its loop.
 */
#include "ngx_http_kvroute_path.h"

#include "ngx_http_kvroute_find.h"

#include "shared.h"


/* ---------------------------------------------------------------- paths --- */

/* Without its arguments. */
static ngx_str_t
path_cut(ngx_str_t uri)
{
	u_char *end = ngx_strlchr(uri.data, uri.data + uri.len, '?');

	if (end != NULL)
		uri.len = (size_t)(end - uri.data);
	return uri;
}

/* False: the request for the engine is not made yet. */
static bool
engine_path(ngx_http_request_t *r, ngx_str_t *path)
{
	ngx_http_upstream_t *u = r->upstream;

	if (u == NULL || u->uri.len == 0)
		return false;
	/* As the client wrote it: then nginx has it decoded. */
	*path = kvroute_same(&u->uri, &r->unparsed_uri) ? r->uri :
	    path_cut(u->uri);
	return true;
}

static enum endpoint
endpoint_named(const ngx_str_t *path)
{
	return endpoint_of((const char *)path->data, path->len);
}

/* --------------------------------------------------------------- memory --- */

static kvroute_led_t *
led_place(kvroute_loc_conf_t *loc, const ngx_str_t *path, uint32_t *key)
{
	*key = ngx_crc32_short(path->data, path->len) | 1;
	return &loc->led[*key / 2 % KVROUTE_LED];
}

static void
led_keep(kvroute_loc_conf_t *loc, const ngx_str_t *path, enum endpoint endpoint)
{
	kvroute_led_t *led;
	uint32_t key;

	led = led_place(loc, path, &key);
	if (endpoint != endpoint_named(path))
		*led = (kvroute_led_t){ key, endpoint };
	else if (led->key == key)
		led->key = 0;
}

enum endpoint
kvroute_endpoint(ngx_http_request_t *r)
{
	kvroute_loc_conf_t *loc = kvroute_loc(r);
	kvroute_led_t *led;
	enum endpoint endpoint;
	ngx_str_t path;
	uint32_t key;

	if (loc->endpoint != KVROUTE_BY_PATH)
		return (enum endpoint)loc->endpoint;
	if (engine_path(r, &path)) {
		endpoint = endpoint_named(&path);
		led_keep(loc, &r->uri, endpoint);
		return endpoint;
	}
	led = led_place(loc, &r->uri, &key);
	return led->key == key ? led->endpoint : endpoint_named(&r->uri);
}

/* -------------------------------------------------------------- unknown --- */

void
kvroute_path_count(kvroute_srv_conf_t *up, ngx_http_request_t *r)
{
	ngx_str_t path;

	if (!engine_path(r, &path))
		path = r->uri;
	shared_path(up->fleet.shared, (const char *)path.data, path.len);
}
