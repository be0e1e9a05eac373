/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settle.h - the costs of workers that may have lost some of their overlap.
 */
#ifndef KVR_SETTLE_H
#define KVR_SETTLE_H

#include "question.h"

/* The cost of a worker that has `held` blocks of its overlap `o` cached. */
typedef double settle_cost_fn(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o, double held);

/* Which costs must be true: those up to so much above the lowest. */
struct settle {
	settle_cost_fn *cost;
	double tie;    /* share of the lowest cost, less q->wait */
	bool all;      /* every one */
};

/* The highest cost that is as good as the lowest. */
static inline double
settle_near(const struct question *q, double lowest, double tie)
{
	return lowest + tie * (lowest > q->wait ? lowest - q->wait : 0);
}

/*
 * Replaces costs of `among` in q->set->costs, which are those if nothing is
 * lost. Returns the lowest; those that cannot be, may be COST_MAX.
 */
double settle_costs(const struct question *q, const uint64_t *among,
    const struct settle *s);

#endif
