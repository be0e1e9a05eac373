/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h - memory for a YAJL parser that is needed again and again.
 *
 * YAJL cannot begin anew: every text takes a new handle, which asks for half
 * a dozen pieces of memory, two of which then grow with the longest string.
 * And it does not look whether it got any. So it asks here:
 *
 *   - what it had for one text stays for the next, without being given back
 *     piece by piece: pool_begin takes all of it back, and yajl_free is never
 *     called;
 *   - where there is no memory, the pool jumps out of YAJL to where its user
 *     said (`full`, set by setjmp before each call of YAJL). What YAJL was
 *     about then is undone by pool_begin too. The handle must not be used
 *     again.
 *
 *   pool        [ 112 u | 56 u | 24 u | 128 u | 524288 u | 4096 | - - ]
 *                 handle  lexer  ...            strings    of the last text
 *
 * Invariant: block[0..POOL_BLOCKS) are the pool's, NULL or of that size.
 */
#ifndef KVROUTE_POOL_H
#define KVROUTE_POOL_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <yajl/yajl_common.h>

enum {
	POOL_BLOCKS = 16,  /* YAJL has at most 7 at a time */
	POOL_KEEP = 1 << 20 /* larger blocks go when the next text begins */
};

struct pool {
	jmp_buf full;
	yajl_alloc_funcs calls; /* for yajl_alloc */
	struct {
		void *memory;
		size_t size;
		bool used;
	} block[POOL_BLOCKS];
};

void pool_init(struct pool *pool);
/* Everything that was given out is free. */
void pool_begin(struct pool *pool);
void pool_end(struct pool *pool);

#endif
