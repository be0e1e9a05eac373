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
double places_wait(const struct kvr *k, uint32_t slot);

#endif
