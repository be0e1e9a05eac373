/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute.h - the nginx module from inside.
 *
 *   module     directives; calls of nginx at start
 *   zone       one region for each upstream, in a zone or in a file
 *   workers    workers of the region = peers of the upstream
 *   follow     peers that nginx adds and removes while it runs
 *   region     nginx starts, reloads, ends
 *   replicas   what kvroute-sync has brought, once it is silent
 *   reader     the request body, a piece at a time
 *   read       when that is done: now, or in turns while the request is held
 *   body       what was read -> prompt; edits of the request
 *   early      the body is read before the upstream is chosen
 *   salt       cache_salt in the body that is sent
 *   share      of tenants in a full index
 *   ranks      data-parallel ranks behind one address; their header
 *   session    keys of sessions; state that one engine keeps
 *   peer       the choice; the life of a request as kvr_lease(3) draws it
 *   end        finish or abort, also while the lock is held
 *   extend     the answer becomes part of the prompt
 *   capacity   engines are asked for theirs
 *   poll       and say how loaded they are
 *   fetch      connections for these two
 *   answer     headers, first event, usage -> the report
 *   time       what took how long: histograms
 *   variables  for logs
 *   health     gray engines, broken responses, warming up
 *   queue      requests that wait while all servers are full
 *   places     what processes tell each other of these
 *   trace      lines for kvroute-replay(1)
 *   status     what operators and Prometheus can see; orders; explain
 *
 * A request has one struct here, ngx_http_kvroute_ctx_t, made when its
 * upstream is chosen, and a reader, which may be older: a long body is read in
 * pieces before that. The reader has a parser until the choice and a prompt
 * until the headers of the response, so that a retry does not parse again. All
 * time is CLOCK_MONOTONIC.
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
#include "health.h"
#include "reason.h"
#include "reply_message.h"
#include "session_key.h"
#include "status.h"
#include "surplus.h"

/* Does this nginx resolve names of servers while it runs, from 1.27.3 on? */
#if (NGX_HTTP_UPSTREAM_ZONE) && defined ngx_http_upstream_rr_peer_ref
#define NGX_HTTP_KVROUTE_RESOLVE 1
#else
#define NGX_HTTP_KVROUTE_RESOLVE 0
#endif

enum {
	NGX_HTTP_KVROUTE_TROUBLES = 64,
	NGX_HTTP_KVROUTE_QUEUES = 128,
	NGX_HTTP_KVROUTE_WANTED = 4
};

/*
 * Of a process whose requests wait: what the others must know. Times are
 * milliseconds; small, since zones that were large enough must remain so.
 */
typedef struct {
	ngx_atomic_t pid;       /* 0: the place is free */
	ngx_atomic_t waiting;   /* how many */
	volatile uint32_t life; /* of the configuration */
	volatile uint32_t beat; /* when it has looked */
	volatile uint32_t oldest; /* since when a plain one waits; 0: none */
	/* since when one waits for this server: its place in up->known, + 1 */
	volatile uint32_t since[NGX_HTTP_KVROUTE_WANTED];
	volatile uint16_t server[NGX_HTTP_KVROUTE_WANTED]; /* or 0 */
} ngx_http_kvroute_queue_t;

/* What all nginx workers count together; in the zone, without pointers. */
typedef struct {
	ngx_atomic_t reasons[REASONS];
	ngx_atomic_t endpoints[ENDPOINTS];
	ngx_atomic_t counts[COUNTS];
	/* nanoseconds, and how many by buckets */
	ngx_atomic_t times[HISTOGRAMS];
	ngx_atomic_t buckets[HISTOGRAMS][HISTOGRAM_BUCKETS];
	ngx_atomic_t epoch;     /* changes when ids or states change */
	ngx_atomic_t silence;   /* as below, of which a line was logged */
	/* requests that failed at a server: by its key, in [key % TROUBLES] */
	ngx_atomic_t troubles[NGX_HTTP_KVROUTE_TROUBLES];
	ngx_atomic_t poller;    /* pid of the process that polls, or 0 */
	ngx_atomic_t poller_beat; /* time of its latest look */
	ngx_atomic_t lives;     /* configurations that there were */
	ngx_http_kvroute_queue_t queues[NGX_HTTP_KVROUTE_QUEUES];
} ngx_http_kvroute_shared_t;

/* What the engine of a worker said last; in the zone, its leader writes. */
typedef struct {
	ngx_atomic_t worker;    /* its id; 0: the place is free */
	ngx_atomic_t at;        /* time of the answer; 0: it said nothing */
	ngx_atomic_t running, waiting;
	ngx_atomic_t usage;     /* thousandths, and 1; 0: not known */
	ngx_atomic_t requests;  /* of them, not explained */
	struct surplus surplus;
} ngx_http_kvroute_polled_t;

