/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_reader.c - what reads the body of one request.
 *
 * A READER belongs to its request:
 *
 *   asked for    (filter)    neither body nor prompt; it may stay so
 *   held         (queue)     body and prompt
 *   read                     the same; body_end was called
 *   used         (choice)    prompt only; a retry finds it here
 *   left         (headers)   nothing; both went to the spares
 *
 * The request may end at each of these places; a cleanup of its pool does what
 * is left to do.
 */
#include "ngx_http_kvroute_reader.h"

#include "body.h"
#include "counters.h"
#include "endpoint.h"
#include "ngx_http_kvroute_kept.h"
#include "ngx_http_kvroute_shared.h"
#include "salt.h"

/* Tests build it with another. */
#ifndef NGX_HTTP_KVROUTE_PIECE
#define NGX_HTTP_KVROUTE_PIECE 65536
#endif

enum {
	PIECE = NGX_HTTP_KVROUTE_PIECE,
	BODIES = 8,
	PROMPTS = 64,
	KEEP_BYTES = 1 << 20    /* spare prompts are of shorter bodies */
};

struct ngx_http_kvroute_spares_s {
	struct body *bodies[BODIES];
	struct kvr_prompt *prompts[PROMPTS];
	ngx_uint_t n_bodies, n_prompts;
};

/* --------------------------------------------------------------- spares --- */

ngx_http_kvroute_spares_t *
ngx_http_kvroute_spares_new(ngx_pool_t *pool)
{
	return ngx_pcalloc(pool, sizeof(ngx_http_kvroute_spares_t));
}

void
ngx_http_kvroute_spares_free(ngx_http_kvroute_spares_t *spares)
{
	while (spares->n_bodies > 0)
		body_free(spares->bodies[--spares->n_bodies]);
	while (spares->n_prompts > 0)
		kvr_prompt_free(spares->prompts[--spares->n_prompts]);
}

struct body *
ngx_http_kvroute_body_take(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_spares_t *spares = up->spare.readers;

	return spares->n_bodies > 0 ? spares->bodies[--spares->n_bodies] :
	    body_new();
}

void
ngx_http_kvroute_body_put(ngx_http_kvroute_srv_conf_t *up, struct body *body)
{
	ngx_http_kvroute_spares_t *spares = up->spare.readers;

	if (body == NULL)
		return;
	body_trim(body);
	if (spares->n_bodies < BODIES)
		spares->bodies[spares->n_bodies++] = body;
	else
		body_free(body);
}

struct kvr_prompt *
ngx_http_kvroute_prompt_take(ngx_http_kvroute_srv_conf_t *up)
{
	ngx_http_kvroute_spares_t *spares = up->spare.readers;
	struct kvr_prompt *prompt;

	if (spares->n_prompts > 0)
		return spares->prompts[--spares->n_prompts];
	return kvr_prompt_new(up->kvr, &prompt) == KVR_OK ? prompt : NULL;
}

void
ngx_http_kvroute_prompt_put(ngx_http_kvroute_srv_conf_t *up,
    struct kvr_prompt *prompt)
{
	ngx_http_kvroute_spares_t *spares = up->spare.readers;

	if (prompt != NULL && spares->n_prompts < PROMPTS)
		spares->prompts[spares->n_prompts++] = prompt;
	else
		kvr_prompt_free(prompt);
}

void
ngx_http_kvroute_reader_body_leave(ngx_http_kvroute_reader_t *reader)
{
	ngx_http_kvroute_body_put(reader->up, reader->body);
	reader->body = NULL;
	reader->facts.model = NULL;
	ngx_memzero(reader->facts.id, sizeof(reader->facts.id));
}

static void
prompt_leave(ngx_http_kvroute_reader_t *reader)
{
	if (reader->most - reader->left <= KEEP_BYTES)
		ngx_http_kvroute_prompt_put(reader->up, reader->prompt);
	else
		kvr_prompt_free(reader->prompt);
	reader->prompt = NULL;
}

