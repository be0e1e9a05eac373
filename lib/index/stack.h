/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stack.h - how much a worker's cache must hold for an idle block to be there.
 */
#ifndef KVR_STACK_H
#define KVR_STACK_H

#include "region.h"

static inline struct stack *
stack_at(const struct kvr *k, uint32_t slot)
{
	uint32_t i = read_once(slot_at(k, slot)->name) - 1;

	return &k->stacks[i < k->layout.names ? i : 0];
}

/* So many blocks become idle; returns when, for the calls below. */
uint64_t stack_push(struct kvr *k, uint32_t slot, uint64_t blocks);
/* Blocks that became idle then are more, or less: of a negative number. */
void stack_add(struct kvr *k, uint32_t slot, uint64_t when, uint64_t blocks);
void stack_empty(struct kvr *k, uint32_t slot);
/* Tokens in use, and of idle blocks released since then. */
uint64_t stack_depth(const struct kvr *k, uint32_t slot, uint64_t when);
/* The epoch of a time. */
uint32_t stack_epoch(const struct stack *s, uint64_t when);

#endif
