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
 * Errors: the writer has failed. Workers that are removed meanwhile are left
 * out. While another process holds the lock of an index a call is repeated for
 * a few milliseconds, then the report fails; ask status_blocked first, to say
 * so in the response.
 */
#ifndef KVROUTE_STATUS_H
#define KVROUTE_STATUS_H

#include "counters.h"
#include "text_writer.h"

struct status_upstream {
	const char *name;
	size_t name_length;
	struct kvr *kvr;        /* NULL: no index */
	struct kvr_options options; /* configured; an index has its own */
	uint32_t cost;          /* of the policy */
	const char *shadow;     /* how requests are routed instead, or NULL */
	const struct counters *counters; /* NULL: none */
};

struct status {
	const char *proxy;      /* "nginx": kvroute_nginx_..._total */
	uint64_t time;          /* wall clock in seconds */
	const struct status_upstream *upstream;
	size_t upstreams;
};

void status_json(const struct status *s, struct writer *to);
void status_metrics(const struct status *s, struct writer *to);

/* Does another process hold the lock for longer than calls are repeated? */
bool status_blocked(struct kvr *k);
/* "up", "draining", "down"; "?" for unknown numbers. */
const char *status_state_name(uint32_t state);

/* Repeats a call while the lock is held: a few milliseconds at most. */
#define STATUS_RETRY(error, call) do { \
	unsigned tries_ = STATUS_TRIES; \
	do \
		(error) = (call); \
	while ((error) == KVR_EBUSY && --tries_ > 0); \
} while (0)
enum { STATUS_TRIES = 400 };

#endif
