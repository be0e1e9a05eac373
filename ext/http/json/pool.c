/* SPDX-License-Identifier: BSD-2-Clause */
/* pool.c - see pool.h. */
#include "pool.h"

#include <stdlib.h>
#include <string.h>

/* YAJL's strings begin with this size and grow: use the largest block. */
enum { GROWS = 2048 };

static _Noreturn void
give_up(struct pool *pool)
{
	longjmp(pool->full, 1);
}

/* The best free block, or POOL_BLOCKS. */
static size_t
block_find(const struct pool *pool, size_t size)
{
	size_t i, best = POOL_BLOCKS;

	for (i = 0; i < POOL_BLOCKS; i++) {
		if (pool->block[i].used || pool->block[i].size < size)
			continue;
		if (best == POOL_BLOCKS || (size < GROWS) ==
		    (pool->block[i].size < pool->block[best].size))
			best = i;
	}
	return best;
}

/* Allocates a block in a free place, preferably an empty one. */
static size_t
block_make(struct pool *pool, size_t size)
{
	size_t i, place = POOL_BLOCKS;
	void *memory;

	for (i = 0; i < POOL_BLOCKS; i++)
		if (!pool->block[i].used && (place == POOL_BLOCKS ||
		    pool->block[place].size > pool->block[i].size))
			place = i;
	if (place == POOL_BLOCKS || (memory = malloc(size)) == NULL)
		give_up(pool);
	free(pool->block[place].memory);
	pool->block[place].memory = memory;
	pool->block[place].size = size;
	return place;
}

static void *
memory_get(void *context, size_t size)
{
	struct pool *pool = context;
	size_t i;

	if (size == 0)
		size = 1;
	i = block_find(pool, size);
	if (i == POOL_BLOCKS)
		i = block_make(pool, size);
	pool->block[i].used = true;
	return pool->block[i].memory;
}

static size_t
place_of(const struct pool *pool, const void *memory)
{
	size_t i;

	for (i = 0; i < POOL_BLOCKS; i++)
		if (pool->block[i].memory == memory)
			return i;
	abort();
}

static void *
memory_grow(void *context, void *memory, size_t size)
{
	struct pool *pool = context;
	size_t i;

	if (memory == NULL)
		return memory_get(context, size);
	i = place_of(pool, memory);
	if (size <= pool->block[i].size)
		return memory;
	memory = realloc(memory, size);
	if (memory == NULL)
		give_up(pool);
	pool->block[i].memory = memory;
	pool->block[i].size = size;
	return memory;
}

static void
memory_put(void *context, void *memory)
{
	struct pool *pool = context;

	if (memory != NULL)
		pool->block[place_of(pool, memory)].used = false;
}

void
pool_init(struct pool *pool)
{
	memset(pool, 0, sizeof(*pool));
	pool->calls.malloc = memory_get;
	pool->calls.realloc = memory_grow;
	pool->calls.free = memory_put;
	pool->calls.ctx = pool;
}

static void
blocks_drop(struct pool *pool, size_t larger)
{
	size_t i;

	for (i = 0; i < POOL_BLOCKS; i++) {
		pool->block[i].used = false;
		if (pool->block[i].size <= larger)
			continue;
		free(pool->block[i].memory);
		pool->block[i].memory = NULL;
		pool->block[i].size = 0;
	}
}

void
pool_begin(struct pool *pool)
{
	blocks_drop(pool, POOL_KEEP);
}

void
pool_end(struct pool *pool)
{
	blocks_drop(pool, 0);
}
