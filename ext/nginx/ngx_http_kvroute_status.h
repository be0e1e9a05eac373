/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_status.h - what the files behind kvroute_status share.
 *
 *   status   which question is it?          orders
 *   state    counters; the state as JSON
 *   metrics  text for Prometheus
 *   explain  what would become of a body?
 *   page     for people
 *   reply    the answer, while it is written
 */
#ifndef NGX_HTTP_KVROUTE_STATUS_H
#define NGX_HTTP_KVROUTE_STATUS_H

#include "ngx_http_kvroute_reply.h"

/* A counter of ngx_http_kvroute_shared_t by its names. */
typedef struct {
	const char *group; /* object in the JSON; NULL: the upstream's */
	const char *name;
	const char *help;
	size_t offset;
	size_t less;       /* offset of what is not among them; 0: nothing */
} kvroute_counter_t;

enum { KVROUTE_COUNTERS = 19 };
extern const kvroute_counter_t kvroute_counters[KVROUTE_COUNTERS];
uint64_t kvroute_count(const ngx_http_kvroute_srv_conf_t *up, size_t i);
/* Do requests ever go anywhere for this reason? */
bool kvroute_reason_occurs(ngx_uint_t reason);

/* An argument of the request, decoded; empty if it is not there. */
ngx_str_t kvroute_argument(ngx_http_request_t *r, const char *name);
bool kvroute_is(const ngx_str_t *text, const char *word);

/* The upstreams that are asked for; n == 0: there is none of that name. */
typedef struct {
	ngx_http_kvroute_srv_conf_t **at;
	ngx_uint_t n;
} kvroute_upstreams_t;
kvroute_upstreams_t kvroute_upstreams(ngx_http_request_t *r);
ngx_int_t kvroute_no_upstream(ngx_http_request_t *r);
/* The one that is asked for, or NULL and what to answer. */
ngx_http_kvroute_srv_conf_t *kvroute_upstream(ngx_http_request_t *r,
    ngx_int_t *answer);

/*
 * Asks again while the lock is taken, for a few milliseconds at most: so much
 * may a question of people cost. The error that remains is the caller's.
 */
#define KVROUTE_PATIENTLY(error, call) do { \
	ngx_uint_t tries_ = KVROUTE_TRIES; \
	do \
		(error) = (call); \
	while ((error) == KVR_EBUSY && --tries_ > 0); \
} while (0)
enum { KVROUTE_TRIES = 400 };

/* Is that in vain, because a process was stopped while it had the lock? */
bool kvroute_blocked(ngx_http_kvroute_srv_conf_t *up);
ngx_int_t kvroute_blocked_answer(ngx_http_request_t *r);

const char *kvroute_state_name(uint32_t state);
ngx_int_t kvroute_state_show(ngx_http_request_t *r);
ngx_int_t kvroute_metrics_show(ngx_http_request_t *r);
ngx_int_t kvroute_page_show(ngx_http_request_t *r);

#endif
