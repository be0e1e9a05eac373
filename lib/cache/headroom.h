/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * headroom.h - whether the memory of a worker has room for one more request.
 */
#ifndef KVR_HEADROOM_H
#define KVR_HEADROOM_H

#include "region.h"

struct headroom {
	double room;    /* tokens that are free; below 0: so many too few */
	double release; /* seconds until one more is */
};

struct headroom headroom_of(const struct kvr *k, uint32_t slot);
void headroom_publish(struct kvr *k, uint32_t slot);

/* Seconds until there is room for so many new tokens. */
static inline double
headroom_wait(const struct kvr *k, uint32_t slot, double tokens)
{
	double over = tokens - read_once_double(&k->loads.room[slot]);

	return over > 0 ? over * read_once_double(&k->loads.release[slot]) : 0;
}

#endif
