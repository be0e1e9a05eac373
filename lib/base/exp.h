/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exp.h - exp and tanh with the same result on every machine.
 *
 * Replicas must make the same decision from the same facts, but exp differs
 * between libms in the last bit. The functions here use only addition,
 * multiplication, division and conversion of IEEE doubles, which are exact to
 * the bit everywhere unless the compiler contracts (-ffp-contract=off prevents
 * it), reorders (-ffast-math) or evaluates in a type wider than double (x87).
 * The last two can be checked here:
 */
#ifndef KVR_EXP_H
#define KVR_EXP_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "decisions must be the same everywhere: build without -ffast-math"
#endif
/* 1: floats, which are never added, are evaluated as doubles (s390x). */
#if FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 1
#error "decisions must be the same everywhere: build with -msse2 -mfpmath=sse"
#endif

/*
 * e^x with a relative error below 2^-51 for x up to 700; above that, e^700.
 * Below -700, and for NaN: 0. The value at 0 is exactly 1.
 *
 *   x = k ln 2 + r, |r| <= ln 2 / 2      e^x = 2^k e^r
 *
 * k is at most 1010, so k times the upper 29 bits of ln 2 is exact. The series
 * of e^r is cut after r^13 / 13!; the remainder is below 2^-57.
 */
static inline double
exp_of(double x)
{
	static const double log2e = 0x1.71547652b82fep+0;
	static const double ln2_upper = 0x1.62e42fep-1;
	static const double ln2_lower = 0xf.a39ef35793c76p-33;
	static const double series[] = {
		1, 1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720,
		1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
		1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800
	};
	int32_t k;
	uint64_t bits;
	double r, sum, power;
	int i;

	if (!(x >= -700))
		return 0;
	if (x > 700)
		x = 700;
	k = (int32_t)(x * log2e + (x < 0 ? -0.5 : 0.5));
	r = (x - k * ln2_upper) - k * ln2_lower;
	sum = series[13];
	for (i = 12; i >= 0; i--)
		sum = sum * r + series[i];
	bits = (uint64_t)(k + 1023) << 52;
	memcpy(&power, &bits, sizeof(power));
	return sum * power;
}

/*
 * tanh(x) with an absolute error below 2^-51. The relative error grows near 0,
 * which is harmless in e^-tanh. Exactly 0 at 0.
 */
static inline double
exp_tanh(double x)
{
	double t = exp_of(x < 0 ? 2 * x : -2 * x);

	t = (1 - t) / (1 + t);
	return x < 0 ? -t : t;
}

#endif
