/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cost_balanced.h - the cost in seconds.
 */
#ifndef KVR_COST_BALANCED_H
#define KVR_COST_BALANCED_H

#include "question.h"

void balanced_begin(struct question *q);
double balanced_cost(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, double held);
/* Once after balanced_begin: the costs of q->below if nothing is lost. */
double balanced_find(struct question *q);
void balanced_take_near(struct question *q, struct choice *out);

#endif
