/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * blocks.h - the contents of an engine's named blocks: their tokens and the
 * block before them. A block is known as long as it is held: by each sequence
 * that has it in its prompt or output, by the cache, and by events about it.
 */
#ifndef KVROUTE_BLOCKS_H
#define KVROUTE_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blocks;

struct block {
	uint64_t name;
	uint64_t before;    /* the name of the block before it */
	bool first;         /* no block is before it */
	bool cached;        /* by the events so far */
	const char *salt;   /* of the first block; NULL: none */
	const char *adapter; /* NULL: none */
	const uint32_t *tokens;
};

/* Blocks have so many tokens. NULL: no memory. */
struct blocks *blocks_new(uint32_t tokens);
void blocks_free(struct blocks *b);
/* Copies and holds it, whether it is known or not. NULL: no memory. */
struct block *blocks_add(struct blocks *b, const struct block *facts);
/* NULL: it is not known. */
struct block *blocks_find(const struct blocks *b, uint64_t name);
void blocks_hold(struct block *block);
/* Once for each time that it was held. */
void blocks_release(struct blocks *b, struct block *block);
size_t blocks_count(const struct blocks *b);

#endif
