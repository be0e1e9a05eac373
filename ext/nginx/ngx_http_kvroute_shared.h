/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ngx_http_kvroute_shared.h - what lies in the zone: all nginx processes of an
 * upstream see it.
 */
#ifndef NGX_HTTP_KVROUTE_SHARED_H
#define NGX_HTTP_KVROUTE_SHARED_H

#include "ngx_http_kvroute_conf.h"

#include "counters.h"
#include "endpoint.h"
#include "histogram.h"
#include "reason.h"
#include "surplus.h"

enum {
	NGX_HTTP_KVROUTE_TROUBLES = 64,
	NGX_HTTP_KVROUTE_QUEUES = 128,
	NGX_HTTP_KVROUTE_WANTED = 4
};

/*
 * Of a process whose requests wait: what the others must know. Times are
 * milliseconds; small, since zones that were large enough must remain so.
 */
struct ngx_http_kvroute_queue_s {
	ngx_atomic_t pid;       /* 0: the place is free */
	ngx_atomic_t waiting;   /* how many */
	volatile uint32_t life; /* of the configuration */
	volatile uint32_t beat; /* when it has looked */
	volatile uint32_t oldest; /* since when a plain one waits; 0: none */
	/* since when one waits for this server: its place in up->known, + 1 */
	volatile uint32_t since[NGX_HTTP_KVROUTE_WANTED];
	volatile uint16_t server[NGX_HTTP_KVROUTE_WANTED]; /* or 0 */
};

/* What all nginx workers count together; in the zone, without pointers. */
struct ngx_http_kvroute_shared_s {
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
};

/* What the engine of a worker said last; in the zone, its leader writes. */
struct ngx_http_kvroute_polled_s {
	ngx_atomic_t worker;    /* its id; 0: the place is free */
	ngx_atomic_t at;        /* time of the answer; 0: it said nothing */
	ngx_atomic_t running, waiting;
	ngx_atomic_t usage;     /* thousandths, and 1; 0: not known */
	ngx_atomic_t requests;  /* of them, not explained */
	struct surplus surplus;
};

#define ngx_http_kvroute_count(up, of, n) \
	((void)ngx_atomic_fetch_add(&(up)->shared->counts[of], \
	    (ngx_atomic_int_t)(n)))

#endif
