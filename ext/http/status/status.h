/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status.h - writes reports about the upstreams of a proxy.
 *
 *   struct status ---> status_json      state, as JSON    page.html shows it
 *                 ---> status_metrics   text for Prometheus
 *   struct explain --> status_explain   the choice for one request body
 *
 * The proxy fills the structs and sends the text that is written. The structs
 * borrow: names, counters and indexes must stay valid during the call. The
 * functions read the indexes, write to the writer, and keep and free nothing.
 *
 * Precondition: each handle is kvr_nowait_set. On any other the calls sleep for
 * as long as the lock of the index is held.
 *
 * An error fails the writer. Workers that are removed meanwhile are left out. A
 * call that finds the lock held is repeated; STATUS_TRIES such calls, some ten
 * milliseconds, fail the whole report, which then reads nothing further.
 * kvr_metrics repeats by itself. A proxy that asks status_blocked first can
 * give this error a response of its own.
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

/* The load that the engine of a worker has published. */
struct status_load {
	uint64_t worker;        /* its id */
	const char *name;
	size_t name_length;
	uint32_t rank;
	uint64_t running, waiting;
	double usage;           /* share of its KV cache; below 0: not known */
	uint64_t surplus;       /* requests that were not booked */
	double age;             /* seconds since it was read */
};

/* The health of a worker, beside the others of its upstream. */
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
	uint32_t cost;          /* enum kvr_cost of the policy */
	const char *shadow;     /* the method that routes instead, or NULL */
	const struct counters *counters; /* NULL: all are 0 */
	const struct status_name *asked; /* their capacity is read; */
	size_t n_asked;                  /* that of others is configured */
	const struct status_load *loads; /* the known ones */
	size_t n_loads;
	const struct status_health *healths; /* the known ones */
	size_t n_healths;
	const uint64_t *left;   /* ids of workers; their servers have left */
	size_t n_left;
	uint64_t queue;         /* requests that may wait; 0: none may */
	uint64_t waiting;       /* requests that wait */
};

struct status {
	const char *proxy;      /* as in kvroute_PROXY_..._total */
	uint64_t time;          /* wall clock in seconds */
	const struct status_upstream *upstream;
	size_t upstreams;
};

void status_json(const struct status *s, struct writer *to);
void status_metrics(const struct status *s, struct writer *to);

/* Does another process hold the lock, for STATUS_TRIES? Changes nothing. */
bool status_blocked(const struct kvr *k);
/* Returns "up", "draining" or "down"; "?" for unknown numbers. */
const char *status_state_name(uint32_t state);

#endif
