/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bound.h - a limit on the requests of one worker, by those of the others.
 */
#ifndef KVR_BOUND_H
#define KVR_BOUND_H

#include "observed.h"
#include "question.h"

/* Loads and limits are often whole numbers: a bit lost must not decide. */
#define ROUNDED (1 + 1e-9)

/* Sums over the eligible workers. */
struct fleet {
	double requests;
	double reading;  /* tokens of their prompts */
	double inserted; /* pressure.c */
	double most;     /* requests of one worker */
	double wait;     /* the least backlog, in seconds */
};

struct fleet bound_fleet(struct question *q);
void bound_find(struct question *q, const struct fleet *f);

/* Requests that run on a worker, with those only observed. */
static inline double
requests_on(const struct question *q, uint32_t slot)
{
	double requests = read_once(q->k->loads.requests[slot]);

	return q->observed > 0
	    ? requests + q->observed * observed_requests(q->k, slot)
	    : requests;
}

static inline double
reading_on(const struct question *q, uint32_t slot)
{
	double reading = read_once_double(&q->k->loads.reading[slot]);

	return q->observed > 0
	    ? reading + q->observed * observed_reading(q->k, slot) : reading;
}

#endif
