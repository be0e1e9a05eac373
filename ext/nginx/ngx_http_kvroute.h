/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute.h - the nginx module from inside.
 *
 *   module     directives; calls of nginx at start
 *   zone       one region for each upstream, in a zone or in a file
 *   workers    workers of the region = peers of the upstream
 *   region     nginx starts, reloads, ends
 *   body       the request body -> prompt; edits of the request
 *   peer       the choice; the life of a request as kvr_lease(3) draws it
 *   end        finish or abort, also while the lock is held
 *   capacity   engines are asked for theirs
 *   answer     headers, first event, usage -> the report
 *   variables  for logs
 *   trace      lines for kvroute-replay(1)
 *   status     what operators and Prometheus can see; orders; explain
 *
 * A request has one struct here, ngx_http_kvroute_ctx_t, made when its
 * upstream is chosen. A body is read and parsed in one call, so one prompt and
 * one parser for each nginx worker and upstream are enough; a retry parses
 * again. All time is CLOCK_MONOTONIC.
 */
#ifndef NGX_HTTP_KVROUTE_H
#define NGX_HTTP_KVROUTE_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <kvroute.h>
#include <stdbool.h>

#include "answer.h"
#include "body.h"
#include "counters.h"
#include "endpoint.h"
#include "reason.h"
#include "status.h"

enum { NGX_HTTP_KVROUTE_TROUBLES = 64 };

/* What all nginx workers count together; in the zone, without pointers. */
typedef struct {
	ngx_atomic_t reasons[REASONS];
	ngx_atomic_t endpoints[ENDPOINTS];
	ngx_atomic_t counts[COUNTS];
	ngx_atomic_t epoch;     /* changes when ids or states change */
	/* requests that failed at a server: of peer i in [i % TROUBLES] */
	ngx_atomic_t troubles[NGX_HTTP_KVROUTE_TROUBLES];
} ngx_http_kvroute_shared_t;

/* kvroute_server: facts about one address. */
typedef struct {
	ngx_str_t name;
	struct kvr_worker facts;
	bool ask;               /* capacity=auto */
	bool evicts;            /* eviction= is among the facts */
	bool used;
} ngx_http_kvroute_server_t;

/* A server whose engine is asked for its capacity. */
typedef struct ngx_http_kvroute_ask_s ngx_http_kvroute_ask_t;

/* A peer as it was when the current choice began; backups come last. */
typedef struct {
	u_char name[KVR_NAME_MAX];
	size_t name_len;
	uint64_t id;            /* of its worker; 0: not looked up */
	bool closed;            /* drained or set down at run time */
	bool usable;            /* by nginx's rules */
	ngx_uint_t conns, weight;
} ngx_http_kvroute_known_t;

typedef enum {
	NGX_HTTP_KVROUTE_FINISH,
	NGX_HTTP_KVROUTE_ABORT,
	NGX_HTTP_KVROUTE_RESET  /* of a worker that refused connections */
} ngx_http_kvroute_write_t;

enum { NGX_HTTP_KVROUTE_SPARES = 32 };

/* A write that must be done: by a timer, if the lock is held. */
typedef struct {
	ngx_queue_t queue;
	ngx_http_kvroute_write_t what;
	uint64_t id;            /* of the lease, or of the worker */
	struct kvr_report report;
} ngx_http_kvroute_late_t;

