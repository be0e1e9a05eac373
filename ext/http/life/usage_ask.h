/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage_ask.h - asks an engine for usage in the body of a request.
 *
 *   {... "stream":true ...}  ->  {... ,"stream_options":{"include_usage":true}}
 *
 * If there are stream_options already, they are completed where they stand, see
 * body.h: a second key of that name would be an error to some engines.
 */
#ifndef KVROUTE_USAGE_ASK_H
#define KVROUTE_USAGE_ASK_H

#include <stdbool.h>

#include "body.h"
#include "endpoint.h"
#include "known.h"

/* The text takes the place of `cut` bytes at `at`; a brace is behind it. */
struct usage_ask {
	uint64_t at, cut;
	const char *text;
};

/* False: usage cannot be asked for here, or it is already. */
bool usage_ask_find(struct usage_ask *ask, const struct body_facts *facts,
    enum endpoint endpoint);
/* The answer to a request that was changed so; `now` is in seconds. */
void usage_answered(const struct fleet *f, unsigned status, int64_t now,
    void *log);

#endif
