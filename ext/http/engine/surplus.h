/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * surplus.h - finds the load of an engine that this router has not booked.
 *
 *   poll          asked |--------| answered      asked |------| answered
 *   booked              7        5                     4      9
 *   published                 8                           12
 *   explained     7, the most of 7 and 5         9, the most of 5 (since the
 *                                                last answer), 4 and 9
 *   more                      1                            3
 *   surplus                   -                            1, the less of both
 *
 * An answer is a moment that has passed, and bookings move. A request that
 * ends between the two is in the engine's number and no longer booked; one
 * that begins is booked before the engine has it. Engines also write their
 * numbers a step, or some dozens of steps, late. So an answer is compared with
 * the most that was booked since the answer before, and the excess counts only
 * as far as two answers in a row agree on it. Bursts of the router's own, which
 * begin or end, are then not a surplus, unless an engine's numbers are two
 * polls late. Load from elsewhere counts one poll later than it could, and ends
 * at once. Where own bookings come and go fast, some of it is missed. This is
 * the safe side: no load is booked that is not there.
 */
#ifndef KVROUTE_SURPLUS_H
#define KVROUTE_SURPLUS_H

#include "engine_load.h"

#include <kvroute.h>

/* The state of one worker, all 0 at first; it may be in shared memory. */
struct surplus {
	uint64_t booked; /* the most since the last answer */
	uint64_t more;   /* requests of that answer above the bookings */
};

/* The engine is asked while `booked` requests are booked. */
void surplus_asked(struct surplus *s, uint64_t booked);
/* The engine has answered; returns how many requests are not explained. */
uint64_t surplus_answered(struct surplus *s, uint64_t booked,
    const struct engine_load *said);

/*
 * Makes a load of so many requests, each like the mean of the worker's requests
 * so far. Waiting ones have the tokens of their prompts that are not cached to
 * prefill. `block_tokens` is the size of a block of the index, `capacity` that
 * of the engine's cache, both in tokens.
 */
void surplus_load(uint64_t requests, const struct engine_load *said,
    const struct kvr_worker_stats *so_far, double block_tokens,
    uint64_t capacity, struct kvr_load *out);

#endif
