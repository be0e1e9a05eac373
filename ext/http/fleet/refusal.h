/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * refusal.h - the error of a request that no server has answered.
 *
 *   queue full           503   Retry-After: 1
 *   waited in vain       503   {"error":{"message":"...","code":"..."}}
 *   its state is busy    the proxy's status, the same without Retry-After
 *   all others           the same
 */
#ifndef KVROUTE_REFUSAL_H
#define KVROUTE_REFUSAL_H

#include <stdbool.h>

#include "reason.h"
#include "text_writer.h"

enum { REFUSAL_BYTES = 512 };   /* a body at most */

struct refusal {
	unsigned status;        /* 0: the proxy's */
	bool again;             /* Retry-After: 1 */
	const char *code, *why;
};

/* Late: no server has answered in time. */
struct refusal refusal_of(enum reason reason, bool late);
/* A request that cannot be served as it is. */
struct refusal refusal_invalid(const char *why);
void refusal_write(const struct refusal *r, struct writer *to);

#endif
