/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reason.h - why a request went to the worker it went to.
 *
 * The first reasons are the library's: a worker was chosen by its cost, by the
 * session, and so on. The others say why the library was not asked or gave no
 * worker; the proxy then takes the least loaded one, or none. A reason is a
 * number in counters and a word in logs, JSON and metrics.
 */
#ifndef KVROUTE_REASON_H
#define KVROUTE_REASON_H

#include "kvroute.h"

#include <stdbool.h>

enum reason {
	/* the library's, as enum kvr_reason has them */
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
	REASON_STATE_BUSY, /* refused: another worker would not do */
	REASON_PROBE,      /* of a gray worker */
	REASON_QUEUE_FULL, /* refused: as many as may waited for a worker */
	REASON_QUEUE_TIMEOUT, /* refused: it has waited in vain */
	REASON_FAILED,
	REASONS /* how many there are */
};

/* "cost", "tie" ...; "?" for unknown numbers. */
const char *reason_name(uint32_t reason);
/* Pinned requests do not occur in a proxy and are not shown. */
bool reason_occurs(uint32_t reason);

#endif