/* kvroute_server: facts about one address, or all those of a name. */
typedef struct {
	ngx_str_t name;         /* as peers are named; empty: of no address */
	ngx_str_t text;         /* as configured, there: */
	ngx_str_t file;
	ngx_uint_t line;
	ngx_str_t host;         /* of a name, and */
	in_port_t port;
	bool ported;            /* it was given */
	struct kvr_worker facts;
	bool ask;               /* capacity=auto */
	bool windows;           /* window_mode=auto, and window= is read */
	bool evicts;            /* eviction= is among the facts */
	uint32_t ranks;         /* each of them a worker; 0: not given */
	bool used;
} ngx_http_kvroute_server_t;

/* A server whose engine is asked for its capacity. */
typedef struct ngx_http_kvroute_ask_s ngx_http_kvroute_ask_t;

/* A server whose engine is polled for its load. */
typedef struct ngx_http_kvroute_poll_s ngx_http_kvroute_poll_t;

/* A peer as it was when the current choice began; backups come last. */
typedef struct {
	u_char name[KVR_NAME_MAX];
	size_t name_len;
	uint64_t key;           /* of the name */
	ngx_sockaddr_t address;
	socklen_t address_len;
	ngx_http_kvroute_server_t *server; /* its facts, or NULL */
	ngx_http_kvroute_ask_t *ask; /* of the process that asks, or NULL */
	ngx_http_kvroute_poll_t *poll; /* likewise */
	bool joined;            /* its workers are in the region; */
	bool refused;           /* they cannot be, and that was logged */
	uint64_t *ids;          /* [ranks] of its workers; 0: not known */
	uint8_t *flags;         /* [ranks], see workers.c */
	uint32_t ranks;
	uint32_t due;           /* ids to be looked up */
	bool named;             /* the engine is told which */
	bool closed;            /* drained or set down at run time, all */
	bool usable;            /* by nginx's rules, now */
	bool full;              /* and it would be, were it not full */
	bool down;              /* as configured, so not for a while only */
	ngx_uint_t conns, weight;
	struct health *health;  /* in the zone, or NULL */
	bool held;              /* for requests that have no other */
} ngx_http_kvroute_known_t;

typedef enum {
	NGX_HTTP_KVROUTE_FINISH,
	NGX_HTTP_KVROUTE_ABORT,
	NGX_HTTP_KVROUTE_RESET, /* of a worker that refused connections */
	NGX_HTTP_KVROUTE_BIND   /* of a digest to a worker */
} ngx_http_kvroute_write_t;

enum { NGX_HTTP_KVROUTE_SPARES = 32 };

/* A write that must be done: by a timer, if the lock is held. */
typedef struct {
	ngx_queue_t queue;
	ngx_http_kvroute_write_t what;
	uint64_t id;            /* of the lease, or of the worker */
	struct kvr_report report;
	/* NULL, or the prompt with its answer: before FINISH */
	struct kvr_prompt *prompt;
	uint64_t digest;        /* BIND */
	int64_t ttl;
} ngx_http_kvroute_late_t;

/* A worker whose peer has left. */
typedef struct {
	uint64_t id;
	ngx_msec_t since;
} ngx_http_kvroute_left_t;

/* Parsers and prompts that no request has. */
typedef struct ngx_http_kvroute_spares_s ngx_http_kvroute_spares_t;

