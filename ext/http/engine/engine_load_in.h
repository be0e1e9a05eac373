/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_load_in.h - the list of iterations of engine_load.h.
 */
#ifndef KVROUTE_ENGINE_LOAD_IN_H
#define KVROUTE_ENGINE_LOAD_IN_H

#include "engine_load.h"
#include "json_finder.h"
#include "samples.h"

/* Of one iteration; below 0: it does not say. */
enum iteration_number {
	ITERATION_ACTIVE, ITERATION_QUEUED, ITERATION_USED, ITERATION_BLOCKS,
	ITERATION_NUMBERS
};

struct iterations {
	struct finder finder;
	size_t elements;    /* of the list */
	double at[ITERATION_NUMBERS]; /* hand */
	double last[ITERATION_NUMBERS]; /* that says how many are active */
};

void iterations_begin(struct iterations *it);
void iterations_data(struct iterations *it, const char *bytes, size_t n);
/* False: it is broken. Elements may be 0. */
bool iterations_end(const struct iterations *it);

static inline bool
load_is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* A decimal from 0 on, in whatever locale; 0: it is none. */
double load_number(const char *at, const char *end);

#endif
