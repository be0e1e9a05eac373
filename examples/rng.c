/* SPDX-License-Identifier: BSD-2-Clause */
/* rng.c - see rng.h. */
#include "rng.h"

uint64_t
rng_next(struct rng *r)
{
	uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/*
 * The remainder favours small numbers by less than (high - low) / 2^64: for
 * making up a trace that is nothing.
 */
uint64_t
rng_between(struct rng *r, uint64_t low, uint64_t high)
{
	return low + rng_next(r) % (high - low + 1);
}
