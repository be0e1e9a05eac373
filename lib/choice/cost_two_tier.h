/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cost_two_tier.h - overlap, unless loads differ much.
 */
#ifndef KVR_COST_TWO_TIER_H
#define KVR_COST_TWO_TIER_H

#include "question.h"

double two_tier_cost(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, double held);
/* The longest overlap; 0 if it is too short, or the loads too unequal. */
uint32_t two_tier_longest(const struct question *q);
/* The eligible workers with this overlap. */
void two_tier_among(const struct question *q, uint32_t longest,
    uint64_t *among);

#endif