typedef struct {
	ngx_http_upstream_srv_conf_t *upstream;
	ngx_http_upstream_init_peer_pt init_stock;
	ngx_cycle_t *cycle;
	/* as configured */
	bool on;
	bool sized;             /* affinity= is given */
	ngx_str_t zone_name;
	size_t zone_size;
	ngx_str_t path;         /* of a region file, or empty */
	struct kvr_options options;
	struct kvr_policy policy;
	uint32_t retain;        /* enum kvr_retain */
	ngx_uint_t shadow;      /* ngx_http_kvroute_shadow_t */
	ngx_array_t *servers;   /* ngx_http_kvroute_server_t */
	bool ranked;            /* one of them has ranks */
	ngx_str_t rank_header;
	ngx_msec_t poll_ms;     /* 0: off */
	ngx_str_t poll_path;
	double gray;            /* times as slow as others; 0: off */
	ngx_msec_t slow_start;  /* 0: off */
	ngx_uint_t queue;       /* how many may wait; 0: off */
	ngx_msec_t queue_timeout; /* 0: not given */
	ngx_shm_zone_t *zone;
	/* in the zone */
	ngx_http_kvroute_shared_t *shared;
	ngx_http_kvroute_polled_t *polled; /* [options.max_workers] */
	struct health *health;  /* [options.max_workers], or NULL */
	void *memory;           /* the region, if not a file */
	size_t bytes;
	/* of this process */
	struct kvr *kvr;        /* NULL: no region; no prediction */
	ngx_http_kvroute_spares_t *spare_readers;
	struct answer *spares[NGX_HTTP_KVROUTE_SPARES];
	ngx_uint_t n_spares;    /* unused parsers */
	struct reply *replies[NGX_HTTP_KVROUTE_SPARES];
	ngx_uint_t n_replies;   /* unused ones */
	uint64_t owner;         /* of leases: this process, see region.c */
	ngx_event_t watch;      /* for owners that have died */
	bool behind;            /* the master could not sync the workers */
	uint64_t listed;        /* where looking for dead owners goes on; */
	uint64_t dead, reaped;  /* one that is being reaped, or 0, and */
	                        /* where that goes on */
	bool silent;            /* kvroute-sync, since its latest beat; */
	int64_t silence;        /* that + 1, when loads were ended; 0: never */
	uint64_t unloaded;      /* where ending them goes on */
	ngx_atomic_uint_t epoch;
	ngx_http_kvroute_known_t *known;
	ngx_uint_t generation;  /* of the peers, when they were listed */
	bool resolves;          /* some peers come and go */
	bool joining;           /* not all of `known` have joined */
	bool leaving;           /* workers may have no peer */
	ngx_http_kvroute_left_t *left; /* [options.max_workers], or NULL */
	ngx_uint_t n_left;
	ngx_uint_t n_peers;
	ngx_uint_t n_first;     /* of them, not backups */
	ngx_uint_t n_workers;   /* of them, with their ranks */
	uint64_t *allowed;      /* scratch: ids of usable peers' workers */
	ngx_uint_t turn;        /* which of equals is first */
	struct health **fleet;  /* of first peers, each once */
	ngx_uint_t n_fleet;     /* 0: health is off */
	ngx_queue_t late;       /* ngx_http_kvroute_late_t */
	ngx_uint_t late_binds;  /* those of them that bind */
	ngx_event_t timer;
	struct status_name *asked; /* those with capacity=auto */
	size_t n_asked;
	/* of the process that asks */
	bool asks;
	ngx_uint_t asking;      /* now */
	ngx_event_t ask_timer;
	ngx_log_t ask_log;
	bool polls;
	ngx_event_t poll_timer;
	/* of its requests that wait */
	uint32_t life;
	ngx_http_kvroute_queue_t *place; /* NULL: none does */
	ngx_queue_t plain, others; /* of ngx_http_kvroute_ctx_t */
	ngx_queue_t fresh;      /* of them, those with nginx's timer */
	ngx_uint_t n_waits;
	ngx_event_t queue_event;
} ngx_http_kvroute_srv_conf_t;

typedef enum {
	NGX_HTTP_KVROUTE_CHOOSE = 0,
	NGX_HTTP_KVROUTE_LEAST_CONN,
	NGX_HTTP_KVROUTE_ROUND_ROBIN
} ngx_http_kvroute_shadow_t;

typedef struct {
	ngx_array_t upstreams;  /* ngx_http_kvroute_srv_conf_t *, those on */
	const char *needs;      /* NULL, or a directive that needs one */
	bool shared;            /* some block has kvroute_share, */
	bool scoped;            /* and some such one kvroute_scope */
} ngx_http_kvroute_main_conf_t;

typedef struct ngx_http_kvroute_trace_s ngx_http_kvroute_trace_t;

typedef enum {
	NGX_HTTP_KVROUTE_STRIP = 0,
	NGX_HTTP_KVROUTE_KEEP
} ngx_http_kvroute_reasoning_t;

typedef struct {
	size_t max_body;
	ngx_http_complex_value_t *model;
	ngx_http_complex_value_t *scope;
	ngx_flag_t feedback;
	ngx_flag_t include_usage;
	ngx_flag_t answers;     /* extend their prompts */
	ngx_array_t *affinity;  /* ngx_http_complex_value_t; NULL: off */
	ngx_uint_t affinity_mode; /* enum kvr_affinity_mode */
	ngx_msec_t affinity_ttl;
	ngx_msec_t responses_ttl; /* 0: off */
	ngx_uint_t reasoning;   /* ngx_http_kvroute_reasoning_t */
	ngx_array_t *bypass;    /* ngx_http_complex_value_t */
	ngx_http_kvroute_trace_t *trace; /* NULL: off */
	ngx_flag_t status;
	ngx_flag_t early;
	ngx_http_complex_value_t *salt;
	ngx_http_complex_value_t *share;
	/* of this process: where the last request went */
	ngx_http_kvroute_srv_conf_t *seen;
} ngx_http_kvroute_loc_conf_t;

