/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_reader.c - the reader of the body of one request.
 *
 * A READER belongs to its request:
 *
 *   asked for    (filter)    neither body nor prompt; it may stay so
 *   held         (queue)     body and prompt
 *   read                     the same; body_end was called
 *   used         (choice)    prompt only; a retry finds it here
 *   left         (headers)   nothing; both went to the spares
 *
 * The request may end at each such place; a cleanup of its pool does the rest.
 */
#include "ngx_http_kvroute_reader.h"

#include "body.h"
#include "counters.h"
#include "endpoint.h"
#include "ngx_http_kvroute_find.h"
#include "salt.h"
#include "shared.h"

/* Tests build it with another. */
#ifndef NGX_HTTP_KVROUTE_PIECE
#define NGX_HTTP_KVROUTE_PIECE 65536
#endif

enum { PIECE = NGX_HTTP_KVROUTE_PIECE };

void
kvroute_reader_body_leave(kvroute_reader_t *reader)
{
	spare_body_back(reader->up->spares, reader->body);
	reader->body = NULL;
	reader->facts.model = NULL;
	ngx_memzero(reader->facts.id, sizeof(reader->facts.id));
}

void
kvroute_reader_leave(kvroute_reader_t *reader)
{
	if (reader->held) {
		ngx_queue_remove(&reader->queue);
	}
	reader->held = false;
	kvroute_reader_body_leave(reader);
	spare_prompt_back(reader->up->spares, reader->prompt);
	reader->prompt = NULL;
}

/* ---------------------------------------------------------------- texts --- */

static u_char *
text_keep(ngx_str_t *to, u_char *room, const char *text, size_t n)
{
	to->data = room;
	to->len = n;
	return ngx_cpymem(room, text, n);
}

bool
kvroute_texts_keep(ngx_pool_t *pool, kvroute_texts_t *to,
    const struct body_facts *facts)
{
	size_t i, n = facts->model_length + 1;
	u_char *room;

	for (i = 0; i < BODY_IDS; i++)
		n += facts->id_length[i];
	room = ngx_pnalloc(pool, n);
	if (room != NULL)
		room = text_keep(&to->model, room, facts->model,
		    facts->model_length);
	for (i = 0; i < BODY_IDS && room != NULL; i++)
		room = text_keep(&to->ids[i], room, facts->id[i],
		    facts->id_length[i]);
	return room != NULL;
}

/* --------------------------------------------------------------- reader --- */

/* The request is over, in any way. */
static void
reader_cleanup(void *data)
{
	kvroute_reader_leave(data);
}

kvroute_reader_t *
kvroute_reader_make(ngx_http_request_t *r,
    kvroute_srv_conf_t *up, enum endpoint endpoint)
{
	kvroute_reader_t *reader = kvroute_kept_make(r,
	    reader_cleanup, sizeof(*reader));

	if (reader == NULL)
		return NULL;
	reader->up = up;
	reader->endpoint = endpoint;
	return reader;
}

kvroute_reader_t *
kvroute_reader_of(ngx_http_request_t *r)
{
	return kvroute_kept_of(r, reader_cleanup);
}

size_t
kvroute_chain_size(const ngx_chain_t *cl)
{
	size_t size = 0;

	for (; cl != NULL; cl = cl->next)
		size += (size_t)ngx_buf_size(cl->buf);
	return size;
}

size_t
kvroute_body_size(ngx_http_request_t *r)
{
	/* None of a body that nginx has thrown away. */
	return r->request_body == NULL ? 0 :
	    kvroute_chain_size(r->request_body->bufs);
}

bool
kvroute_bypassed(ngx_http_request_t *r)
{
	kvroute_loc_conf_t *loc = kvroute_loc(r);

	return ngx_http_test_predicates(r, loc->bypass) == NGX_DECLINED;
}

/* A body_line; its context is an ngx_array_t. */
static bool
line_is_ignored(void *lines, const char *line, size_t n)
{
#if (NGX_PCRE)
	const ngx_array_t *all = lines;
	ngx_regex_t **regex = all->elts;
	ngx_str_t text = { n, (u_char *)line };
	ngx_uint_t i;

	for (i = 0; i < all->nelts; i++)
		if (ngx_regex_exec(regex[i], &text, NULL, 0) >= 0)
			return true;
#endif
	return false;
}

bool
kvroute_reader_begin(kvroute_reader_t *reader)
{
	ngx_http_request_t *r = reader->request;
	kvroute_loc_conf_t *loc = kvroute_loc(r);

	reader->from = reader->link = r->request_body->bufs;
	reader->at = 0;
	reader->given = 0;
	if (reader->salt != NULL) {
		reader->most = reader->left = kvroute_body_size(r);
		return true;
	}
	reader->body = spare_body(reader->up->spares);
	if (!reader->early)
		reader->prompt = spare_prompt(reader->up->spares,
		    reader->up->fleet.kvr);
	if (reader->body == NULL ||
	    (!reader->early && reader->prompt == NULL)) {
		kvroute_reader_leave(reader);
		return false;
	}
	reader->most = reader->left = loc->max_body;
	reader->reasoning = loc->reasoning;
	reader->ignored = loc->ignored;
	if (loc->ignored != NULL)
		body_ignore(reader->body, line_is_ignored, loc->ignored);
	body_reasoning(reader->body, loc->reasoning == KVROUTE_KEEP);
	body_begin(reader->body, reader->prompt, reader->endpoint);
	return true;
}

