/* SPDX-License-Identifier: BSD-2-Clause */
/* engine_load_in.h - the reader of the list of iterations of engine_load.h. */
#ifndef KVROUTE_ENGINE_LOAD_IN_H
#define KVROUTE_ENGINE_LOAD_IN_H

#include "engine_load.h"
#include "json_finder.h"
#include "samples.h"

/* The numbers of one iteration; below 0: unknown. */
enum iteration_number {
	ITERATION_ACTIVE, ITERATION_QUEUED, ITERATION_USED, ITERATION_BLOCKS,
	ITERATION_NUMBERS
};

struct iterations {
	struct finder finder;
	size_t elements;    /* elements of the list so far */
	double at[ITERATION_NUMBERS]; /* the current iteration */
	double last[ITERATION_NUMBERS]; /* the last one with active requests */
};

void iterations_begin(struct iterations *it);
void iterations_data(struct iterations *it, const char *bytes, size_t n);
/* Ends the list; false: it is broken. Without elements it is whole, too. */
bool iterations_end(const struct iterations *it);

/* Reads a decimal from 0 on, in any locale; 0: it is not one. */
double load_number(const char *at, const char *end);

#endif
