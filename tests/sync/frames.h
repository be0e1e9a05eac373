/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * frames.h - random records, and whether two are equal.
 */
#ifndef KVR_FRAMES_H
#define KVR_FRAMES_H

#include "frame.h"
#include "rng.h"

struct frames_room {
	uint64_t numbers[FRAME_NUMBERS_MAX];
	char text[FRAME_TEXT_MAX];
};

/* Each field a random number that fits; up to `most` numbers behind them. */
struct frame_record frames_draw(struct rng *rng, uint64_t kind, size_t most,
    struct frames_room *room);
bool frames_equal(const struct frame_record *a, const struct frame_record *b);

#endif
