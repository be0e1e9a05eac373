/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expect.h - how much of an overlap an engine can be expected to find.
 */
#ifndef KVR_EXPECT_H
#define KVR_EXPECT_H

#include "numbers.h"
#include "question.h"
#include "trust.h"
#include "window.h"

/* Blocks of the overlap that the engine can use, if none has been lost. */
double expect_usable(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o);
double expect_surviving(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o);

/* Load the memory that these will read: some workers ahead, then nearer. */
void expect_prefetch(const struct question *q, uint32_t slot);
void expect_prefetch_next(const struct question *q, uint32_t slot);

/* The lines of a slot that they read. */
static inline void
expect_prefetch_slot(const struct kvr *k, uint32_t slot)
{
	const struct slot *s = slot_at(k, slot);

	__builtin_prefetch(&s->name);
	__builtin_prefetch(&s->active);
	__builtin_prefetch(&s->mode);
	__builtin_prefetch(&s->block_tokens);
	__builtin_prefetch(&s->window);
}

/* When the entry with which the overlap ends was stamped; -1: not known. */
static inline int64_t
expect_stamp(const struct question *q, uint32_t slot)
{
	const struct found_set *set = q->set;

	return set->n_ends > 0 && found_has(set, slot)
	    ? set->stamps[set->places[slot] - set->base] : -1;
}

/* Overlaps that the caller supplied are not doubted. */
static inline bool
expect_sure(const struct question *q, uint32_t slot)
{
	return !q->unsure ||
	    (read_once(q->k->loads.gate[slot]) & GATE_UNSURE) == 0;
}

/* Whether blocks count by their age; a learnt capacity is an estimate. */
static inline bool
expect_by_age(const struct kvr *k, uint32_t slot)
{
	uint8_t mode = read_once(slot_at(k, slot)->mode);

	return mode == KVR_RETAIN_FEEDBACK ||
	    (mode == KVR_RETAIN_CAPACITY && trust_learnt(k, slot));
}

/* Whether some of its blocks may have been lost. */
static inline bool
expect_doubtful(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	return !expect_sure(q, slot) && expect_by_age(q->k, slot) &&
	    (o->active_blocks < o->blocks || numbers_nothing(q->k, slot));
}

/* Blocks of the overlap that can be expected. */
static inline double
expect_blocks(const struct question *q, uint32_t slot,
    const struct kvr_overlap *o)
{
	if (expect_sure(q, slot) || o->blocks == 0)
		return o->blocks;
	return expect_doubtful(q, slot, o) ? expect_surviving(q, slot, o)
	    : expect_usable(q, slot, o);
}

#endif
