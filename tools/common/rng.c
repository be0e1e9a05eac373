/* SPDX-License-Identifier: BSD-2-Clause */
/* rng.c - see rng.h. */
#include "rng.h"

#include <string.h>

uint64_t
rng_next(struct rng *r)
{
	uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);

	z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
	return z ^ z >> 31;
}

/*
 * The remainder favours small numbers by less than (high - low) / 2^64, which
 * is negligible here.
 */
uint64_t
rng_between(struct rng *r, uint64_t low, uint64_t high)
{
	return low + rng_next(r) % (high - low + 1);
}

void
rng_fill(struct rng *r, unsigned char *out, size_t n)
{
	uint64_t bits;
	size_t i, part;

	for (i = 0; i < n; i += part) {
		bits = rng_next(r);
		part = n - i < sizeof(bits) ? n - i : sizeof(bits);
		memcpy(&out[i], &bits, part);
	}
}