/* The body of a request while it is read, then its prompt; see reader.c. */
typedef struct {
	ngx_queue_t queue;
	ngx_http_request_t *request;
	ngx_http_kvroute_srv_conf_t *up;
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
	ngx_uint_t reasoning;   /* as of its location */
	enum body_outcome outcome;
	struct body_facts facts; /* the model is that of `body` */
	struct kvr_scope scope; /* once the prompt has its end */
	uint64_t ns;
} ngx_http_kvroute_reader_t;

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
typedef struct {
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
/* Workers of the region = peers of the upstream, with configured facts. */
void ngx_http_kvroute_workers_sync(ngx_http_kvroute_srv_conf_t *up,
    struct kvr *k, ngx_log_t *log);
/* One worker and its ranks; `tries` while the lock is held. */
int ngx_http_kvroute_workers_ensure(ngx_http_kvroute_srv_conf_t *up,
    struct kvr *k, const ngx_http_kvroute_known_t *known, ngx_uint_t tries);
/* Of a peer of this name; 0: there is none. */
uint32_t ngx_http_kvroute_ranks_named(const ngx_http_kvroute_srv_conf_t *up,
    const void *name, size_t len);
/* All ids of a peer are to be looked up. */
void ngx_http_kvroute_ids_due(ngx_http_kvroute_known_t *known);
/* Updates up->known for the choice of this request. */
void ngx_http_kvroute_peers_look(ngx_http_kvroute_ctx_t *ctx);
/* An id or a state has changed: all processes look them up again. */
void ngx_http_kvroute_workers_changed(ngx_http_kvroute_srv_conf_t *up);
/* The same of what is usable or full, for a request that has tried none. */
void ngx_http_kvroute_room_look(ngx_http_kvroute_srv_conf_t *up);
/* Is one of the group that is in use usable, beside the current one? */
bool ngx_http_kvroute_another_usable(ngx_http_kvroute_ctx_t *ctx);
/* Its position in up->known, and its rank; n_peers: none. */
ngx_uint_t ngx_http_kvroute_peer_of(ngx_http_kvroute_srv_conf_t *up,
    uint64_t worker, uint32_t *rank);
/* Of the chosen worker; empty if it is gone. */
ngx_str_t ngx_http_kvroute_worker_name(ngx_http_kvroute_ctx_t *ctx);

/* follow */
/* Of a name; never 0. */
uint64_t ngx_http_kvroute_key(const u_char *name, size_t n);
/* Makes up->known of the peers as they are now; false: no memory. */
bool ngx_http_kvroute_peers_list(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log);
void ngx_http_kvroute_peers_free(ngx_http_kvroute_srv_conf_t *up);
/* The same, if they have changed since. */
void ngx_http_kvroute_peers_follow(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log);
bool ngx_http_kvroute_peers_changed(const ngx_http_kvroute_srv_conf_t *up);
/* Adds workers of new peers, as far as the lock is free. */
void ngx_http_kvroute_peers_join(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log);
/* Now and then: removes those of peers that have left. */
void ngx_http_kvroute_peers_leave(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log);
/* What is configured for this peer, or for the name it is of; or NULL. */
ngx_http_kvroute_server_t *ngx_http_kvroute_server_of(
    ngx_http_kvroute_srv_conf_t *up, const ngx_http_upstream_rr_peer_t *peer);
/* Finds the addresses of kvroute_server, once all servers are read. */
ngx_int_t ngx_http_kvroute_servers_settle(ngx_conf_t *cf,
    ngx_http_kvroute_srv_conf_t *up);

/* region */
ngx_int_t ngx_http_kvroute_regions_prepare(ngx_cycle_t *cycle);
ngx_int_t ngx_http_kvroute_regions_attach(ngx_cycle_t *cycle);
void ngx_http_kvroute_regions_leave(ngx_cycle_t *cycle);

/* replicas */
/* Did kvroute-sync open leases of this owner? */
bool ngx_http_kvroute_is_brought(uint64_t owner);
/* Sets up->silent, and ends loads if so; false: there is more to do soon. */
bool ngx_http_kvroute_replicas_watch(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log);

/* read */
/* Of each process, before its first request. */
void ngx_http_kvroute_read_begin(ngx_cycle_t *cycle);
/* The body of this request, read to its end, for one choice; or NULL. */
ngx_http_kvroute_reader_t *ngx_http_kvroute_reader_get(
    ngx_http_kvroute_ctx_t *ctx);

/* For early and salt: the upstream that lends what reading needs, or NULL. */
ngx_http_kvroute_srv_conf_t *ngx_http_kvroute_lender(ngx_http_request_t *r);
/* May so many bytes be read in one go now? */
bool ngx_http_kvroute_is_now(size_t size);
/* In one go; false: it cannot be read. */
bool ngx_http_kvroute_read_whole(ngx_http_kvroute_reader_t *reader);
/* In turns. False: it cannot be read. Else `then` is called later. */
bool ngx_http_kvroute_hold(ngx_http_kvroute_reader_t *reader,
    ngx_http_client_body_handler_pt then);
/* A client that leaves while it is held ends the request. */
void ngx_http_kvroute_client_watch(ngx_http_kvroute_reader_t *reader);
void ngx_http_kvroute_phases_go_on(ngx_http_request_t *r);
/* The body was read, and has grown ahead of its end. */
void ngx_http_kvroute_reader_moved(ngx_http_request_t *r, ngx_chain_t *from,
    ngx_chain_t *to, off_t grown);

/* early */
ngx_int_t ngx_http_kvroute_early_add(ngx_conf_t *cf);
/* Empty if they are not known early. */
ngx_str_t ngx_http_kvroute_early_model(ngx_http_request_t *r);
ngx_str_t ngx_http_kvroute_early_id(ngx_http_request_t *r, ngx_uint_t which);

/* share */
char *ngx_http_kvroute_share_command(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* These two return NULL, or what is missing: here, and at last. */
char *ngx_http_kvroute_share_merge(ngx_conf_t *cf,
    ngx_http_kvroute_loc_conf_t *loc, ngx_http_kvroute_loc_conf_t *of);
char *ngx_http_kvroute_share_check(const ngx_http_kvroute_main_conf_t *main);
/* For struct kvr_request; 0: the index is not shared. */
uint32_t ngx_http_kvroute_share_of(ngx_http_kvroute_ctx_t *ctx);

/* salt */
char *ngx_http_kvroute_salt_command(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
/* Of the PRECONTENT phase; NGX_DECLINED: the request may go on. */
ngx_int_t ngx_http_kvroute_salt_set(ngx_http_request_t *r);
/* That was set in its body, or empty. */
ngx_str_t ngx_http_kvroute_salt_value(ngx_http_request_t *r);

/* reader */
ngx_http_kvroute_reader_t *ngx_http_kvroute_reader_make(ngx_http_request_t *r,
    ngx_http_kvroute_srv_conf_t *up, enum endpoint endpoint);
/* The newest of this request, or NULL; subrequests share its pool. */
ngx_http_kvroute_reader_t *ngx_http_kvroute_reader_of(ngx_http_request_t *r);
/* Takes what reading needs; false: no memory. */
bool ngx_http_kvroute_reader_begin(ngx_http_kvroute_reader_t *reader);
/* Reads one more piece; false: there is none, or none that may be read. */
bool ngx_http_kvroute_reader_piece(ngx_http_kvroute_reader_t *reader);
void ngx_http_kvroute_reader_end(ngx_http_kvroute_reader_t *reader);
/* Gives back the parser, or all; again is no error. */
void ngx_http_kvroute_reader_body_leave(ngx_http_kvroute_reader_t *reader);
void ngx_http_kvroute_reader_leave(ngx_http_kvroute_reader_t *reader);
ngx_http_kvroute_spares_t *ngx_http_kvroute_spares_new(ngx_pool_t *pool);
void ngx_http_kvroute_spares_free(ngx_http_kvroute_spares_t *spares);
/* One of the spares, or a new one; NULL: no memory. */
struct body *ngx_http_kvroute_body_take(ngx_http_kvroute_srv_conf_t *up);
void ngx_http_kvroute_body_put(ngx_http_kvroute_srv_conf_t *up,
    struct body *body);
struct kvr_prompt *ngx_http_kvroute_prompt_take(
    ngx_http_kvroute_srv_conf_t *up);
/* It must not be large. */
void ngx_http_kvroute_prompt_put(ngx_http_kvroute_srv_conf_t *up,
    struct kvr_prompt *prompt);

/* body */
void ngx_http_kvroute_body_read(ngx_http_kvroute_ctx_t *ctx);
/* Edits what is sent to the engine, as feedback requires. */
ngx_int_t ngx_http_kvroute_request_edit(ngx_http_kvroute_ctx_t *ctx);
/* Makes ctx->reader, with the prompt and its scope; facts are in ctx. */
bool ngx_http_kvroute_prompt_make(ngx_http_kvroute_ctx_t *ctx);
/* The prompt is no longer needed. */
void ngx_http_kvroute_prompt_leave(ngx_http_kvroute_ctx_t *ctx);

/* ranks */
/* These two return what is wrong, or NULL. */
const char *ngx_http_kvroute_ranks_set(ngx_http_kvroute_srv_conf_t *up,
    ngx_http_kvroute_server_t *server, const ngx_str_t *text);
const char *ngx_http_kvroute_rank_header_set(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *name);
/* Is there room for so many? The peers are known. */
ngx_int_t ngx_http_kvroute_ranks_check(ngx_conf_t *cf,
    ngx_http_kvroute_srv_conf_t *up);
/* How many workers a server is: 1 without ranks, or without facts. */
uint32_t ngx_http_kvroute_ranks_of(const ngx_http_kvroute_server_t *server);
/* Makes a place for the rank in the head of the request, */
ngx_int_t ngx_http_kvroute_rank_prepare(ngx_http_kvroute_ctx_t *ctx);
/* and writes the chosen one there, or none. */
void ngx_http_kvroute_rank_write(ngx_http_kvroute_ctx_t *ctx);
/* ADDRESS@RANK: cuts the name. False: it is another name. */
bool ngx_http_kvroute_rank_split(ngx_str_t *name, uint32_t *rank);

/* session */
char *ngx_http_kvroute_affinity_set(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
char *ngx_http_kvroute_responses_set(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
void ngx_http_kvroute_session_create(ngx_http_kvroute_loc_conf_t *loc);
void ngx_http_kvroute_session_merge(ngx_http_kvroute_loc_conf_t *loc,
    const ngx_http_kvroute_loc_conf_t *of);
/* What is wrong, or NULL. */
const char *ngx_http_kvroute_secret_read(ngx_conf_t *cf,
    ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *file);
/* Once the body is read. */
void ngx_http_kvroute_session_read(ngx_http_kvroute_ctx_t *ctx);
/*
 * Does the request need state that is somewhere? Then ctx->worker is that
 * worker; or it is 0 and ctx->reason says why it cannot be had: lost, or busy.
 */
bool ngx_http_kvroute_session_find(ngx_http_kvroute_ctx_t *ctx, int64_t now);
/* It is at peer i, n_peers: that is not known, but cannot be had now. */
void ngx_http_kvroute_session_busy(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t i);
void ngx_http_kvroute_session_count(ngx_http_kvroute_ctx_t *ctx);
/* The status is 2xx. */
void ngx_http_kvroute_session_accepted(ngx_http_kvroute_ctx_t *ctx);
/* ctx->answer has read more. */
void ngx_http_kvroute_session_answered(ngx_http_kvroute_ctx_t *ctx);

/* peer */
/* The server of the latest try; empty: none. It outlives the peer. */
ngx_str_t ngx_http_kvroute_taken_name(const ngx_http_kvroute_ctx_t *ctx);
/* Has it tried peer i of up->known? */
bool ngx_http_kvroute_has_tried(const ngx_http_kvroute_ctx_t *ctx,
    ngx_uint_t i);
/* That the request went to, or the one of its ranks that `draw` draws. */
uint64_t ngx_http_kvroute_taken_worker(ngx_http_kvroute_ctx_t *ctx,
    uint64_t draw);
ngx_int_t ngx_http_kvroute_init_upstream(ngx_conf_t *cf,
    ngx_http_upstream_srv_conf_t *us);

/* capacity */
/* Once up->known is made. */
void ngx_http_kvroute_asks_begin(ngx_http_kvroute_srv_conf_t *up,
    ngx_cycle_t *cycle);
/* Peers of up->known are new. */
void ngx_http_kvroute_asks_follow(ngx_http_kvroute_srv_conf_t *up);
void ngx_http_kvroute_ask_free(ngx_http_kvroute_ask_t *ask);
void ngx_http_kvroute_asks_leave(ngx_http_kvroute_srv_conf_t *up);
/* A request failed at this peer. */
void ngx_http_kvroute_trouble(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *name);

/* poll */
/* As asks: once up->known is made. Each process; one of them polls. */
void ngx_http_kvroute_polls_begin(ngx_http_kvroute_srv_conf_t *up,
    ngx_cycle_t *cycle);
void ngx_http_kvroute_polls_follow(ngx_http_kvroute_srv_conf_t *up);
void ngx_http_kvroute_poll_free(ngx_http_kvroute_poll_t *poll);
void ngx_http_kvroute_polls_leave(ngx_http_kvroute_srv_conf_t *up);
/* What is known, at most n_workers of them. */
size_t ngx_http_kvroute_polled_list(const ngx_http_kvroute_srv_conf_t *up,
    struct status_load *out);
/* These two return what is wrong, or NULL. */
const char *ngx_http_kvroute_poll_set(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *value);
const char *ngx_http_kvroute_poll_path_set(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *value);

/* health */
bool ngx_http_kvroute_health_on(const ngx_http_kvroute_srv_conf_t *up);
/* Of the master. */
void ngx_http_kvroute_health_prepare(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log);
/* Of each process: up->known is made, and up->fleet has room. */
void ngx_http_kvroute_health_follow(ngx_http_kvroute_srv_conf_t *up);
/* The same for peers that were there before places of others became free. */
void ngx_http_kvroute_health_follow_late(ngx_http_kvroute_srv_conf_t *up);
/* The worker of this key has left. */
void ngx_http_kvroute_health_leave(ngx_http_kvroute_srv_conf_t *up,
    uint64_t key);
/* For a choice: up->known[].held. */
void ngx_http_kvroute_health_look(ngx_http_kvroute_ctx_t *ctx, int64_t now);
/* A gray peer that this request is to try; n_peers: none. */
ngx_uint_t ngx_http_kvroute_health_probe(ngx_http_kvroute_ctx_t *ctx,
    int64_t now);
void ngx_http_kvroute_health_sent(ngx_http_kvroute_ctx_t *ctx, ngx_uint_t i,
    int64_t now);
/* ctx->answer has read more of a stream. */
void ngx_http_kvroute_health_progress(ngx_http_kvroute_ctx_t *ctx);
/* The state that nginx is to be told of the peer that is given back. */
ngx_uint_t ngx_http_kvroute_health_free(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc, ngx_uint_t state);
void ngx_http_kvroute_health_end(ngx_http_kvroute_ctx_t *ctx, bool taken);
/* An operator says that it is good. */
void ngx_http_kvroute_health_forget(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *name);
/* What is known, at most n_peers of them. */
size_t ngx_http_kvroute_health_list(const ngx_http_kvroute_srv_conf_t *up,
    struct status_health *out);
/* These two return what is wrong, or NULL. */
const char *ngx_http_kvroute_gray_set(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *value);
const char *ngx_http_kvroute_slow_start_set(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *value);

/* queue */
/* Of the master; then of each process. */
void ngx_http_kvroute_queue_prepare(ngx_http_kvroute_srv_conf_t *up);
void ngx_http_kvroute_queue_begin(ngx_http_kvroute_srv_conf_t *up,
    ngx_log_t *log);
/* For a request, with so many bytes of tried peers; false: no memory. */
bool ngx_http_kvroute_queue_make(ngx_http_kvroute_ctx_t *ctx, size_t bytes);
/* Before a choice: what is known of peers, to return to. */
void ngx_http_kvroute_queue_keep(ngx_http_kvroute_ctx_t *ctx);
/* Servers that older ones wait for are full for it. */
void ngx_http_kvroute_queue_yield(ngx_http_kvroute_ctx_t *ctx);
/* Is it its turn to go anywhere? */
bool ngx_http_kvroute_queue_lets(ngx_http_kvroute_ctx_t *ctx);
/* A choice gave no peer. NGX_AGAIN: the request waits, else NGX_BUSY. */
ngx_int_t ngx_http_kvroute_queue_wait(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc);
/* Are there servers in use, and all of them full? */
bool ngx_http_kvroute_all_full(const ngx_http_kvroute_srv_conf_t *up);
/* A peer was given back. */
void ngx_http_kvroute_queue_freed(ngx_http_kvroute_srv_conf_t *up);
/* These two return what is wrong, or NULL. */
const char *ngx_http_kvroute_queue_set(ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *value);
const char *ngx_http_kvroute_queue_timeout_set(
    ngx_http_kvroute_srv_conf_t *up, const ngx_str_t *value);
/* Warns if it cannot have an effect. */
void ngx_http_kvroute_queue_check(ngx_conf_t *cf,
    ngx_http_kvroute_srv_conf_t *up);

/* places */
/* Milliseconds, for the order; never 0. */
uint32_t ngx_http_kvroute_stamp(void);
bool ngx_http_kvroute_is_before(uint32_t a, uint32_t b);
/* Requests that wait, of all processes. */
size_t ngx_http_kvroute_queue_length(const ngx_http_kvroute_srv_conf_t *up);
/* A place of this process; false: there is none. */
bool ngx_http_kvroute_place_have(ngx_http_kvroute_srv_conf_t *up);
/* What the others are to know of it. */
void ngx_http_kvroute_place_write(ngx_http_kvroute_srv_conf_t *up);
void ngx_http_kvroute_place_leave(ngx_http_kvroute_srv_conf_t *up);
/* Does a plain request wait elsewhere for longer? */
bool ngx_http_kvroute_older_elsewhere(const ngx_http_kvroute_srv_conf_t *up,
    uint32_t since);
/* Servers that one wants that waits for longer are full. */
void ngx_http_kvroute_wanted_leave(ngx_http_kvroute_srv_conf_t *up,
    uint32_t since);

/* end */
/* `taken`: the peer accepted the request with a status below 400. */
void ngx_http_kvroute_end(ngx_http_kvroute_ctx_t *ctx, bool taken);
/* Now, or, KVR_EBUSY, once the lock is free. */
int ngx_http_kvroute_write(ngx_http_kvroute_srv_conf_t *up,
    ngx_http_kvroute_late_t *write);
void ngx_http_kvroute_late_run(ngx_event_t *event);
bool ngx_http_kvroute_late_write(ngx_http_kvroute_srv_conf_t *up);

/* extend */
/* At the headers of a response, while its prompt is there. */
void ngx_http_kvroute_extend_begin(ngx_http_kvroute_ctx_t *ctx);
/* The prompt with the answer, if that has passed whole; or NULL. */
struct kvr_prompt *ngx_http_kvroute_extend_end(ngx_http_kvroute_ctx_t *ctx,
    bool whole);
void ngx_http_kvroute_extend_leave(ngx_http_kvroute_ctx_t *ctx);
void ngx_http_kvroute_extend_free(ngx_http_kvroute_srv_conf_t *up);
int ngx_http_kvroute_extend(ngx_http_kvroute_srv_conf_t *up, uint64_t lease,
    struct kvr_prompt *prompt, int64_t now);

/* answer */
/* Of a directive: our filters are the first of all modules that were loaded. */
char *ngx_http_kvroute_filters_order(ngx_conf_t *cf);
/* ctx->answer is no longer needed. */
void ngx_http_kvroute_answer_leave(ngx_http_kvroute_ctx_t *ctx);

/* time */
void ngx_http_kvroute_time_begin(ngx_cycle_t *cycle);
/* Since `began`, which this turn of the loop spends in the module. */
uint64_t ngx_http_kvroute_spent(ngx_http_kvroute_srv_conf_t *up,
    int64_t began);
/* The first token has come; again is no error. */
void ngx_http_kvroute_first_timed(ngx_http_kvroute_ctx_t *ctx);
/* All of them have, and ctx->report says how many. */
void ngx_http_kvroute_tokens_timed(ngx_http_kvroute_ctx_t *ctx);
/* A request has waited for a server. */
void ngx_http_kvroute_waited(ngx_http_kvroute_srv_conf_t *up, uint64_t ns);
/* The request is over. */
void ngx_http_kvroute_request_timed(ngx_http_kvroute_ctx_t *ctx);
void ngx_http_kvroute_times_copy(struct histogram *to,
    const ngx_http_kvroute_shared_t *from);

/* variables */
ngx_int_t ngx_http_kvroute_variables_add(ngx_conf_t *cf);

/* trace */
char *ngx_http_kvroute_trace_set(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);
ngx_int_t ngx_http_kvroute_trace_add(ngx_conf_t *cf);
/* If this request is in the sample, keeps what its line needs. */
void ngx_http_kvroute_trace_keep(ngx_http_kvroute_ctx_t *ctx);

/* A body that was there before its upstream: NGX_DONE while it is read. */
ngx_int_t ngx_http_kvroute_read_ahead(ngx_http_request_t *r);
void ngx_http_kvroute_read_add(void);
size_t ngx_http_kvroute_body_size(ngx_http_request_t *r);
/* By kvroute_bypass, as it is now. */
bool ngx_http_kvroute_bypassed(ngx_http_request_t *r);
/* Leaves one that was read early: no choice of ours follows. */
void ngx_http_kvroute_reader_early_leave(ngx_http_request_t *r);
void ngx_http_kvroute_filters_add(void);

/* phases */
ngx_int_t ngx_http_kvroute_phases_add(ngx_conf_t *cf);

/* table */
bool ngx_http_kvroute_is_called(const ngx_http_kvroute_known_t *known,
    const ngx_str_t *name);
/* Its position among `n` first of up->known; n: none. */
ngx_uint_t ngx_http_kvroute_peer_called(const ngx_http_kvroute_srv_conf_t *up,
    const ngx_str_t *name, ngx_uint_t n);
/* By nginx's rules: not down, and not failed just now; at its max_conns. */
bool ngx_http_kvroute_is_alive(const ngx_http_upstream_rr_peer_t *peer,
    time_t now);
bool ngx_http_kvroute_is_full(const ngx_http_upstream_rr_peer_t *peer);
/* Flags of a rank: look up its id; it was in use when that was done. */
enum {
	NGX_HTTP_KVROUTE_RANK_DUE = 1,
	NGX_HTTP_KVROUTE_RANK_OPEN = 2
};

/* try */
/* The position in up->known of the server of the latest try; n_peers: none. */
ngx_uint_t ngx_http_kvroute_taken_peer(ngx_http_kvroute_ctx_t *ctx);

/* take */
/* Makes the bits of tried peers anew, those of up->known; false: no memory. */
bool ngx_http_kvroute_tried_fit(ngx_http_kvroute_ctx_t *ctx);
ngx_int_t ngx_http_kvroute_stock_get(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc);
/* Peer i of up->known. NGX_BUSY: it became unusable meanwhile. */
ngx_int_t ngx_http_kvroute_take(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc, ngx_uint_t i);
/* The one with the fewest connections by weight. */
ngx_int_t ngx_http_kvroute_take_least(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc);
/* NGX_BUSY, as the stock method returns it when no peer is left. */
ngx_int_t ngx_http_kvroute_take_none(ngx_http_kvroute_ctx_t *ctx,
    ngx_peer_connection_t *pc);

/* choose */
/* Sets ctx->worker, and its lease if `book`. False: ctx->reason is why not. */
bool ngx_http_kvroute_choose(ngx_http_kvroute_ctx_t *ctx, int64_t now,
    bool book);
/* Books the request on ctx->worker, which is given; it may fail. */
void ngx_http_kvroute_kept_book(ngx_http_kvroute_ctx_t *ctx, int64_t now);
/* Books it on the worker that was used, as if chosen. */
void ngx_http_kvroute_shadow_book(ngx_http_kvroute_ctx_t *ctx, int64_t now);

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

/* That waits, of a place in a queue. */
#define ngx_http_kvroute_waiter(q) \
	(ngx_queue_data((q), ngx_http_kvroute_ctx_t, wait.queue))

/* The request's ctx, if it went to one of our upstreams. */
#define ngx_http_kvroute_ctx(r) ((ngx_http_kvroute_ctx_t *) \
	ngx_http_get_module_ctx(r, ngx_http_upstream_kvroute_module))

#endif
