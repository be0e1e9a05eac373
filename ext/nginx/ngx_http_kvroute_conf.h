/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_conf.h - the configuration, and the state of a process.
 *
 * Each file has a header and calls only files above its own line. Only the
 * module's symbol is used by all: by it nginx finds the configuration.
 *
 *   conf, ctx              types: configured, of a request
 *   find                   headers, lines, modules, structs of a request
 *   server                 facts of servers
 *   reader edit            endpoints, the body in pieces; the request as sent
 *   param                  directives
 *   time                   histograms, timers
 *   poll                   questions to engines
 *   follow peers           peers that come and go, were tried, are taken
 *   reply                  responses of our own; errors with a sentence
 *   read ranks             bodies in turns; headers of a choice
 *
 *   early salt             before the choice
 *   variables              logs; the input of replay(1)
 *
 *   body                   text -> prompt
 *   end                    finish or abort, also while the lock is held; health
 *   choose                 the best of the peers
 *   status                 JSON, metrics, page, explanations, orders
 *
 *   queue session          the line; sessions and their state
 *   answer region          response filters; processes
 *   peer                   the life of a request, as kvr_lease(3) draws it
 *   advice                 lines that are missing
 *   module                 directives, phases; calls of nginx at start
 *
 * A request has one struct here, kvroute_ctx_t, made when its
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

#include "fronts.h"
#include "known.h"
#include "members.h"
#include "replicas.h"
#include "waits.h"
#include "writes.h"

/* Does this nginx resolve names of servers while it runs, from 1.27.3 on? */
#if (NGX_HTTP_UPSTREAM_ZONE) && defined ngx_http_upstream_rr_peer_ref
#define KVROUTE_RESOLVE 1
#else
#define KVROUTE_RESOLVE 0
#endif

typedef struct kvroute_ctx_s kvroute_ctx_t;
typedef struct kvroute_loc_conf_s kvroute_loc_conf_t;
typedef struct kvroute_main_conf_s kvroute_main_conf_t;
typedef struct kvroute_reader_s kvroute_reader_t;
typedef struct kvroute_server_s kvroute_server_t;
typedef struct kvroute_srv_conf_s kvroute_srv_conf_t;
typedef struct kvroute_trace_s kvroute_trace_t;

/* Does it have the directive "sticky", from 1.29.6 on? */
#if (NGX_HTTP_UPSTREAM_SID) && (NGX_HTTP_UPSTREAM_STICKY)
#define KVROUTE_STICKY 1
#else
#define KVROUTE_STICKY 0
#endif

enum {
	KVROUTE_LED = 8,
	KVROUTE_BY_PATH = 255 /* no enum endpoint */
};

typedef struct {
	ngx_sockaddr_t address;
	socklen_t length;
} kvroute_address_t;

struct kvroute_srv_conf_s {
	ngx_http_upstream_srv_conf_t *upstream;
	ngx_http_upstream_init_peer_pt init_stock;
	ngx_cycle_t *cycle;
	/* as configured */
	bool on;
	bool sized;             /* affinity= is given */
	unsigned advised;       /* bits of lines that were logged */
	ngx_str_t zone_name;
	size_t zone_size;
	ngx_str_t path;         /* of a region file, or empty */
	struct kvr_options options;
	struct kvr_policy policy;
	uint32_t shadow;        /* kvroute_shadow_t */
	ngx_array_t servers;    /* kvroute_server_t */
	ngx_uint_t n_workers;   /* at the start, at least */
	bool ranked;            /* one of them has ranks */
	bool parted;            /* one of them has a role */
	uint64_t queue_timeout; /* ms */
	/* its servers, and their shared state */
	struct fleet fleet;
	/* in the zone */
	ngx_shm_zone_t *zone;
	void *memory;           /* the region, if not a file */
	size_t bytes;
	/* of this process */
	struct spares *spares;  /* a copy of this struct has the same */
	struct {                /* of leases; see region.c */
		struct replicas seen;
		ngx_event_t watch; /* for processes that have died */
		bool behind;    /* the master could not sync the workers */
	} owners;
	kvroute_address_t *addresses; /* of peers */
	struct {                /* peers that come and go, see follow.c */
		ngx_uint_t generation; /* that the fleet has */
		struct members members;
	} follow;
	struct writes writes;
	ngx_event_t late;       /* when some of them wait for the lock */
	struct {                /* of the process that does, see poll.c */
		bool on;
		ngx_event_t timer;
		ngx_log_t log;
	} asks;
	struct {
		bool on;
		ngx_event_t timer;
	} polls;
	struct fronts *fronts;  /* of this process */
	struct {                /* requests that wait, see queue.c */
		struct waits line;
		ngx_queue_t fresh; /* those with nginx's timer */
		ngx_event_t event;
	} waits;
};

typedef enum {
	KVROUTE_CHOOSE = 0,
	KVROUTE_LEAST_CONN,
	KVROUTE_ROUND_ROBIN
} kvroute_shadow_t;

struct kvroute_main_conf_s {
	ngx_array_t upstreams;  /* kvroute_srv_conf_t *, those on */
	const char *needs;      /* NULL, or why there must be one */
	bool shared;            /* some block has kvroute_share, */
	bool scoped;            /* and some such one kvroute_scope */
};

typedef enum {
	KVROUTE_STRIP = 0,
	KVROUTE_KEEP
} kvroute_reasoning_t;

/* A client's path has led to an endpoint that it does not name. */
typedef struct {
	uint32_t key;           /* of the path; 0: the place is free */
	uint32_t endpoint;
} kvroute_led_t;

struct kvroute_loc_conf_s {
	size_t max_body;
	ngx_uint_t endpoint;    /* enum endpoint, or BY_PATH */
	ngx_array_t *ignored;   /* ngx_regex_t *; NULL: no lines */
	ngx_http_complex_value_t *model;
	ngx_http_complex_value_t *scope;
	ngx_flag_t feedback;
	ngx_flag_t include_usage;
	ngx_array_t *affinity;  /* ngx_http_complex_value_t; NULL: off */
	uint32_t affinity_mode; /* enum kvr_affinity_mode */
	int64_t affinity_ttl;
	int64_t responses_ttl;  /* 0: off; NGX_CONF_UNSET: not known */
	ngx_uint_t reasoning;   /* kvroute_reasoning_t */
	ngx_array_t *bypass;    /* ngx_http_complex_value_t */
	kvroute_trace_t *trace; /* NULL: off */
	ngx_flag_t status;
	ngx_flag_t early;
	ngx_flag_t server_header;
	ngx_msec_t comments;    /* 0: off */
	ngx_http_complex_value_t *salt;
	ngx_http_complex_value_t *share;
	/* of this process: where the last request went */
	kvroute_srv_conf_t *seen;
	kvroute_led_t led[KVROUTE_LED];
};

extern ngx_module_t ngx_http_upstream_kvroute_module;

/* The location of a request; the configuration that is read. */
#define kvroute_loc(r) ((kvroute_loc_conf_t *) \
	ngx_http_get_module_loc_conf(r, ngx_http_upstream_kvroute_module))
#define kvroute_main(cf) ((kvroute_main_conf_t *) \
	ngx_http_conf_get_module_main_conf(cf, \
	ngx_http_upstream_kvroute_module))

#endif
