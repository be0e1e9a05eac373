/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reason.h - the reasons for the choice of a worker.
 *
 * The first reasons are the library's: a worker was chosen by its cost, by the
 * session, and so on. With the others the library was not asked or gave no
 * worker; the proxy then takes the least loaded one, or none. A reason is a
 * number in counters and a word in logs, JSON and metrics.
 */
#ifndef KVROUTE_REASON_H
#define KVROUTE_REASON_H

#include "body.h"
#include "kvroute.h"

#include <stdbool.h>

enum reason {
	/* the library's, with the numbers of enum kvr_reason */
	REASON_COST = KVR_REASON_COST,
	REASON_TIE = KVR_REASON_TIE,
	REASON_SAMPLED = KVR_REASON_SAMPLED,
	REASON_PINNED = KVR_REASON_PINNED,
	REASON_AFFINITY = KVR_REASON_AFFINITY,
	/* the proxy's */
	REASON_BYPASS,
	REASON_ENDPOINT,
	REASON_NO_BODY,
	REASON_UNBUFFERED,
	REASON_NOT_JSON,
	REASON_TOO_DEEP,
	REASON_NO_PROMPT,
	REASON_BUSY,
	REASON_NO_WORKER,
	REASON_STATE_LOST,
	REASON_STATE_BUSY, /* refused: only one worker has the state */
	REASON_PROBE,      /* the request is a probe of a gray worker */
	REASON_QUEUE_FULL, /* refused: the queue was full */
	REASON_QUEUE_TIMEOUT, /* refused after its time in the queue */
	REASON_FAILED,
	REASONS
};

/* Returns "cost", "tie" and so on; "?" for unknown numbers. */
const char *reason_name(uint32_t reason);
/* Is the reason shown? A proxy never pins a request to a worker. */
bool reason_occurs(uint32_t reason);

/* Returns REASON_COST for a body with a prompt, else why it has none. */
enum reason reason_of_body(enum body_outcome outcome);
/* Returns the reason for the library's error when it has chosen no worker. */
enum reason reason_of_error(int error);

#endif
