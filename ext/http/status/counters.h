/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counters.h - what a proxy counts for an upstream, and how it is shown.
 *
 *   proxy's atomics --> struct counters --> counter_value --> JSON, metrics
 *                       (a copy)            counter_list
 *
 * A proxy keeps one number for each reason, endpoint, enum count and bucket of
 * a histogram, wherever its processes can all add to it. For a status report it
 * copies them into struct counters. counter_list names what is shown, in order:
 * a count, or the difference of two ("absent" = responses with usage - those
 * with a value).
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
	COUNT_HELD,             /* requests held while theirs was read */
	COUNT_PIECES,           /* in which those were read */
	COUNT_ANSWERS,          /* that extended their prompts */
	COUNT_ANSWERS_LEFT,     /* that could have, and did not */
	/* sessions, by enum kvr_affinity_outcome - 1 */
	COUNT_AFFINITY,         /* hit: went to the bound worker */
	COUNT_AFFINITY_NEW,     /* there was no binding */
	COUNT_AFFINITY_MOVED,   /* there was, and it went elsewhere */
	COUNT_AFFINITY_GONE,    /* the same: the worker is no more */
	COUNT_AFFINITY_GRAY,    /* of those moved, away from a gray worker */
	COUNT_BOUND,            /* ids of answers and conversations bound */
	COUNT_RETRIES,          /* choices after the first of a request */
	COUNT_ABORTS,           /* not accepted, or status >= 400 */
	COUNT_CLIENTS_LEFT,     /* before the end of the response */
	COUNT_REFUSED,          /* workers reset: connection refused */
	COUNT_BROKEN,           /* responses that broke off */
	COUNT_GRAY,             /* workers that were judged gray */
	COUNT_HEALED,           /* and that were good again */
	COUNT_QUEUED,           /* requests that had to wait for a worker */
	COUNT_DELAYED,          /* writes delayed: the lock was held */
	COUNT_LOST,             /* leases left to their age limit */
	COUNT_REQUESTED,        /* include_usage was added to the request */
	COUNT_STRIPPED,         /* usage chunks removed from a response */
	COUNT_USAGES,           /* responses with usage */
	COUNT_VALUES,           /* of them, with a number of cached tokens */
	COUNT_MISSING,          /* complete responses without usage */
	COUNT_PROMPT_TOKENS,    /* reported, of responses with a number */
	COUNT_CACHED_TOKENS,    /* reported */
	COUNT_PREDICTED_TOKENS, /* predicted for them, in engine tokens */
	COUNT_BEST_TOKENS,      /* the same on the worker with the most */
	/* shadow mode: what would have been chosen, and what was */
	COUNT_SHADOW,           /* requests watched */
	COUNT_SHADOW_SAME,      /* of them, to the same worker */
	COUNT_SHADOW_BLOCKS,    /* of their prompts */
	COUNT_SHADOW_WANTED,    /* overlap at the worker it would have taken */
	COUNT_SHADOW_TAKEN,     /* overlap at the worker that was taken */
	COUNTS                  /* how many there are */
};

struct counters {
	uint64_t reason[REASONS];
	uint64_t endpoint[ENDPOINTS];
	uint64_t count[COUNTS];
	struct histogram histogram[HISTOGRAMS];
};

struct counter {
	const char *group; /* object in the JSON; NULL: the upstream itself */
	const char *name;
	const char *help;
	enum count of;
	enum count less;   /* to be subtracted; COUNTS: nothing */
};

/* Counters of a group follow each other; a group is one pointer. */
extern const struct counter counter_list[];
extern const size_t counters_shown;

/* Of counter_list[i]; 0 if `all` is NULL. */
uint64_t counter_value(const struct counters *all, size_t i);

#endif
