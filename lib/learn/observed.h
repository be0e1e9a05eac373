/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * observed.h - the load of requests whose end is not reported.
 */
#ifndef KVR_OBSERVED_H
#define KVR_OBSERVED_H

#include "region.h"

/* A prompt was observed: `fresh` of its tokens are new there. */
void observed_add(struct kvr *k, uint32_t slot, uint64_t fresh,
    uint64_t prompt, int64_t now);
void observed_forget(struct kvr *k, uint32_t slot);
/* The part of the sums below that is left now, equal for all workers. */
double observed_left(const struct kvr *k, int64_t now);
bool observed_sane(const struct kvr *k);
void observed_empty(struct kvr *k);
/* The same if damage made any of it impossible. */
void observed_recover(struct kvr *k);

/* Times that part: requests on a worker, and tokens of their prompts. */
static inline double
observed_requests(const struct kvr *k, uint32_t slot)
{
	return read_once_double(&k->loads.observed_requests[slot]);
}

static inline double
observed_reading(const struct kvr *k, uint32_t slot)
{
	return read_once_double(&k->loads.observed_reading[slot]);
}

#endif
