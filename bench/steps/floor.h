/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * floor.h - the least that hashing a prompt costs: one plain loop of XXH3 over
 * each block and of XXH3 over the chain, nothing else.
 */
#ifndef KVROUTE_FLOOR_H
#define KVROUTE_FLOOR_H

#include <stddef.h>
#include <stdint.h>

/* Once, before floor_hash. */
void floor_prepare(void);

/*
 * The sequence hash of the last complete block, as in KVR_HASH_DYNAMO; 0 if
 * there is none.
 */
uint64_t floor_hash(const uint32_t *tokens, size_t n, uint32_t block_size);

#endif
