/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load.h - a trace held in memory, to be replayed repeatedly.
 *
 * Only hash ids are held: the tokens of a request are made when its turn
 * comes, outside of what is timed, because together they would be several
 * hundred megabytes.
 */
#ifndef KVROUTE_LOAD_H
#define KVROUTE_LOAD_H

#include "trace.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct load {
	struct trace_request *requests; /* with at least one token */
	size_t n;
	uint64_t *ids;
	size_t n_ids;
	size_t most_tokens; /* of one prompt */
	int64_t span_ns;    /* of the arrivals */
};

/* Reads a whole trace; ends the program with a message if it cannot. */
void load_read(struct load *l, FILE *file, const char *name);
void load_free(struct load *l);
int64_t load_arrival(const struct trace_request *r); /* in nanoseconds */

#endif
