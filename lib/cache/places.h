/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * places.h - how many requests run on a worker at a time.
 */
#ifndef KVR_PLACES_H
#define KVR_PLACES_H

#include "region.h"

void places_recover(struct kvr *k);
bool places_sane(const struct kvr *k);
void places_forget(struct kvr *k, uint32_t slot);
void places_publish(struct kvr *k, uint32_t slot);
void places_first_token(struct kvr *k, uint32_t slot);
void places_ended(struct kvr *k, uint32_t slot, double seconds);
bool places_taken(const struct kvr *k, uint32_t slot);

/* Seconds that a new request would wait for a place. */
static inline double
places_wait(const struct kvr *k, uint32_t slot)
{
	uint32_t places = read_once(k->loads.places[slot]);
	uint32_t running = read_once(k->loads.requests[slot]);

	if (places == 0 || running < places)
		return 0;
	return (double)(running - places + 1) *
	    read_once_double(&k->loads.hold[slot]);
}

#endif
