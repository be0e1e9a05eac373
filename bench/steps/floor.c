/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * floor.c - see floor.h.
 *
 * The compiler sees the length of a block as a constant, as in a program for
 * one block size, and the seed too. No check, no array of hashes: each is used
 * for the next and dropped. Blocks of more than 240 bytes need a secret derived
 * from the seed: it is derived once, not for each block.
 */
#include "floor.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SEED 1337

static unsigned char secret[XXH3_SECRET_DEFAULT_SIZE];

void
floor_prepare(void)
{
	XXH3_generateSecret_fromSeed(secret, SEED);
}

static inline __attribute__((always_inline)) uint64_t
block_hash(const uint32_t *tokens, size_t block_size)
{
	if (block_size * 4 <= XXH3_MIDSIZE_MAX)
		return XXH3_64bits_withSeed(tokens, block_size * 4, SEED);
	return XXH3_64bits_withSecret(tokens, block_size * 4, secret,
	    sizeof(secret));
}

static inline __attribute__((always_inline)) uint64_t
chain(const uint32_t *tokens, size_t blocks, size_t block_size)
{
	uint64_t pair[2] = { 0, 0 };
	size_t i;

	if (blocks == 0)
		return 0;
	pair[0] = block_hash(tokens, block_size);
	for (i = 1; i < blocks; i++) {
		tokens += block_size;
		pair[1] = block_hash(tokens, block_size);
		pair[0] = XXH3_64bits_withSeed(pair, sizeof(pair), SEED);
	}
	return pair[0];
}

uint64_t
floor_hash(const uint32_t *tokens, size_t n, uint32_t block_size)
{
	size_t blocks = n / block_size;

	switch (block_size) {
	case 16:
		return chain(tokens, blocks, 16);
	case 32:
		return chain(tokens, blocks, 32);
	case 64:
		return chain(tokens, blocks, 64);
	case 128:
		return chain(tokens, blocks, 128);
	default:
		return chain(tokens, blocks, block_size);
	}
}
