/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair.h - two doubles that are computed with at a time.
 *
 * Passes over all workers take half as long so, and every operation is the same
 * to the bit as that of one double.
 */
#ifndef KVR_PAIR_H
#define KVR_PAIR_H

#include "word.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

typedef double pair __attribute__((vector_size(16)));
typedef int64_t pair_mask __attribute__((vector_size(16)));

/*
 * Each of them is read once. One load of both is five instructions less than
 * two atomic ones, and processors tear no aligned word.
 */
static inline pair
pair_read(const double *place)
{
#ifdef __SSE2__
	const struct { double both[2]; } *at = (const void *)place;
	pair x;

	__asm__("movupd %1, %0" : "=x"(x) : "m"(*at));
	return x;
#else
	return (pair){ read_once_double(place), read_once_double(place + 1) };
#endif
}

/* To memory that no other thread sees, at any address. */
static inline void
pair_write(double *place, pair x)
{
	memcpy(place, &x, sizeof(x));
}

/*
 * Of each the greater, and the less, and b if one is NaN; x if it is from 0 to
 * most, and else most. GCC makes branches of the second form on x86-64.
 */
#ifdef __SSE2__
static inline pair
pair_within(pair x, pair most)
{
	pair good = _mm_and_pd(_mm_cmpge_pd(x, _mm_setzero_pd()),
	    _mm_cmple_pd(x, most));

	return _mm_or_pd(_mm_and_pd(good, x), _mm_andnot_pd(good, most));
}

static inline pair
pair_greater(pair a, pair b)
{
	return _mm_max_pd(a, b);
}

static inline pair
pair_less(pair a, pair b)
{
	return _mm_min_pd(a, b);
}
/* Bit 0 and bit 1: which of a are above those of b. */
static inline uint32_t
pair_above(pair a, pair b)
{
	return (uint32_t)_mm_movemask_pd(_mm_cmpgt_pd(a, b));
}
#else
static inline pair
pair_choose(pair_mask mask, pair a, pair b)
{
	return (pair)((mask & (pair_mask)a) | (~mask & (pair_mask)b));
}

static inline pair
pair_greater(pair a, pair b)
{
	return pair_choose(a > b, a, b);
}

static inline pair
pair_less(pair a, pair b)
{
	return pair_choose(a < b, a, b);
}

static inline uint32_t
pair_above(pair a, pair b)
{
	return (uint32_t)(a[0] > b[0]) | (uint32_t)(a[1] > b[1]) << 1;
}

static inline pair
pair_within(pair x, pair most)
{
	return pair_choose((x >= (pair){ 0, 0 }) & (x <= most), x, most);
}
#endif

#endif
