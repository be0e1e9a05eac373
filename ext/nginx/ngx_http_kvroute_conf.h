/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_conf.h - what is configured, and what a process has of it.
 *
 * Each file has a header and calls only files above its own line. Only the
 * module's symbol is used by all: by it nginx finds what is configured.
 *
 *   conf, shared, ctx      types: configured, in the zone, of a request
 *   server table           facts of servers; the peers that a process knows
 *   kept                   structs that the pool of a request keeps
 *   reader edit            the body in pieces; the request that is sent
 *   secret param           the secret of hashes; parameters of directives
 *   session_conf share     directives
 *   fetch reply time       a connection, a response, histograms
 *   replicas               what kvroute-sync has brought
 *
 *   try workers            what was tried; workers of the region
 *   read ranks             bodies in turns; the header for a rank
 *   capacity poll          what engines are asked for
 *   extend args            the prompt with its answer; a question of status
 *
 *   places health          what waits in other processes; gray servers
 *   early salt trace       before the choice; what replay(1) reads
 *
 *   body                   what was read -> prompt
 *   end                    finish or abort, also while the lock is held
 *   follow zone variables  peers that come and go; the region's memory; logs
 *
 *   look choose            the peers as they are now; the best of them
 *   show explain           JSON, metrics, page
 *
 *   queue session status   what waits; sessions and their state; orders
 *   take answer region     nginx's balancer; response filters; processes
 *   peer                   the life of a request, as kvr_lease(3) draws it
 *   phases                 filters and handlers
 *   module                 directives; calls of nginx at start
 *
 * A request has one struct here, ngx_http_kvroute_ctx_t, made when its
 * upstream is chosen, and a reader, which may be older: a long body is read in
 * pieces before that. The reader has a parser until the choice and a prompt
 * until the headers of the response, so that a retry does not parse again. All
 * time is CLOCK_MONOTONIC.
 */
#ifndef NGX_HTTP_KVROUTE_CONF_H
#define NGX_HTTP_KVROUTE_CONF_H

#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include <kvroute.h>
#include <stdbool.h>

/* Does this nginx resolve names of servers while it runs, from 1.27.3 on? */
#if (NGX_HTTP_UPSTREAM_ZONE) && defined ngx_http_upstream_rr_peer_ref
#define NGX_HTTP_KVROUTE_RESOLVE 1
#else
#define NGX_HTTP_KVROUTE_RESOLVE 0
#endif

typedef struct ngx_http_kvroute_ask_s ngx_http_kvroute_ask_t;
typedef struct ngx_http_kvroute_ctx_s ngx_http_kvroute_ctx_t;
typedef struct ngx_http_kvroute_known_s ngx_http_kvroute_known_t;
typedef struct ngx_http_kvroute_late_s ngx_http_kvroute_late_t;
typedef struct ngx_http_kvroute_left_s ngx_http_kvroute_left_t;
typedef struct ngx_http_kvroute_loc_conf_s ngx_http_kvroute_loc_conf_t;
typedef struct ngx_http_kvroute_main_conf_s ngx_http_kvroute_main_conf_t;
typedef struct ngx_http_kvroute_poll_s ngx_http_kvroute_poll_t;
typedef struct ngx_http_kvroute_polled_s ngx_http_kvroute_polled_t;
typedef struct ngx_http_kvroute_queue_s ngx_http_kvroute_queue_t;
typedef struct ngx_http_kvroute_reader_s ngx_http_kvroute_reader_t;
typedef struct ngx_http_kvroute_server_s ngx_http_kvroute_server_t;
typedef struct ngx_http_kvroute_shared_s ngx_http_kvroute_shared_t;
typedef struct ngx_http_kvroute_spares_s ngx_http_kvroute_spares_t;
typedef struct ngx_http_kvroute_srv_conf_s ngx_http_kvroute_srv_conf_t;
typedef struct ngx_http_kvroute_trace_s ngx_http_kvroute_trace_t;

enum { NGX_HTTP_KVROUTE_SPARES = 32 };

