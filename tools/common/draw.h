/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * draw.h - random numbers of some distributions, in integer arithmetic: the
 * same on every platform.
 */
#ifndef KVROUTE_DRAW_H
#define KVROUTE_DRAW_H

#include <stdint.h>

struct rng;

enum { DRAW_TIMES_MAX = 16 };

/* Exponential with that mean, below 2^40, at most 16 times it. */
uint64_t draw_exponential(struct rng *r, uint64_t mean);
/* The same, at least `low`. */
uint64_t draw_length(struct rng *r, uint64_t low, uint64_t mean);

#endif
