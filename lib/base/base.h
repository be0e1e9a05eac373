/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base.h - what every file of the library may use.
 *
 * Objects are compiled with hidden visibility; what kvroute.h declares is
 * visible.
 */
#ifndef KVR_BASE_H
#define KVR_BASE_H

#pragma GCC visibility push(default)
#include "kvroute.h"
#pragma GCC visibility pop

#include <stdbool.h>
#include <string.h>

/*
 * Structs of the public border grow at their end; both sides say how large
 * theirs is, in a size_t that comes first. Copies what both know except the
 * size itself. In: over defaults that `to` already holds. Out: into a
 * caller's struct. False if the given size cannot even hold a size.
 */
static inline bool
struct_copy(void *to, size_t to_size, const void *from, size_t from_size)
{
	size_t n = from_size < to_size ? from_size : to_size;

	if (n < sizeof(size_t))
		return false;
	memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t),
	    n - sizeof(size_t));
	return true;
}

/*
 * The defaults for a struct of the caller's that is `size` long, and that
 * length in its first field. What it has beyond ours is zero.
 */
static inline int
struct_init(void *to, size_t size, const void *defaults, size_t length)
{
	if (to == NULL || size < sizeof(size_t))
		return KVR_EINVAL;
	memset(to, 0, size);
	memcpy(to, &size, sizeof(size));
	(void)struct_copy(to, size, defaults, length);
	return KVR_OK;
}

#endif
