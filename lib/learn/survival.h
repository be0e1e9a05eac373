/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * survival.h - how likely an idle block is still cached.
 */
#ifndef KVR_SURVIVAL_H
#define KVR_SURVIVAL_H

#include "region.h"

/* The row of the worker in a slot; any worker's if the slot has none. */
static inline struct survival *
survival_at(const struct kvr *k, uint32_t slot)
{
	uint32_t i = read_once(slot_at(k, slot)->name) - 1;

	return &k->survival[i < k->layout.names ? i : 0];
}

/* The bin of an age in tokens: stack_depth. */
uint32_t survival_bin(uint64_t age);
/* The probability for idle blocks of this bin; above 0 and below 1. */
double survival_of(const struct kvr *k, uint32_t slot, uint32_t bin);
/* By a report so many tokens of them were there, or not. */
void survival_note(struct kvr *k, uint32_t slot, uint32_t bin, double tokens,
    bool hit);
/* Call it when all samples of a report have been noted. */
void survival_update(struct kvr *k, uint32_t slot);
/* For a new incarnation: all; and if the cache is another one: ages. */
void survival_forget(struct kvr *k, uint32_t slot);
void survival_unlearn(struct kvr *k, uint32_t slot);
/* The age from which blocks are lost, less certainly and certainly; or 0. */
uint64_t survival_capacity(const struct kvr *k, uint32_t slot);
uint64_t survival_edge(const struct kvr *k, uint32_t slot);

#endif
