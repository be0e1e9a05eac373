/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters.h - the counters of an upstream, and their names in reports.
 *
 *   proxy's atomics --> struct counters --> counter_value --> JSON, metrics
 *                       (a copy)            counter_list
 *
 * A proxy keeps one number for each reason, endpoint, enum count and bucket of
 * a histogram, wherever its processes can all add to it. For a status report it
 * copies them into struct counters. counter_list has a row for each number that
 * is shown, in order: a count, or the difference of two ("absent" is the number
 * of responses with usage, less those with a value).
 */
#ifndef KVROUTE_COUNTERS_H
#define KVROUTE_COUNTERS_H

#include <stddef.h>
#include <stdint.h>

#include "endpoint.h"
#include "histogram.h"
#include "reason.h"

enum count {
	COUNT_TRUNCATED,        /* bodies read in part, or broken */
	COUNT_READ,             /* bodies read for a prompt */
	COUNT_HELD,             /* requests held while their body was read */
	COUNT_PIECES,           /* pieces in which such bodies were read */
	COUNT_PARTED,           /* prompts that differ at the front alone */
	COUNT_ANSWERS,          /* answers that extended their prompts */
	COUNT_ANSWERS_LEFT,     /* answers that could have, and did not */
	/* choices for sessions, by enum kvr_affinity_outcome - 1 */
	COUNT_AFFINITY,         /* hit: to the bound worker */
	COUNT_AFFINITY_NEW,     /* without a binding */
	COUNT_AFFINITY_MOVED,   /* to another worker than the bound one */
	COUNT_AFFINITY_GONE,    /* the bound worker was removed or reset */
	COUNT_AFFINITY_GRAY,    /* moved since the bound worker was gray */
	COUNT_BOUND,            /* ids of answers and conversations bound */
	COUNT_RETRIES,          /* choices after the first of a request */
	COUNT_RANKS,            /* requests that a rank refused, sent again */
	COUNT_ABORTS,           /* requests not accepted, or status >= 400 */
	COUNT_CLIENTS_LEFT,     /* clients that left before the end */
	COUNT_REFUSED,          /* workers reset: connection refused */
	COUNT_BROKEN,           /* responses that broke off */
	COUNT_GRAY,             /* workers that were judged gray */
	COUNT_HEALED,           /* gray workers that were good again */
	COUNT_QUEUED,           /* requests that had to wait for a worker */
	COUNT_DELAYED,          /* writes delayed: the lock was held */
	COUNT_LOST,             /* leases left to their age limit */
	COUNT_LATE,             /* prompts recorded only when accepted */
	/* answers to clients, by the first digit of their status */
	COUNT_SUCCESS,
	COUNT_REDIRECTION,
	COUNT_CLIENT_ERROR,
	COUNT_SERVER_ERROR,
	COUNT_REQUESTED,        /* include_usage was added to the request */
	COUNT_STRIPPED,         /* usage chunks removed from a response */
	COUNT_USAGES,           /* responses with usage */
	COUNT_VALUES,           /* responses with a number of cached tokens */
	COUNT_MISSING,          /* complete responses without usage */
	COUNT_PROMPT_TOKENS,    /* reported in responses with that number */
	COUNT_CACHED_TOKENS,    /* reported in the same responses */
	COUNT_PREDICTED_TOKENS, /* predicted for them, in engine tokens */
	COUNT_BEST_TOKENS,      /* predicted on the worker with the most */
	/* shadow mode compares the worker used with kvroute's choice */
	COUNT_SHADOW,           /* requests watched */
	COUNT_SHADOW_SAME,      /* requests with both workers the same */
	COUNT_SHADOW_BLOCKS,    /* blocks of their prompts */
	COUNT_SHADOW_WANTED,    /* overlap at kvroute's choice, in blocks */
	COUNT_SHADOW_TAKEN,     /* overlap at the worker used, in blocks */
	COUNT_SPLIT,            /* prompts that another server prefills */
	COUNTS
};

enum { PATHS = 16, PATH_BYTES = 64 };

/* A path that is not an endpoint's; the last place counts all further ones. */
struct counted_path {
	uint64_t count;
	size_t length;          /* 0: no path, or it is not written yet */
	char text[PATH_BYTES];  /* the first bytes of the path */
};

struct counters {
	uint64_t reason[REASONS];
	uint64_t endpoint[ENDPOINTS];
	uint64_t count[COUNTS];
	struct counted_path path[PATHS];
	struct histogram histogram[HISTOGRAMS];
};

struct counter {
	const char *group; /* object in the JSON; NULL: the upstream itself */
	const char *name;
	const char *help;
	enum count of;
	enum count less;   /* is subtracted; COUNTS: nothing is */
};

/* The counters of a group stand together and share one pointer. */
extern const struct counter counter_list[];
extern const size_t counters_shown;

/* Returns the value of counter_list[i]; 0 if `all` is NULL. */
uint64_t counter_value(const struct counters *all, size_t i);

#endif
