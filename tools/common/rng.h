/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rng.h - splitmix64: the same numbers on every platform.
 */
#ifndef KVROUTE_RNG_H
#define KVROUTE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t state; /* any value is a seed */
};

uint64_t rng_next(struct rng *r);
/* In [low, high]; low <= high, high - low below 2^64 - 1. */
uint64_t rng_between(struct rng *r, uint64_t low, uint64_t high);
/* The first n bytes of the next numbers, in host byte order. */
void rng_fill(struct rng *r, unsigned char *out, size_t n);

#endif
