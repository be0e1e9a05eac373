/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * partial.h - hashes of blocks that were dropped as they were stored, so that
 * their removals are dropped, too.
 *
 * They are 16,384 at most, in buckets of four: another one takes the place of
 * the oldest of its bucket. A hash depends on the content of a block, so one
 * that was partial stays so, and is forgotten only if it is stored as a whole
 * one.
 */
#ifndef KVROUTE_PARTIAL_H
#define KVROUTE_PARTIAL_H

#include <stdbool.h>
#include <stdint.h>

/* All 0: none. */
struct partial {
	uint64_t *hashes;
};

/* false: no memory. */
bool partial_add(struct partial *p, uint64_t hash);
bool partial_has(const struct partial *p, uint64_t hash);
void partial_take(struct partial *p, uint64_t hash);
/* None any more. */
void partial_free(struct partial *p);

#endif
