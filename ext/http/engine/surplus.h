/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * surplus.h - how much of the load that an engine publishes the bookings of
 * this router do not explain.
 *
 *   poll          asked |--------| answered      asked |------| answered
 *   booked              7        5                     4      9
 *   engine says               8                           12
 *   explains      of this answer: 7              of this one: 9, the most of
 *                                                5 (since the last), 4 and 9
 *   more                      1                            3
 *   surplus                   -                            1, the less of both
 *
 * An answer is a moment that has passed, and bookings move. A request that
 * ends between the two is in the engine's number and no longer booked; one
 * that begins is booked before the engine has it. Engines also write their
 * numbers a step, or some dozens of steps, late. So an answer is compared with
 * the most that was booked since the answer before, and what exceeds that
 * counts only as far as two answers in a row say so. Bursts of the router's
 * own, beginning or ending, are so no surplus, unless an engine's numbers are
 * two polls late. Load from elsewhere counts one poll later than it could, and
 * ends at once. Where own bookings come and go fast some of it is missed:
 * that errs on the side on which nothing is booked that is not there.
 */
#ifndef KVROUTE_SURPLUS_H
#define KVROUTE_SURPLUS_H

#include "engine_load.h"

#include <kvroute.h>

/* Of a worker, all 0 at first; it may be in shared memory. */
struct surplus {
	uint64_t booked; /* the most since the last answer */
	uint64_t more;   /* what that answer had above the bookings */
};

void surplus_asked(struct surplus *s, uint64_t booked);
/* Requests that are not explained. */
uint64_t surplus_answered(struct surplus *s, uint64_t booked,
    const struct engine_load *said);

/*
 * That many requests as a load, like those the worker had so far: those that
 * wait have their prompts, less what is cached, to be prefilled.
 * `block_tokens`: of a block of the index. `capacity`: tokens of the cache.
 */
void surplus_load(uint64_t requests, const struct engine_load *said,
    const struct kvr_worker_stats *so_far, double block_tokens,
    uint64_t capacity, struct kvr_load *out);

#endif
