/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hash.h - how a prompt is hashed.
 *
 * The lowest layer of the data path; independent of regions. A rule holds the
 * parameters.
 */
#ifndef KVR_HASH_H
#define KVR_HASH_H

#include "base.h"

/* Size of a full XXH3 secret. */
enum { HASH_SECRET_BYTES = 192 };

struct hash_rule {
	uint32_t unit;       /* enum kvr_unit */
	uint32_t block_size;
	uint32_t kind;       /* enum kvr_hash_kind */
	uint32_t eagle;
	uint64_t id;         /* digest of the rest: equal ids, equal hashes */
	unsigned char secret[HASH_SECRET_BYTES];
};

/* Derives rule->secret from a caller's key of any length. */
void hash_rule_key(struct hash_rule *rule, const void *key, size_t length);
/*
 * Sets rule->id from the other fields. The secret is included in keyed mode
 * only: reference hashes are the same in every region.
 */
void hash_rule_seal(struct hash_rule *rule);
/* The sequence hash that precedes a prompt's first block. */
uint64_t hash_root(const struct hash_rule *rule, const struct kvr_scope *s);
int hash_scope_set(const struct hash_rule *rule, struct kvr_scope *scope,
    enum kvr_scope_part part, const void *text, size_t length);
/* The digest of a key within a tenant; never 0. */
uint64_t hash_affinity(const struct hash_rule *rule, const void *tenant,
    size_t tenant_length, const void *key, size_t length);
/*
 * Copies a caller's scope into a full struct; NULL is the empty scope.
 * KVR_EINVAL if it is invalid, KVR_EMISMATCH if it has parts that the rule does
 * not support.
 */
int hash_scope_get(const struct hash_rule *rule, const struct kvr_scope *from,
    struct kvr_scope *to);

/* Bytes from one block to the next, and bytes covered by one block hash. */
size_t hash_stride(const struct hash_rule *rule);
size_t hash_window(const struct hash_rule *rule);

/*
 * The chain of one prompt. In dynamo mode the scope is in the seed of every
 * block, so it must be known before the first one.
 */
struct hash_chain {
	uint64_t seed;       /* of the blocks; dynamo */
	uint64_t state;      /* after the last chained block */
	uint64_t key[2];     /* of the chain; keyed */
	uint32_t blocks;     /* chained so far */
	unsigned char secret[HASH_SECRET_BYTES]; /* of long blocks; dynamo */
};

/* Hash of the incomplete last block: distinguishes prompts equal before it. */
uint64_t hash_tail(const struct hash_rule *rule, const void *tail, size_t n);

/* Restarts the chain in this scope; returns the root. */
uint64_t hash_start(const struct hash_rule *rule, const struct kvr_scope *scope,
    struct hash_chain *chain);
/* The same, to go on after a block with this sequence hash. */
void hash_resume(const struct hash_rule *rule, const struct kvr_scope *scope,
    uint64_t sequence, struct hash_chain *chain);
/* Local hashes of n consecutive whole blocks at `from`. */
void hash_blocks(const struct hash_rule *rule, const struct hash_chain *chain,
    const void *from, size_t n, uint64_t *local);
/* The same of tokens, as callers have them. */
void hash_token_blocks(const struct hash_rule *rule,
    const struct hash_chain *chain, const uint32_t *tokens, size_t n,
    uint64_t *local);
/* The same, and extends the chain over them. */
void hash_blocks_chained(const struct hash_rule *rule,
    struct hash_chain *chain, const void *from, size_t n, uint64_t *local,
    uint64_t *sequence);
/* Extends the chain over n blocks of known local hashes. */
void hash_chain_on(const struct hash_rule *rule, struct hash_chain *chain,
    const uint64_t *local, size_t n, uint64_t *sequence);

/* The sequence hash of the last block chained; else the root. */
uint64_t hash_chain_end(const struct hash_rule *rule,
    const struct hash_chain *chain);

struct hash_media {
	uint64_t hash;
	uint32_t block;
};
/* Sorts by block, then hash, in place, without allocation. */
void hash_media_sort(struct hash_media *media, size_t n);
/* Local hash of one block and its media, which must be sorted. */
uint64_t hash_block_media(const struct hash_rule *rule,
    const struct hash_chain *chain, const void *from,
    const struct hash_media *media, size_t n);

/*
 * Upper half xor lower half of the 128-bit product of two words.
 * hash_fold_narrow is for compilers without a 128-bit type; both give the same
 * result.
 */
static inline uint64_t
hash_fold_narrow(uint64_t a, uint64_t b)
{
	const uint64_t mask = 0xffffffff;
	uint64_t low = (a & mask) * (b & mask);
	uint64_t cross = (a & mask) * (b >> 32);
	uint64_t middle = (low >> 32) + (cross & mask) + (a >> 32) * (b & mask);
	uint64_t high = (a >> 32) * (b >> 32) + (cross >> 32) + (middle >> 32);

	return high ^ (middle << 32 | (low & mask));
}

static inline uint64_t
hash_fold(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	__extension__ unsigned __int128 product = a;

	product *= b;
	return (uint64_t)(product >> 64) ^ (uint64_t)product;
#else
	return hash_fold_narrow(a, b);
#endif
}

/* Tokens in a block; in byte mode an estimate, 4 bytes per token. */
static inline double
hash_block_tokens(const struct hash_rule *rule)
{
	return rule->unit == KVR_UNIT_TOKENS ? rule->block_size
	    : rule->block_size / 4.0;
}

#endif
