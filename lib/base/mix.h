/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mix.h - a word whose bits are all mixed.
 */
#ifndef KVR_MIX_H
#define KVR_MIX_H

#include <stdint.h>

/* Every bit of x goes into every bit of the result; one to one. */
static inline uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 32) * UINT64_C(0xbea225f9eb34556d);
	x = (x ^ x >> 29) * UINT64_C(0xbea225f9eb34556d);
	return x ^ x >> 32;
}

#endif
