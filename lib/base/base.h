/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * base.h - shared by every file of the library.
 *
 * Objects are compiled with hidden visibility; only functions that the
 * headers of include/ declare are exported.
 */
#ifndef KVR_BASE_H
#define KVR_BASE_H

#pragma GCC visibility push(default)
#include "kvroute.h"
#include "kvroute_events.h"
#include "kvroute_replica.h"
#pragma GCC visibility pop

#include <stdbool.h>
#include <string.h>

/*
 * Structs of the public API grow at their end. Their first field is a size_t
 * with the size that the caller was compiled with.
 */
enum { STRUCT_BYTES_MAX = 4096 }; /* a larger size is garbage */

/* Are the bytes of a caller's struct beyond `known` all zero? */
static inline bool
struct_known(const void *from, size_t length, size_t known)
{
	const unsigned char *at = from;
	size_t i;

	for (i = known; i < length; i++)
		if (at[i] != 0)
			return false;
	return true;
}

/*
 * Copies a caller's struct over the defaults in `to`: the fields that both
 * sides know, except the size itself. KVR_ENEWER if the caller sets others: it
 * was built for a newer library, and they would be ignored.
 */
static inline int
struct_get(void *to, size_t to_size, const void *from)
{
	size_t n, size;

	memcpy(&size, from, sizeof(size));
	if (size < sizeof(size) || size > STRUCT_BYTES_MAX)
		return KVR_EINVAL;
	if (!struct_known(from, size, to_size))
		return KVR_ENEWER;
	n = size < to_size ? size : to_size;
	memcpy((char *)to + sizeof(size), (const char *)from + sizeof(size),
	    n - sizeof(size));
	return KVR_OK;
}

/* Can a result be written to a caller's struct of this size? */
static inline bool
struct_has_size(size_t size)
{
	return size >= sizeof(size_t);
}

/* Copies a result to a caller's struct, as much as fits. */
static inline void
struct_put(void *to, size_t to_size, const void *from, size_t from_size)
{
	size_t n = from_size < to_size ? from_size : to_size;

	memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t),
	    n - sizeof(size_t));
}

/*
 * Fills a caller's struct of `size` bytes with the defaults and stores its size
 * in the first field. Bytes beyond our own struct are zero.
 */
static inline int
struct_init(void *to, size_t size, const void *defaults, size_t length)
{
	if (to == NULL || size < sizeof(size_t))
		return KVR_EINVAL;
	memset(to, 0, size);
	memcpy(to, &size, sizeof(size));
	struct_put(to, size, defaults, length);
	return KVR_OK;
}

#endif
