/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lives.h - a replay in which requests live as they do before engines.
 *
 * A request is asked about and reserved when it arrives; its first token comes
 * a while later, and its end after that, when others have come and gone and
 * its cells have left the caches:
 *
 *   request 1   ask reserve commit ...... first ................ finish
 *   request 2           ask reserve commit ....... first ............
 *               `decide'`-----------'     `---'                 `----'
 *                              `- life --------------------------'
 *
 * The times at which this happens follow from the trace alone: a tenth of a
 * second and 50 us a token of the prompt, then 25 ms a token of the answer,
 * all of it at most ten minutes. So every replay does the same.
 *
 * Every request ends with a report, which says how long the answer was and how
 * many tokens were cached: all that were on record, less the last token of a
 * prompt; half of them in every fourth request, so that survival has both hits
 * and misses at every age.
 */
#ifndef KVROUTE_LIVES_H
#define KVROUTE_LIVES_H

#include "load.h"
#include "bench_index.h"

#include <stdint.h>

/* What each request took in the last replay, in nanoseconds. */
struct lives_times {
	int64_t clock_ns; /* that reading the clock takes */
	int64_t *decide;  /* [load->n] kvr_route */
	int64_t *life;    /* [load->n] reserve_on to finish, all four */
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
