/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status.h - what a proxy can tell about its upstreams.
 *
 *   struct status ---> status_json      state, as JSON    page.html shows it
 *                 ---> status_metrics   text for Prometheus
 *   struct explain --> status_explain   what would happen to one request body
 *
 * The proxy fills the structs and sends what is written. They borrow: names,
 * counters and indexes must stay valid during the call. The functions read the
 * indexes, write to the writer, and keep and free nothing.
 *
 * Precondition: each handle is kvr_nowait_set. On any other the calls sleep for
 * as long as the lock of the index is held.
 *
 * Errors: the writer has failed. Workers that are removed meanwhile are left
 * out. A call that finds the lock held is repeated, but STATUS_TRIES of them,
 * some ten milliseconds, fail a whole report, which then reads nothing further;
 * status_metrics leaves the repeating to kvr_metrics. Ask status_blocked first,
 * to say so in the response.
 */
#ifndef KVROUTE_STATUS_H
#define KVROUTE_STATUS_H

#include "counters.h"
#include "text_writer.h"

/* Calls of a whole report that may find a lock held. */
enum { STATUS_TRIES = 400 };

struct status_name {
	const char *bytes;
	size_t length;
};

/* What the engine of a worker has said of its load. */
struct status_load {
	uint64_t worker;        /* its id */
	const char *name;
	size_t name_length;
	uint32_t rank;
	uint64_t running, waiting;
	double usage;           /* of its KV cache; below 0: not known */
	uint64_t surplus;       /* requests that were not booked */
	double age;             /* seconds */
};

/* How a worker is, beside the others of its upstream. */
struct status_health {
	const char *name;
	size_t name_length;
	const char *what;       /* "good", "slow", "failing", "warming" */
};

struct status_upstream {
	const char *name;
	size_t name_length;
	struct kvr *kvr;        /* kvr_nowait_set; NULL: no index */
	struct kvr_options options; /* configured; an index has its own */
	uint32_t cost;          /* of the policy */
	const char *shadow;     /* how requests are routed instead, or NULL */
	const struct counters *counters; /* NULL: none */
	const struct status_name *asked; /* workers whose engines say their */
	size_t n_asked;                  /* capacity; others have been told */
	const struct status_load *loads; /* those known */
	size_t n_loads;
	const struct status_health *healths; /* those known */
	size_t n_healths;
	const uint64_t *left;   /* ids of workers whose server has left */
	size_t n_left;
	uint64_t queue;         /* requests that may wait; 0: none may */
	uint64_t waiting;       /* that do */
};

struct status {
	const char *proxy;      /* "nginx": kvroute_nginx_..._total */
	uint64_t time;          /* wall clock in seconds */
	const struct status_upstream *upstream;
	size_t upstreams;
};

void status_json(const struct status *s, struct writer *to);
void status_metrics(const struct status *s, struct writer *to);

/* Does another process hold the lock, for STATUS_TRIES? Changes nothing. */
bool status_blocked(const struct kvr *k);
/* "up", "draining", "down"; "?" for unknown numbers. */
const char *status_state_name(uint32_t state);

#endif
