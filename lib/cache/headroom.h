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
double headroom_wait(const struct kvr *k, uint32_t slot, double tokens);

#endif
