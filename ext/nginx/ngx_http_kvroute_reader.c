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
#include "ngx_http_kvroute_front.h"
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
kvroute_body_size(ngx_http_request_t *r)
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
kvroute_bypassed(ngx_http_request_t *r)
{
	kvroute_loc_conf_t *loc = kvroute_loc(r);

	return ngx_http_test_predicates(r, loc->bypass) == NGX_DECLINED;
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
		body_ignore(reader->body, kvroute_line_ignored, loc->ignored);
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