typedef struct {
	ngx_http_upstream_srv_conf_t *upstream;
	ngx_http_upstream_init_peer_pt init_stock;
	ngx_cycle_t *cycle;
	/* as configured */
	bool on;
	ngx_str_t zone_name;
	size_t zone_size;
	ngx_str_t path;         /* of a region file, or empty */
	struct kvr_options options;
	struct kvr_policy policy;
	uint32_t retain;        /* enum kvr_retain */
	ngx_uint_t shadow;      /* ngx_http_kvroute_shadow_t */
	ngx_array_t *servers;   /* ngx_http_kvroute_server_t */
	ngx_shm_zone_t *zone;
	/* in the zone */
	ngx_http_kvroute_shared_t *shared;
	void *memory;           /* the region, if not a file */
	size_t bytes;
	/* of this process */
	struct kvr *kvr;        /* NULL: no region; no prediction */
	struct kvr_prompt *prompt;
	struct body *body;
	struct answer *spares[NGX_HTTP_KVROUTE_SPARES];
	ngx_uint_t n_spares;    /* unused parsers */
	uint64_t owner;         /* of leases: this process, see region.c */
	ngx_event_t watch;      /* for owners that have died */
	bool behind;            /* the master could not sync the workers */
	uint64_t listed;        /* where looking for dead owners goes on; */
	uint64_t dead, reaped;  /* one that is being reaped, or 0, and */
	                        /* where that goes on */
	void *parsed;           /* ctx that the prompt belongs to */
	ngx_atomic_uint_t epoch;
	ngx_http_kvroute_known_t *known;
	ngx_uint_t n_peers;
	ngx_uint_t n_first;     /* of them, not backups */
	uint64_t *allowed;      /* scratch: ids of usable peers */
	ngx_uint_t turn;        /* which of equals is first */
	ngx_queue_t late;       /* ngx_http_kvroute_late_t */
	ngx_event_t timer;
	struct status_name *asked; /* those with capacity=auto */
	size_t n_asked;
	/* of the process that asks */
	ngx_http_kvroute_ask_t *asks;
	ngx_uint_t n_asks;
	ngx_uint_t asking;      /* now */
	ngx_event_t ask_timer;
	ngx_log_t ask_log;
} ngx_http_kvroute_srv_conf_t;

typedef enum {
	NGX_HTTP_KVROUTE_CHOOSE = 0,
	NGX_HTTP_KVROUTE_LEAST_CONN,
	NGX_HTTP_KVROUTE_ROUND_ROBIN
} ngx_http_kvroute_shadow_t;

typedef struct {
	ngx_array_t upstreams;  /* ngx_http_kvroute_srv_conf_t *, those on */
} ngx_http_kvroute_main_conf_t;

typedef struct ngx_http_kvroute_trace_s ngx_http_kvroute_trace_t;

typedef struct {
	size_t max_body;
	ngx_http_complex_value_t *model;
	ngx_http_complex_value_t *scope;
	ngx_flag_t feedback;
	ngx_flag_t include_usage;
	ngx_array_t *bypass;    /* ngx_http_complex_value_t */
	ngx_http_kvroute_trace_t *trace; /* NULL: off */
	ngx_flag_t status;
} ngx_http_kvroute_loc_conf_t;

/* One request. */
typedef struct {
	/* must come first: state of the stock balancer */
	ngx_http_upstream_rr_peer_data_t rrp;
	uintptr_t *tried;       /* scratch, as long as rrp.tried */
	ngx_http_request_t *request;
	ngx_http_kvroute_srv_conf_t *up;
	/* of the body */
	enum endpoint endpoint;
	struct body_facts facts; /* its model is copied: see `model` */
	ngx_str_t model;
	enum reason opinion; /* COST: a prompt; or why none */
	bool asked;             /* include_usage was added to the request */
	/* of the choice */
	ngx_uint_t tries;
	struct kvr_decision decision;
	enum reason reason;
	uint64_t lease;
	uint64_t worker;
	/* of the response */
	struct answer *answer;
	bool headers;           /* of the engine, status below 400 */
	bool stream;
	bool strip;             /* usage is removed from the response */
	bool started;
	bool last;              /* all of it has passed */
	bool ending;            /* the engine is done; the rest must pass */
	bool reported;          /* the report is made */
	struct kvr_report report;
	ngx_chain_t *free, *busy; /* buffers of ours */
	/* of the trace: NULL, or ids of the prompt */
	uint64_t *ids;
	ngx_uint_t n_ids;
	int64_t arrived_ms;     /* wall clock */
	uint64_t ns;            /* spent in this module */
} ngx_http_kvroute_ctx_t;

extern ngx_module_t ngx_http_upstream_kvroute_module;

/* zone */
char *ngx_http_kvroute_zone_add(ngx_conf_t *cf,
    ngx_http_kvroute_srv_conf_t *up);
/* KVR_OK or an error of kvr_attach_at or kvr_open. */
int ngx_http_kvroute_region_open(ngx_http_kvroute_srv_conf_t *up, bool master,
    struct kvr **k);
/* Logs the error; always NGX_ERROR. */
ngx_int_t ngx_http_kvroute_complain(ngx_log_t *log,
    ngx_http_kvroute_srv_conf_t *up, const char *what, int error);

/* workers */
/* Makes up->known; false: no memory. */
bool ngx_http_kvroute_peers_list(ngx_http_kvroute_srv_conf_t *up,
    ngx_pool_t *pool);
