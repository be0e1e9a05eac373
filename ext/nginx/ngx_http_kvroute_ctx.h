/* SPDX-License-Identifier: BSD-2-Clause */
/* ngx_http_kvroute_ctx.h - one request. */
#ifndef NGX_HTTP_KVROUTE_CTX_H
#define NGX_HTTP_KVROUTE_CTX_H

#include "ngx_http_kvroute_conf.h"

#include "body.h"
#include "endpoint.h"
#include "reason.h"

/* How a request waits for a server, and what its balancer knew before. */
typedef struct {
	ngx_queue_t queue;
	ngx_queue_t *list;      /* that it is in */
	ngx_queue_t young;      /* its place in `fresh`, while it is */
	ngx_http_upstream_rr_peers_t *peers;
	uintptr_t *tried;
	size_t bytes;           /* of that */
	bool waits;
	bool fresh;             /* nginx's timer is to be removed */
	bool still;             /* it was woken in vain */
	ngx_connection_t *hold; /* the placeholder, or NULL */
	ngx_event_t over;
	uint32_t since;         /* it came: milliseconds, for the order */
	uint64_t wants;         /* key of the only server that will do, or 0; */
	ngx_uint_t wants_at;    /* and where it was in up->known */
	int64_t began;
	uint64_t ns;            /* that it has waited, all told */
	ngx_err_t error;        /* why it could not connect then */
} ngx_http_kvroute_wait_t;

/* One request. */
struct ngx_http_kvroute_ctx_s {
	/* must come first: state of the stock balancer */
	ngx_http_upstream_rr_peer_data_t rrp;
	uintptr_t *tried;       /* scratch, as long as rrp.tried: */
	ngx_uint_t words;
	ngx_uint_t generation;  /* of the peers that these are about */
	ngx_array_t taken;      /* ngx_str_t: names of the tries */
	ngx_http_request_t *request;
	ngx_http_kvroute_srv_conf_t *up;
	/* of the body */
	ngx_http_kvroute_reader_t *reader; /* NULL: no prompt */
	enum endpoint endpoint;
	struct body_facts facts; /* its texts are copied: */
	ngx_str_t model;
	ngx_str_t body_ids[BODY_IDS];
	/* of the session */
	ngx_str_t tenant;
	uint64_t session;       /* its digest, or 0 */
	uint64_t state;         /* of what the engine keeps, or 0 */
	unsigned binds;         /* what its answer's id is, or 0 */
	unsigned bound;         /* bits of enum object_id: done */
	bool ends;              /* the engine is asked to delete `state` */
	enum reason opinion; /* COST: a prompt; or why none */
	bool asked;             /* include_usage was added to the request */
	/* of the choice */
	ngx_uint_t tries;
	struct kvr_decision decision;
	enum reason reason;
	uint32_t affinity;      /* enum kvr_affinity_outcome */
	uint64_t lease;
	uint64_t worker;
	ngx_int_t rank;         /* that the engine is told; -1: none */
	ngx_buf_t *rank_head;   /* of the request, or NULL; its line belongs */
	u_char *rank_at;        /* here, and this follows: see ranks.c */
	ngx_str_t rank_rest;
	/* of the response */
	struct answer *answer;
	struct reply *reply;    /* NULL: the prompt is not extended */
	void *saved;            /* its end, see kvr_prompt_save */
	size_t n_saved;
	bool headers;           /* of the engine, status below 400 */
	bool stream;
	bool strip;             /* usage is removed from the response */
	bool started;
	int64_t first;          /* time of the first token; 0: none yet */
	ngx_msec_t first_ms;    /* from the request to it */
	uint64_t token_ns;      /* for each further token; 0: not known */
	bool last;              /* all of it has passed */
	bool ending;            /* the engine is done; the rest must pass */
	bool reported;          /* the report is made */
	struct kvr_report report;
	ngx_chain_t *free, *busy; /* buffers of ours */
	/* of the peer's health */
	struct health *health;  /* while `due`, and if its key is still */
	uint64_t health_key;
	ngx_str_t health_name;
	bool due;               /* the end of this try is evidence */
	bool stalled;           /* by its client, since seen_at */
	bool bound_held;        /* the server of its session is held back */
	bool failed, answered;  /* how it ended */
	bool cools;             /* and nginx counts it as failed */
	bool probe;             /* of a gray one */
	int64_t sent_at, first_at, seen_at; /* 0: not yet */
	uint64_t events;        /* of the stream, until then */
	ngx_http_kvroute_wait_t wait;
	double booked, beside;  /* tokens to prefill there, when it was sent; */
	                        /* and until then */
	/* of the trace: NULL, or ids of the prompt */
	uint64_t *ids;
	ngx_uint_t n_ids;
	int64_t arrived_ms;     /* wall clock */
	uint64_t ns;            /* spent in this module */
};

#if (NGX_HTTP_CACHE)
#define ngx_http_kvroute_cached(r) ((r)->cached)
#else
#define ngx_http_kvroute_cached(r) 0
#endif

/* The request's ctx, if it went to one of our upstreams. */
#define ngx_http_kvroute_ctx(r) ((ngx_http_kvroute_ctx_t *) \
	ngx_http_get_module_ctx(r, ngx_http_upstream_kvroute_module))

#endif
