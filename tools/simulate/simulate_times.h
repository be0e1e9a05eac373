/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_times.h - which of n things happens next: a time for each, and the
 * least of all, in O(log n) for each time that changes.
 *
 *                 9                   a parent is the lesser of its two
 *          9             12
 *       17    9       12    never
 *       0     1       2     3         things
 */
#ifndef KVROUTE_SIMULATE_TIMES_H
#define KVROUTE_SIMULATE_TIMES_H

#include <stdint.h>

#define TIMES_NEVER INT64_MAX

struct times {
	uint32_t leaves; /* a power of 2 */
	int64_t *least;  /* [2 * leaves], from 1 */
};

/* All never. 0, or -1: no memory. */
int times_make(struct times *t, uint32_t n);
void times_free(struct times *t);
void times_set(struct times *t, uint32_t i, int64_t at);
int64_t times_get(const struct times *t, uint32_t i);
int64_t times_least(const struct times *t);
/* Whose time is the least; of several, the first. */
uint32_t times_first(const struct times *t);

#endif