/* Workers of the region = peers of the upstream, with configured facts. */
void ngx_http_kvroute_workers_sync(ngx_http_kvroute_srv_conf_t *up,
    struct kvr *k, ngx_log_t *log);
/* What is configured for this server, or NULL. */
ngx_http_kvroute_server_t *ngx_http_kvroute_server_find(
    ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *name);
/* Updates up->known for the choice of this request. */
void ngx_http_kvroute_peers_look(ngx_http_kvroute_ctx_t *ctx);
/* An id or a state has changed: all processes look them up again. */
void ngx_http_kvroute_workers_changed(ngx_http_kvroute_srv_conf_t *up);
/* Of the chosen worker; empty if it is gone. */
ngx_str_t ngx_http_kvroute_worker_name(ngx_http_kvroute_ctx_t *ctx);

/* region */
ngx_int_t ngx_http_kvroute_regions_prepare(ngx_cycle_t *cycle);
ngx_int_t ngx_http_kvroute_regions_attach(ngx_cycle_t *cycle);
void ngx_http_kvroute_regions_leave(ngx_cycle_t *cycle);

/* body */
void ngx_http_kvroute_body_read(ngx_http_kvroute_ctx_t *ctx);
/* Edits what is sent to the engine, as feedback requires. */
ngx_int_t ngx_http_kvroute_request_edit(ngx_http_kvroute_ctx_t *ctx);
/* Fills up->prompt unless it is filled already; facts are in ctx. */
bool ngx_http_kvroute_prompt_make(ngx_http_kvroute_ctx_t *ctx);
/* The scope of what was parsed last, by this request's location. */
ngx_int_t ngx_http_kvroute_scope_make(ngx_http_kvroute_ctx_t *ctx,
    struct kvr_scope *scope);

/* peer */
ngx_int_t ngx_http_kvroute_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);

/* capacity */
/* Once up->known is made; false: no memory. */
bool ngx_http_kvroute_asks_begin(ngx_http_kvroute_srv_conf_t *up,
    ngx_cycle_t *cycle);
void ngx_http_kvroute_asks_leave(ngx_http_kvroute_srv_conf_t *up);
/* A request failed at this peer of up->known. */
void ngx_http_kvroute_trouble(ngx_http_kvroute_srv_conf_t *up,
    ngx_uint_t place);

/* end */
/* `taken`: the peer accepted the request with a status below 400. */
void ngx_http_kvroute_end(ngx_http_kvroute_ctx_t *ctx, bool taken);
/* Now, or once the lock is free. */
void ngx_http_kvroute_write(ngx_http_kvroute_srv_conf_t *up,
    ngx_http_kvroute_late_t *write);
void ngx_http_kvroute_late_run(ngx_event_t *event);
bool ngx_http_kvroute_late_write(ngx_http_kvroute_srv_conf_t *up);

/* answer */
/* Of a directive: our filters are the first of all modules that were loaded. */
char *ngx_http_kvroute_filters_order(ngx_conf_t *cf);
ngx_int_t ngx_http_kvroute_filters_add(ngx_conf_t *cf);
/* ctx->answer is no longer needed. */
void ngx_http_kvroute_answer_leave(ngx_http_kvroute_ctx_t *ctx);

/* variables */
ngx_int_t ngx_http_kvroute_variables_add(ngx_conf_t *cf);

/* trace */
char *ngx_http_kvroute_trace_set(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_kvroute_trace_add(ngx_conf_t *cf);
/* If this request is in the sample, keeps what its line needs. */
void ngx_http_kvroute_trace_keep(ngx_http_kvroute_ctx_t *ctx);

/* status, explain */
ngx_int_t ngx_http_kvroute_status_handler(ngx_http_request_t *r);
ngx_int_t ngx_http_kvroute_explain_handler(ngx_http_request_t *r);

#if (NGX_HTTP_CACHE)
#define ngx_http_kvroute_cached(r) ((r)->cached)
#else
#define ngx_http_kvroute_cached(r) 0
#endif

#define ngx_http_kvroute_count(up, of, n) \
	((void)ngx_atomic_fetch_add(&(up)->shared->counts[of], \
	    (ngx_atomic_int_t)(n)))

/* The request's ctx, if it went to one of our upstreams. */
#define ngx_http_kvroute_ctx(r) ((ngx_http_kvroute_ctx_t *) \
	ngx_http_get_module_ctx(r, ngx_http_upstream_kvroute_module))

#endif
