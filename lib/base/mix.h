/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mix.h - a 64-bit mixing function.
 */
#ifndef KVR_MIX_H
#define KVR_MIX_H

#include <stdint.h>

/* Bijective; every bit of x affects every bit of the result. */
static inline uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 32) * UINT64_C(0xbea225f9eb34556d);
	x = (x ^ x >> 29) * UINT64_C(0xbea225f9eb34556d);
	return x ^ x >> 32;
}

#endif