/* At most PIECE bytes of this buffer, from reader->at on; 0: a read error. */
static size_t
buf_read(kvroute_reader_t *reader, ngx_buf_t *buf)
{
	static u_char piece[PIECE];
	off_t rest = ngx_buf_size(buf) - reader->at;
	size_t most = ngx_min(reader->left, PIECE);
	ssize_t n = (ssize_t)ngx_min(rest, (off_t)most);
	u_char *bytes = piece;

	if (ngx_buf_in_memory(buf))
		bytes = buf->pos + reader->at;
	else
		n = ngx_read_file(buf->file, piece, (size_t)n,
		    buf->file_pos + reader->at);
	if (n <= 0)
		return 0;
	if (reader->salt != NULL)
		salt_data(reader->salt, bytes, (size_t)n);
	else
		body_data(reader->body, bytes, (size_t)n);
	return (size_t)n;
}

bool
kvroute_reader_piece(kvroute_reader_t *reader)
{
	size_t n;

	while (reader->link != NULL &&
	    ngx_buf_size(reader->link->buf) <= reader->at) {
		reader->link = reader->link->next;
		reader->at = 0;
	}
	if (reader->link == NULL)
		return false;
	n = reader->left > 0 ? buf_read(reader, reader->link->buf) : 0;
	if (n == 0 && reader->salt != NULL)
		reader->salt->broken = true;
	else if (n == 0)
		body_cut(reader->body);
	reader->at += (off_t)n;
	reader->given += n;
	reader->left = reader->most - reader->given;
	if (reader->salt == NULL)
		reader->left += (size_t)body_beside(reader->body);
	return n > 0;
}

void
kvroute_reader_end(kvroute_reader_t *reader)
{
	reader->read = true;
	if (reader->salt != NULL)
		return;
	reader->outcome = body_end(reader->body, &reader->facts);
	if (reader->up->fleet.shared != NULL)
		shared_count(reader->up->fleet.shared, COUNT_READ, 1);
}

/* It went elsewhere, or its prompt is not needed. */
void
kvroute_reader_early_leave(ngx_http_request_t *r)
{
	kvroute_reader_t *reader = kvroute_reader_of(r);

	if (reader != NULL && reader->early && reader->read)
		kvroute_reader_leave(reader);
}

/* ------------------------------------------------------------- endpoint --- */

/*
 * The endpoint of a request.
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

void
kvroute_path_count(kvroute_srv_conf_t *up, ngx_http_request_t *r)
{
	ngx_str_t path;

	if (!engine_path(r, &path))
		path = r->uri;
	shared_path(up->fleet.shared, (const char *)path.data, path.len);
}

/* ---------------------------------------------------- lines, by a regex --- */

/* NULL: it was logged why. */
static void *
regex_make(ngx_conf_t *cf, ngx_str_t *pattern)
{
#if (NGX_PCRE)
	u_char error[NGX_MAX_CONF_ERRSTR];
	ngx_regex_compile_t compile;

	ngx_memzero(&compile, sizeof(compile));
	compile.pattern = *pattern;
	compile.pool = cf->pool;
	compile.err.data = error;
	compile.err.len = sizeof(error);
	if (ngx_regex_compile(&compile) == NGX_OK)
		return compile.regex;
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0, "%V", &compile.err);
#else
	ngx_conf_log_error(NGX_LOG_EMERG, cf, 0,
	    "\"kvroute_ignore_line\" needs an nginx with PCRE");
#endif
	return NULL;
}

char *
kvroute_ignore_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf)
{
	kvroute_loc_conf_t *loc = conf;
	ngx_str_t *args = cf->args->elts;
	void **place;
	ngx_uint_t i;

	if (loc->ignored == NULL)
		return "conflicts with \"off\"";
	if (cf->args->nelts == 2 && ngx_strcmp(args[1].data, "off") == 0) {
		if (loc->ignored != NGX_CONF_UNSET_PTR)
			return "conflicts with another line";
		loc->ignored = NULL;
		return NGX_CONF_OK;
	}
	if (loc->ignored == NGX_CONF_UNSET_PTR)
		loc->ignored = ngx_array_create(cf->pool, 2, sizeof(*place));
	for (i = 1; loc->ignored != NULL && i < cf->args->nelts; i++) {
		place = ngx_array_push(loc->ignored);
		if (place == NULL)
			return NGX_CONF_ERROR;
		*place = regex_make(cf, &args[i]);
		if (*place == NULL)
			return NGX_CONF_ERROR;
	}
	return loc->ignored == NULL ? NGX_CONF_ERROR : NGX_CONF_OK;
}
