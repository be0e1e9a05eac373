/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample.h - makes up traces, the same ones everywhere.
 *
 * Integer arithmetic and one generator only: a seed gives the same bytes with
 * every compiler and C library.
 */
#ifndef KVROUTE_SAMPLE_H
#define KVROUTE_SAMPLE_H

#include <stdint.h>
#include <stdio.h>

struct sample_options {
	uint64_t seed;
	uint64_t requests;
	uint64_t duration_s; /* about how long the trace lasts */
	/* Of 100 conversations, how many are which; the rest are chats. */
	uint32_t tool_loops;
	uint32_t documents;
	uint32_t systems;    /* different system prompts */
};

void sample_defaults(struct sample_options *o);
/* Writes the trace. 0, or -1: no memory, or errors of `out` (see ferror). */
int sample_write(FILE *out, const struct sample_options *o);

#endif
