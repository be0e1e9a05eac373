/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_ctx.h - one request. */
#ifndef NGX_HTTP_KVROUTE_CTX_H
#define NGX_HTTP_KVROUTE_CTX_H

#include "ngx_http_kvroute_reader.h"

#include "booking.h"
#include "evidence.h"
#include "kept_state.h"
#include "passing.h"
#include "trace_line.h"
#include "waits.h"

/* How a request waits for a server, and the peers of its first try. */
typedef struct {
	struct wait turn;
	ngx_queue_t young;      /* its place in `fresh`, while it is */
	ngx_http_upstream_rr_peers_t *peers;
	uintptr_t *tried;
	size_t bytes;           /* of that */
	bool fresh;             /* nginx's timer is to be removed */
	bool still;             /* it was woken in vain */
	ngx_connection_t *hold; /* the placeholder, or NULL */
	ngx_event_t over;
	int64_t began;
	uint64_t ns;            /* that it has waited, in sum */
	ngx_err_t error;        /* why it could not connect then */
} kvroute_wait_t;

/* One request. */
struct kvroute_ctx_s {
	/* must come first: state of the stock balancer */
	ngx_http_upstream_rr_peer_data_t rrp;
	uintptr_t *tried;       /* scratch, as long as rrp.tried: */
	ngx_uint_t words;
	ngx_uint_t generation;  /* of the peers that these are about */
	ngx_array_t taken;      /* ngx_str_t: names of the tries */
	ngx_http_request_t *request;
	kvroute_srv_conf_t *up;
	/* of the body */
	kvroute_reader_t *reader; /* NULL: no prompt */
	enum endpoint endpoint;
	struct body_facts facts;
	kvroute_texts_t texts;
	/* of the session */
	ngx_str_t tenant;
	struct kept_state keeps;
	enum reason opinion; /* COST: a prompt; or why none */
	bool asked;             /* include_usage was added to the request */
	/* of the choice */
	ngx_uint_t tries;
	struct kvr_request ask; /* of the library */
	struct booking book;
	ngx_int_t rank;         /* in the header; -1: no header */
	ngx_buf_t *rank_head;   /* of the request, or NULL; its line belongs */
	u_char *rank_at;        /* here, and this follows: see ranks.c */
	ngx_str_t rank_rest;
	struct {                /* a rank has refused the first try: */
		ngx_int_t (*process)(ngx_http_request_t *r);
		ngx_http_upstream_conf_t *conf; /* NULL: that is over */
		ngx_int_t rank; /* the one; 0: none */
		ngx_uint_t status;
	} again;
	/* of the response */
	struct passing passing;
	bool headers;           /* of the engine, status below 400 */
	ngx_msec_t first_ms;    /* from the request to it */
	bool last;              /* all of it has passed */
	bool ending;            /* the engine is done; the rest must pass */
	ngx_chain_t *free, *busy; /* buffers of ours */
	struct {                /* while the engine prefills */
		ngx_event_t timer;
		ngx_msec_t ms;  /* 0: none */
	} comments;
	/* of the peer's health */
	struct evidence evidence;
	bool bound_held;        /* the server of its session is held back */
	uint64_t digest;        /* of its prompt; 0: not known, or short */
	kvroute_wait_t wait;
	struct trace_line trace;
	uint64_t ns;            /* spent in this module */
};

#if (NGX_HTTP_CACHE)
#define kvroute_cached(r) ((r)->cached)
#else
#define kvroute_cached(r) 0
#endif

/* The request's ctx, if it went to one of our upstreams. */
#define kvroute_ctx(r) ((kvroute_ctx_t *) \
	ngx_http_get_module_ctx(r, ngx_http_upstream_kvroute_module))

#endif
