/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_times.h - a tournament tree: n times and their minimum, with
 * O(log n) updates.
 *
 *                 9                   a parent is the lesser of its two
 *          9             12
 *       17    9       12    never
 *       0     1       2     3         indexes
 */
#ifndef KVROUTE_SIMULATE_TIMES_H
#define KVROUTE_SIMULATE_TIMES_H

#include <stdint.h>

#define TIMES_NEVER INT64_MAX

struct times {
	uint32_t leaves; /* a power of 2 */
	int64_t *least;  /* [2 * leaves], from 1 */
};

/* All are TIMES_NEVER. -1: out of memory. */
int times_make(struct times *t, uint32_t n);
void times_free(struct times *t);
void times_set(struct times *t, uint32_t i, int64_t at);
int64_t times_get(const struct times *t, uint32_t i);
int64_t times_least(const struct times *t);
/* The index of the minimum; the first of several. */
uint32_t times_first(const struct times *t);

#endif
