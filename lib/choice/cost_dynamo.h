/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cost_dynamo.h - the reference's cost: of one worker, and the lowest of all.
 */
#ifndef KVR_COST_DYNAMO_H
#define KVR_COST_DYNAMO_H

#include "question.h"

void dynamo_simplify(struct question *q);
double dynamo_cost(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, double held);
/* The costs of q->take if nothing is lost; returns the lowest. */
double dynamo_find(struct question *q);
void dynamo_take_usual(const struct question *q, struct choice *out);

#endif
