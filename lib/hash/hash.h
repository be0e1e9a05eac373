/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hash.h - how a prompt becomes hashes.
 *
 * Leftmost in the direction of data: nothing here knows of a region. A rule
 * says how to hash.
 */
#ifndef KVR_HASH_H
#define KVR_HASH_H

#include "base.h"

/* What XXH3 needs. */
enum { HASH_SECRET_BYTES = 192 };

struct hash_rule {
	uint32_t unit;       /* enum kvr_unit */
	uint32_t block_size;
	uint32_t kind;       /* enum kvr_hash_kind */
	uint32_t eagle;
	uint64_t id;         /* digest of all else: equal ids, equal hashes */
	unsigned char secret[HASH_SECRET_BYTES];
};

/* The secret that a key of the caller's stands for; any length. */
void hash_rule_key(struct hash_rule *rule, const void *key, size_t length);
/*
 * Sets rule->id from the other fields. The secret counts in keyed mode only:
 * reference hashes are the same in every region.
 */
void hash_rule_seal(struct hash_rule *rule);
/* The sequence hash that stands before a prompt's first block. */
uint64_t hash_root(const struct hash_rule *rule, const struct kvr_scope *s);
int hash_scope_set(const struct hash_rule *rule, struct kvr_scope *scope,
    enum kvr_scope_part part, const void *text, size_t length);
/*
 * A caller's scope as a whole struct; NULL is the empty one. KVR_EINVAL if it
 * is none, KVR_EMISMATCH if it has parts that the rule does not know.
 */
int hash_scope_get(const struct hash_rule *rule, const struct kvr_scope *from,
    struct kvr_scope *to);

/* Bytes from one block to the next, and bytes that one block hash covers. */
size_t hash_stride(const struct hash_rule *rule);
size_t hash_window(const struct hash_rule *rule);

/*
 * Where the chain of one prompt stands. In dynamo mode the scope is in the
 * seed of every block, so it must be known before the first one.
 */
struct hash_chain {
	uint64_t seed;       /* of the blocks; dynamo */
	uint64_t state;      /* behind the last block chained */
	uint64_t key[2];     /* of the chain; keyed */
	uint32_t blocks;     /* chained so far */
	unsigned char secret[HASH_SECRET_BYTES]; /* of long blocks; dynamo */
};

/* Of what is no whole block; tells prompts apart that end in one. */
uint64_t hash_tail(const struct hash_rule *rule, const void *tail, size_t n);

/* Puts the chain before the first block in this scope; gives the root. */
uint64_t hash_start(const struct hash_rule *rule, const struct kvr_scope *scope,
    struct hash_chain *chain);
/* Local hashes of n whole blocks that follow each other at `from`. */
void hash_blocks(const struct hash_rule *rule, const struct hash_chain *chain,
    const void *from, size_t n, uint64_t *local);
/* The same, and the chain goes on over them. */
void hash_blocks_chained(const struct hash_rule *rule,
    struct hash_chain *chain, const void *from, size_t n, uint64_t *local,
    uint64_t *sequence);
/* The chain goes on over n blocks whose local hashes are known. */
void hash_chain_on(const struct hash_rule *rule, struct hash_chain *chain,
    const uint64_t *local, size_t n, uint64_t *sequence);

struct hash_media {
	uint64_t hash;
	uint32_t block;
};
/* By block, then by hash. In place: completing a block takes no memory. */
void hash_media_sort(struct hash_media *media, size_t n);
/* Local hash of one block and the media in it, which are sorted. */
uint64_t hash_block_media(const struct hash_rule *rule,
    const struct hash_chain *chain, const void *from,
    const struct hash_media *media, size_t n);

/*
 * Both halves of the 128-bit product of two words, one xor the other. The
 * second form is for compilers without a 128-bit type; they agree.
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

/* Tokens in a block; in byte mode an estimate, 4 bytes a token. */
static inline double
hash_block_tokens(const struct hash_rule *rule)
{
	return rule->unit == KVR_UNIT_TOKENS ? rule->block_size
	    : rule->block_size / 4.0;
}

#endif
