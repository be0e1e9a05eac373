/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plain.h - block hashes the slow and obvious way.
 *
 * The reference for hash.c and prompt.c: all input is there at once, each hash
 * is computed on its own, nothing is cached.
 */
#ifndef KVR_PLAIN_H
#define KVR_PLAIN_H

#include "hash.h"

struct plain {
	const struct hash_rule *rule;
	const struct kvr_scope *scope;
	const unsigned char *bytes; /* tokens as little-endian words */
	size_t units;
	const struct hash_media *media; /* in any order */
	size_t n_media;
};

size_t plain_blocks(const struct hash_rule *rule, size_t units);
uint64_t plain_local(const struct plain *p, size_t block);
uint64_t plain_root(const struct hash_rule *rule,
    const struct kvr_scope *scope);
void plain_chain(const struct hash_rule *rule, const struct kvr_scope *scope,
    const uint64_t *local, size_t n, uint64_t *sequence);

/* The word least-significant byte first, on any machine. */
void plain_put(unsigned char *to, uint64_t word, size_t bytes);

/* A sealed rule with a secret derived from `seed`. */
struct hash_rule plain_rule(uint32_t kind, uint32_t unit, uint32_t block_size,
    uint32_t eagle, uint64_t seed);
/* Numbers without a visible pattern, determined by the state. */
uint64_t plain_random(uint64_t *state);

#endif
