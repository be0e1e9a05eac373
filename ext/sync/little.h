/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * little.h - numbers of 0 to 8 bytes, little endian, anywhere in memory.
 */
#ifndef KVROUTE_LITTLE_H
#define KVROUTE_LITTLE_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t
little_get(const unsigned char *at, size_t bytes)
{
	uint64_t value = 0;

	while (bytes-- > 0)
		value = value << 8 | at[bytes];
	return value;
}

static inline void
little_put(unsigned char *at, uint64_t value, size_t bytes)
{
	size_t i;

	for (i = 0; i < bytes; i++, value >>= 8)
		at[i] = (unsigned char)value;
}

#endif
