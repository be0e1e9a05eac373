/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lives.h - a replay in which requests stay in flight as they do with engines.
 *
 * A request is routed and its lease opened when it arrives; its first token
 * comes later, and its end after that, when others have come and gone and its
 * cells have left the caches:
 *
 *   request 1   route open commit ....... first ................ finish
 *   request 2           route open commit ........ first ............
 *               `decide'`-----------'     `---'                 `----'
 *                              `- life --------------------------'
 *
 * The times of these events follow from the trace alone: a tenth of a second
 * and 50 us a token of the prompt, then 25 ms a token of the output, all of it
 * at most ten minutes. So every replay does the same.
 *
 * Every request ends with a report of the output's length and of how many
 * tokens were cached: all that were recorded, less the last token of a prompt;
 * half of them in every fourth request, so that survival has both hits and
 * misses at every age.
 */
#ifndef KVROUTE_LIVES_H
#define KVROUTE_LIVES_H

#include "load.h"
#include "bench_index.h"

#include <stdint.h>

/* Times of each request in the last replay, in nanoseconds. */
struct lives_times {
	int64_t clock_ns; /* of reading the clock */
	int64_t *decide;  /* [load->n] kvr_route */
	int64_t *life;    /* [load->n] open_on to finish, all four */
};

struct lives;

struct lives *lives_new(const struct load *l);
void lives_free(struct lives *s);
/* Ends with the last request; times may be NULL. */
void lives_replay(struct lives *s, struct world *w,
    const struct lives_times *times);
/* From the first arrival to the last end. */
int64_t lives_span(const struct lives *s);

#endif
