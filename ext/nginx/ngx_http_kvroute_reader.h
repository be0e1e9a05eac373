/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_reader.h - the request body, a piece at a time; the endpoint
 * of a request, and lines that do not count.
 */
#ifndef NGX_HTTP_KVROUTE_READER_H
#define NGX_HTTP_KVROUTE_READER_H

#include "ngx_http_kvroute_conf.h"

#include "body.h"
#include "endpoint.h"

/* The body of a request while it is read, then its prompt; see reader.c. */
struct kvroute_reader_s {
	ngx_http_request_t *request;
	ngx_queue_t queue;
	kvroute_srv_conf_t *up;
	enum endpoint endpoint;
	bool held;              /* in the queue */
	bool read;              /* facts and outcome are known */
	bool early;             /* `up` lends; the choice makes the prompt */
	struct salt *salt;      /* NULL, or read for it, and for no prompt */
	/* how the request goes on */
	ngx_http_client_body_handler_pt then;
	ngx_http_event_handler_pt reading; /* ours, or NULL */
	struct body *body;      /* until the choice */
	struct kvr_prompt *prompt; /* until the headers of the response */
	ngx_chain_t *from;      /* the whole body */
	ngx_chain_t *link;      /* next to be read, and from where in it */
	off_t at;
	size_t most, left;      /* of kvroute_max_body */
	size_t given;           /* bytes that were read */
	ngx_uint_t reasoning;   /* as of its location, */
	ngx_array_t *ignored;   /* likewise */
	enum body_outcome outcome;
	struct body_facts facts; /* the model is that of `body` */
	struct kvr_scope scope; /* once the prompt has its end */
	uint64_t ns;
};

/* Texts of a body, which outlive its parser. */
typedef struct {
	ngx_str_t model;
	ngx_str_t ids[BODY_IDS];
} kvroute_texts_t;

/* False: no memory. */
bool kvroute_texts_keep(ngx_pool_t *pool, kvroute_texts_t *to,
    const struct body_facts *facts);

kvroute_reader_t *kvroute_reader_make(ngx_http_request_t *r,
    kvroute_srv_conf_t *up, enum endpoint endpoint);
/* The newest of this request, or NULL; subrequests share its pool. */
kvroute_reader_t *kvroute_reader_of(ngx_http_request_t *r);
/* Takes spares for reading; false: no memory. */
bool kvroute_reader_begin(kvroute_reader_t *reader);
/* Reads one more piece; false: no piece is left, or may be read. */
bool kvroute_reader_piece(kvroute_reader_t *reader);
void kvroute_reader_end(kvroute_reader_t *reader);
/* Gives back the parser, or all; again is no error. */
void kvroute_reader_body_leave(kvroute_reader_t *reader);
void kvroute_reader_leave(kvroute_reader_t *reader);
size_t kvroute_chain_size(const ngx_chain_t *cl);
size_t kvroute_body_size(ngx_http_request_t *r);
/* By kvroute_bypass, as it is now. */
bool kvroute_bypassed(ngx_http_request_t *r);
/* Leaves one that was read early: no choice of ours follows. */
void kvroute_reader_early_leave(ngx_http_request_t *r);

/* By kvroute_endpoint, or by the path that the engine gets. */
enum endpoint kvroute_endpoint(ngx_http_request_t *r);
/* The path of this request is not that of an endpoint. */
void kvroute_path_count(kvroute_srv_conf_t *up, ngx_http_request_t *r);

/* kvroute_ignore_line REGEX ...; or off. */
char *kvroute_ignore_set(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);

#endif
