/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shared.h - all processes of an upstream see this of its servers, and count
 * together.
 *
 * It lies in memory that they share, all 0 at first, without a lock and without
 * pointers. Each number is whole by itself; numbers that are read together need
 * not belong together. Each struct is written by one file:
 *
 *   troubles    capacities.c    queues    places.c
 *   poller      polls.c         stale     stale.c
 *   polled      polls.c         ranks     lacking.c
 */
#ifndef KVROUTE_SHARED_H
#define KVROUTE_SHARED_H

#include <stdbool.h>

#include "counters.h"
#include "endpoint.h"
#include "histogram.h"
#include "reason.h"
#include "surplus.h"

enum {
	SHARED_TROUBLES = 64,
	SHARED_QUEUES = 128,
	SHARED_RANKS = 256,
	SHARED_WANTED = 4,
	SHARED_STALE = 32
};

/* A server that was reset while requests ran there; see stale.h. */
struct stale_place {
	_Atomic uint64_t key;    /* of it; 0: the place is free */
	_Atomic uint64_t blocks; /* of each such request */
	_Atomic uint64_t since;  /* 0: that is not written yet */
};

/*
 * The place of a process whose requests wait, for the others to see: places.h.
 * Times of requests are milliseconds, which go round; none waits for that long.
 * A process may be dead for longer.
 */
struct queue_place {
	_Atomic uint64_t pid;    /* 0: the place is free */
	_Atomic uint64_t waiting; /* how many */
	_Atomic uint64_t beat;   /* when it has looked: nanoseconds */
	_Atomic uint32_t life;   /* of the configuration */
	_Atomic uint32_t oldest; /* since when a plain one waits; 0: none */
	/* since when one waits for this server: its place in the list, + 1 */
	_Atomic uint32_t since[SHARED_WANTED];
	_Atomic uint16_t server[SHARED_WANTED]; /* or 0 */
};

/* A path that is not that of an endpoint. */
struct path_place {
	_Atomic uint64_t key;    /* 0: the place is free */
	_Atomic uint64_t count;
	_Atomic uint32_t length; /* of the text, once it is there */
	char text[PATH_BYTES];
};

/* Answers of a rank that was named to its engine; see lacking.h. */
struct rank_place {
	_Atomic uint64_t tag;    /* of the server's name and rank; 0: free */
	_Atomic uint32_t served; /* it has accepted a request */
	_Atomic uint32_t lacking; /* it was drained: the engine lacks it */
};

struct shared {
	_Atomic uint64_t reasons[REASONS];
	_Atomic uint64_t endpoints[ENDPOINTS];
	_Atomic uint64_t counts[COUNTS];
	struct path_place paths[PATHS]; /* the last: all others */
	/* nanoseconds, and how many by buckets */
	_Atomic uint64_t times[HISTOGRAMS];
	_Atomic uint64_t buckets[HISTOGRAMS][HISTOGRAM_BUCKETS];
	_Atomic uint64_t epoch;   /* changes when ids or states change */
	_Atomic uint64_t silence; /* of replicas, named in a logged line */
	/* requests that were made to ask for usage: answered, and refused */
	_Atomic uint64_t asks_taken, asks_refused;
	_Atomic uint64_t asked_at; /* seconds: when one was refused or tried */
	/* requests that failed at a server: in [key % SHARED_TROUBLES] */
	_Atomic uint64_t troubles[SHARED_TROUBLES];
	_Atomic uint64_t poller;  /* pid of the process that polls, or 0 */
	_Atomic uint64_t poller_beat; /* time of its latest look */
	_Atomic uint64_t lives;   /* configurations that there were */
	struct queue_place queues[SHARED_QUEUES];
	struct stale_place stale[SHARED_STALE];
	struct rank_place ranks[SHARED_RANKS];
};

/* The latest answer of a worker's engine; the process that polls writes. */
struct polled {
	_Atomic uint64_t worker;  /* its id; 0: the place is free */
	_Atomic uint64_t at;      /* time of the answer; 0: it had no figure */
	_Atomic uint64_t running, waiting;
	_Atomic uint64_t usage;   /* thousandths, and 1; 0: not known */
	_Atomic uint64_t requests; /* of them, not explained */
	struct surplus surplus;
};

/* The key of a name in shared memory; never 0. */
uint64_t shared_key(const void *name, size_t n);

/* From a time in shared memory, which may be any number, to `now`. */
static inline int64_t
shared_age(uint64_t then, int64_t now)
{
	return (int64_t)((uint64_t)now - then);
}

void shared_count(struct shared *s, enum count of, uint64_t n);
void shared_time(struct shared *s, enum histogram_kind kind, uint64_t ns);
/* A request to a path that belongs to no endpoint. */
void shared_path(struct shared *s, const char *path, size_t n);
/* All that is counted, for a report. */
void shared_copy(const struct shared *s, struct counters *to);

/*
 * include_usage was added to a request, and its answer has this status: 400 or
 * 422 where an engine does not know the field. True: all were refused, and it
 * is added no longer. `now` is in seconds.
 */
bool shared_usage_answered(struct shared *s, unsigned status, int64_t now);
/* May it be added? After such refusals it may once an hour. */
bool shared_usage_asks(struct shared *s, int64_t now);

#endif
