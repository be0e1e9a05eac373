/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the library needs of libbsd, for a C library that libbsd is not built
 * for.
 */
#ifndef TESTS_MUSL_BSD_STDLIB_H
#define TESTS_MUSL_BSD_STDLIB_H

#include <stdlib.h>
#include <unistd.h>

static inline void
arc4random_buf(void *to, size_t bytes)
{
	if (getentropy(to, bytes) != 0)
		abort();
}

#endif
