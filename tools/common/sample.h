/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sample.h - generates synthetic traces.
 *
 * Uses only integer arithmetic and one generator: a seed yields the same bytes
 * with every compiler and C library.
 */
#ifndef KVROUTE_SAMPLE_H
#define KVROUTE_SAMPLE_H

#include <stdint.h>
#include <stdio.h>

struct sample_options {
	uint64_t seed;
	uint64_t requests;
	uint64_t duration_s; /* approximate length of the trace */
	/* Percent of conversations; the rest are chats. */
	uint32_t tool_loops;
	uint32_t documents;
	uint32_t systems;    /* distinct system prompts of each kind */
};

void sample_defaults(struct sample_options *o);
/* Writes the trace. -1: out of memory, or an error of `out` (see ferror). */
int sample_write(FILE *out, const struct sample_options *o);

#endif