void
ngx_http_kvroute_reader_leave(ngx_http_kvroute_reader_t *reader)
{
	if (reader->held) {
		ngx_queue_remove(&reader->queue);
	}
	reader->held = false;
	ngx_http_kvroute_reader_body_leave(reader);
	prompt_leave(reader);
}

/* --------------------------------------------------------------- reader --- */

/* The request is over, in any way. */
static void
reader_cleanup(void *data)
{
	ngx_http_kvroute_reader_leave(data);
}

ngx_http_kvroute_reader_t *
ngx_http_kvroute_reader_make(ngx_http_request_t *r,
    ngx_http_kvroute_srv_conf_t *up, enum endpoint endpoint)
{
	ngx_http_kvroute_reader_t *reader = ngx_http_kvroute_kept_make(r,
	    reader_cleanup, sizeof(*reader));

	if (reader == NULL)
		return NULL;
	reader->up = up;
	reader->endpoint = endpoint;
	return reader;
}

ngx_http_kvroute_reader_t *
ngx_http_kvroute_reader_of(ngx_http_request_t *r)
{
	return ngx_http_kvroute_kept_of(r, reader_cleanup);
}

size_t
ngx_http_kvroute_body_size(ngx_http_request_t *r)
{
	/* None of a body that nginx has thrown away. */
	ngx_chain_t *cl = r->request_body == NULL ? NULL :
	    r->request_body->bufs;
	size_t size = 0;

	for (; cl != NULL; cl = cl->next)
		size += (size_t)ngx_buf_size(cl->buf);
	return size;
}

bool
ngx_http_kvroute_bypassed(ngx_http_request_t *r)
{
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(r,
	    ngx_http_upstream_kvroute_module);

	return ngx_http_test_predicates(r, loc->bypass) == NGX_DECLINED;
}

bool
ngx_http_kvroute_reader_begin(ngx_http_kvroute_reader_t *reader)
{
	ngx_http_request_t *r = reader->request;
	ngx_http_kvroute_loc_conf_t *loc = ngx_http_get_module_loc_conf(r,
	    ngx_http_upstream_kvroute_module);

	reader->from = reader->link = r->request_body->bufs;
	reader->at = 0;
	if (reader->salt != NULL) {
		reader->most = reader->left = ngx_http_kvroute_body_size(r);
		return true;
	}
	reader->body = ngx_http_kvroute_body_take(reader->up);
	if (!reader->early)
		reader->prompt = ngx_http_kvroute_prompt_take(reader->up);
	if (reader->body == NULL ||
	    (!reader->early && reader->prompt == NULL)) {
		ngx_http_kvroute_reader_leave(reader);
		return false;
	}
	reader->most = reader->left = loc->max_body;
	reader->reasoning = loc->reasoning;
	body_reasoning(reader->body,
	    loc->reasoning == NGX_HTTP_KVROUTE_KEEP);
	body_begin(reader->body, reader->prompt, reader->endpoint);
	return true;
}

/* At most PIECE bytes of this buffer, from reader->at on; 0: a read error. */
static size_t
buf_read(ngx_http_kvroute_reader_t *reader, ngx_buf_t *buf)
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
ngx_http_kvroute_reader_piece(ngx_http_kvroute_reader_t *reader)
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
	reader->left -= n;
	return n > 0;
}

void
ngx_http_kvroute_reader_end(ngx_http_kvroute_reader_t *reader)
{
	reader->read = true;
	if (reader->salt != NULL)
		return;
	reader->outcome = body_end(reader->body, &reader->facts);
	if (reader->up->shared != NULL)
		ngx_http_kvroute_count(reader->up, COUNT_READ, 1);
}

/* It went elsewhere, or its prompt is not needed. */
void
ngx_http_kvroute_reader_early_leave(ngx_http_request_t *r)
{
	ngx_http_kvroute_reader_t *reader = ngx_http_kvroute_reader_of(r);

	if (reader != NULL && reader->early && reader->read)
		ngx_http_kvroute_reader_leave(reader);
}
