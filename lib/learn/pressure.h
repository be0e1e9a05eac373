/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pressure.h - how much has come into each worker's cache lately.
 */
#ifndef KVR_PRESSURE_H
#define KVR_PRESSURE_H

#include "region.h"

/* A request was sent: `fresh` of the tokens of its prompt are new there. */
void pressure_add(struct kvr *k, uint32_t slot, uint64_t fresh,
    uint64_t prompt, int64_t now);
/* The cache of the worker is empty. */
void pressure_forget(struct kvr *k, uint32_t slot);
/* The share of this traffic's tokens that is found cached, 0 to 1. */
double pressure_hits(const struct kvr *k);
bool pressure_sane(const struct kvr *k);
void pressure_empty(struct kvr *k);
/* The same if damage made any of it impossible. */
void pressure_recover(struct kvr *k);

/* The sum of a worker, to be compared with that of others: pressure.c. */
static inline double
pressure_inserted(const struct kvr *k, uint32_t slot)
{
	return read_once_double(&k->loads.inserted[slot]);
}

#endif
