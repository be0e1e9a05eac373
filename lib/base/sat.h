/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sat.h - sums that stop at a bound instead of overflowing.
 */
#ifndef KVR_SAT_H
#define KVR_SAT_H

#include <stdint.h>

#define SAT_MAX (UINT64_C(1) << 62)

static inline uint64_t
sat_least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t
sat_most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t
sat_add(uint64_t sum, uint64_t more)
{
	return sat_least(sat_least(sum, SAT_MAX) + sat_least(more, SAT_MAX),
	    SAT_MAX);
}

static inline uint64_t
sat_sub(uint64_t sum, uint64_t less)
{
	return sum > less ? sum - less : 0;
}

#endif
