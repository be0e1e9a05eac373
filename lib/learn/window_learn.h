/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window_learn.h - which mode of windows fits what an engine reports.
 */
#ifndef KVR_WINDOW_LEARN_H
#define KVR_WINDOW_LEARN_H

#include "region.h"

/*
 * Compares what a request was said to find by each mode with the tokens that
 * were found, in tokens as the index counts them. Returns whether another mode
 * is in force now.
 */
bool window_learn(struct kvr *k, const struct lease *l,
    const struct claim *c, double cached);
/* Nothing is known, as at first. */
void window_forget(struct kvr *k, uint32_t slot);
/* The weight of the latest reports on which an idea and FULL disagreed; */
double window_compared(const struct kvr *k, uint32_t slot,
    enum window_idea idea);
/* and what FULL erred more, as a share of that: -1 to 1. */
double window_gain(const struct kvr *k, uint32_t slot, enum window_idea idea);
/* Whether mode in force and errors are possible. */
bool window_sane(const struct kvr *k, uint32_t slot);

#endif
