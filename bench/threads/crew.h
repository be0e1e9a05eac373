/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crew.h - several threads that do the same work on one region.
 *
 * A crew replays a load over and over, with time going on, so that the index
 * stays in its state of the middle of the trace. The workers chosen are those
 * that the policy `half` chose when one thread replayed the load first: the
 * choice is not part of what is timed, and is the same for any number of
 * threads. A shift is a piece of work for one or more threads:
 *
 *   FLOOR  the plain loop of floor.h over each request's tokens: no region,
 *          no shared memory, no write. What the machine gives to threads.
 *   MATCH  kvr_match of prompts that are hashed already. The index does not
 *          change, and after the shift every result is compared with what one
 *          thread got alone.
 *   ALL    each request is expired, hashed, matched and observed.
 *
 *   next ----> | 16 requests | 16 requests | 16 requests | ...
 *                 thread 1      thread 0      thread 1
 *
 * Threads take requests from one counter, a batch at a time. So none runs
 * ahead in the trace's time by more than a batch, and none has work left when
 * the others have not; one atomic addition in 50 us is negligible.
 *
 * TOKENS. Those of a whole trace would be several hundred megabytes, read from
 * memory instead of from the cache in which a tokenizer leaves them; making
 * them takes six times as long as hashing them. So each thread has one buffer
 * of tokens, and writes a request's hash ids over the first two tokens of each
 * 512: equal prefixes are equal and others differ, at 1 % of the cost of the
 * hashing, and the buffer is in the cache as if it had just been filled.
 */
#ifndef KVROUTE_CREW_H
#define KVROUTE_CREW_H

#include "load.h"
#include "bench_index.h"

#include <kvroute.h>

#include <stdint.h>

enum { CREW_MAX = 64 }; /* threads */

enum crew_work { CREW_FLOOR, CREW_MATCH, CREW_ALL, CREW_WORKS };

struct crew;

/* Makes the region, fills it, and prepares memory for `threads` threads. */
struct crew *crew_new(const struct load *l,
    const struct world_options *options, uint32_t threads);
void crew_free(struct crew *c);

/*
 * A shift of about `units` requests (of ALL: whole replays) for this many of
 * the crew's threads. Returns requests a second, by the wall clock, from when
 * the first of them begins to when the last one ends.
 */
double crew_shift(struct crew *c, enum crew_work work, uint32_t threads,
    uint64_t units);
void crew_stats(const struct crew *c, struct kvr_stats *out);

#endif
