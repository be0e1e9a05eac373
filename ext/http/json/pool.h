/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool.h - memory for YAJL parsers, reused from one text to the next.
 *
 * YAJL cannot restart: every text takes a new handle, which allocates half a
 * dozen pieces of memory, two of which grow with the longest string. And it
 * does not check its allocations. So it allocates here:
 *
 *   - memory of one text is kept for the next. It is not freed piece by piece:
 *     pool_begin takes back all of it, and yajl_free is never called;
 *   - when an allocation fails, the pool jumps out of YAJL to `full`, which its
 *     user sets by setjmp before each call of YAJL. pool_begin undoes what was
 *     under way. The handle must not be used again.
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
	POOL_KEEP = 1 << 20 /* larger blocks are freed by pool_begin */
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
/* Takes back all memory that was handed out. */
void pool_begin(struct pool *pool);
void pool_end(struct pool *pool);

#endif