struct ngx_http_kvroute_srv_conf_s {
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
	uint32_t shadow;        /* ngx_http_kvroute_shadow_t */
	ngx_array_t *servers;   /* ngx_http_kvroute_server_t */
	bool ranked;            /* one of them has ranks */
	ngx_msec_t poll_ms;     /* 0: off */
	ngx_str_t poll_path;
	double gray;            /* times as slow as others; 0: off */
	ngx_msec_t slow_start;  /* 0: off */
	uint32_t queue;         /* how many may wait; 0: off */
	ngx_msec_t queue_timeout;
	ngx_shm_zone_t *zone;
	/* in the zone */
	ngx_http_kvroute_shared_t *shared;
	ngx_http_kvroute_polled_t *polled; /* [options.max_workers] */
	struct health *health;  /* [options.max_workers], or NULL */
	void *memory;           /* the region, if not a file */
	size_t bytes;
	/* of this process */
	struct kvr *kvr;        /* NULL: no region; no prediction */
	struct {                /* parsers and writers that no request has */
		ngx_http_kvroute_spares_t *readers;
		struct answer *answers[NGX_HTTP_KVROUTE_SPARES];
		ngx_uint_t n_answers;
		struct reply *replies[NGX_HTTP_KVROUTE_SPARES];
		ngx_uint_t n_replies;
	} spare;
	struct {                /* of leases; see region.c and replicas.c */
		uint64_t self;  /* this process */
		ngx_event_t watch; /* for those that have died */
		bool behind;    /* the master could not sync the workers */
		uint64_t listed; /* where looking for dead ones goes on; */
		uint64_t dead, reaped; /* one that is being reaped, or 0, */
		                /* and where that goes on */
		bool silent;    /* kvroute-sync, since its latest beat; */
		int64_t silence; /* that + 1, when loads were ended; or 0 */
		uint64_t unloaded; /* where ending them goes on */
	} owners;
	ngx_atomic_uint_t epoch;
	ngx_http_kvroute_known_t *known;
	struct {                /* peers that come and go, see follow.c */
		ngx_uint_t generation; /* of those in `known` */
		bool resolves;  /* there are such */
		bool joining;   /* not all of `known` have joined */
		bool leaving;   /* workers may have no peer */
		ngx_http_kvroute_left_t *left; /* [options.max_workers] */
		ngx_uint_t n_left;
	} follow;
	ngx_uint_t n_peers;
	ngx_uint_t n_first;     /* of them, not backups */
	ngx_uint_t n_workers;   /* of them, with their ranks */
	uint64_t *allowed;      /* scratch: ids of usable peers' workers */
	ngx_uint_t turn;        /* which of equals is first */
	struct health **fleet;  /* of first peers, each once */
	ngx_uint_t n_fleet;     /* 0: health is off */
	struct {                /* writes that wait for the lock, see end.c */
		ngx_queue_t queue; /* ngx_http_kvroute_late_t */
		ngx_uint_t binds; /* those of them that bind */
		ngx_event_t timer;
	} late;
	struct status_name *asked; /* those with capacity=auto */
	size_t n_asked;
	struct {                /* of the process that does, see capacity.c */
		bool on;
		ngx_uint_t n;   /* now */
		ngx_event_t timer;
		ngx_log_t log;
	} asks;
	struct {                /* see poll.c */
		bool on;
		ngx_event_t timer;
	} polls;
	struct {                /* requests that wait, see queue.c */
		uint32_t life;
		ngx_http_kvroute_queue_t *place; /* NULL: none does */
		ngx_queue_t plain, others; /* of ngx_http_kvroute_ctx_t */
		ngx_queue_t fresh; /* of them, those with nginx's timer */
		ngx_uint_t n;
		ngx_event_t event;
	} waits;
};

typedef enum {
	NGX_HTTP_KVROUTE_CHOOSE = 0,
	NGX_HTTP_KVROUTE_LEAST_CONN,
	NGX_HTTP_KVROUTE_ROUND_ROBIN
} ngx_http_kvroute_shadow_t;

struct ngx_http_kvroute_main_conf_s {
	ngx_array_t upstreams;  /* ngx_http_kvroute_srv_conf_t *, those on */
	const char *needs;      /* NULL, or a directive that needs one */
	bool shared;            /* some block has kvroute_share, */
	bool scoped;            /* and some such one kvroute_scope */
};

typedef enum {
	NGX_HTTP_KVROUTE_STRIP = 0,
	NGX_HTTP_KVROUTE_KEEP
} ngx_http_kvroute_reasoning_t;

struct ngx_http_kvroute_loc_conf_s {
	size_t max_body;
	ngx_http_complex_value_t *model;
	ngx_http_complex_value_t *scope;
	ngx_flag_t feedback;
	ngx_flag_t include_usage;
	ngx_array_t *affinity;  /* ngx_http_complex_value_t; NULL: off */
	uint32_t affinity_mode; /* enum kvr_affinity_mode */
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
};

extern ngx_module_t ngx_http_upstream_kvroute_module;

#endif
