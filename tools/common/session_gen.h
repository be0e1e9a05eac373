/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * session_gen.h - generates sessions of agents in the format that
 * session_trace.h reads.
 *
 * An agent's prompt grows by each output and by the result of each tool. When
 * it exceeds a limit it is replaced by tools, system prompt and a summary.
 * Between two requests there may be a group of sub-agents, which begin with
 * tools and a system prompt of their own. Lengths and pauses are exponential;
 * kvroute-tracegen(1) lists the means. A seed yields the same bytes on every
 * platform.
 */
#ifndef KVROUTE_SESSION_GEN_H
#define KVROUTE_SESSION_GEN_H

#include <stdint.h>
#include <stdio.h>

enum {
	SESSION_GEN_PROMPT_MAX = 150000,
	SESSION_GEN_REQUESTS_MAX = 1000,
	SESSION_GEN_AGENTS_MAX = 100,
	SESSION_GEN_LIMIT = 180000,
	SESSION_GEN_LIMIT_MAX = 1000000,
	SESSION_GEN_THINK_MS = 10000 /* mean pause */
};

struct session_gen {
	uint64_t seed;
	uint64_t prompt;   /* tokens of tools and system prompt, above 0 */
	uint64_t requests; /* mean of the main agent, above 0 */
	uint64_t agents;   /* at most in a group; 0: none at all */
	uint64_t limit;    /* tokens of a prompt, then a summary replaces it; */
	                   /* 0: SESSION_GEN_LIMIT */
};
void session_gen_defaults(struct session_gen *o);
/* Writes session `number`. -1: out of memory, or an error of `out`. */
int session_gen_write(FILE *out, const struct session_gen *o, uint64_t number);

#endif
