/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hash.h - how a prompt becomes hashes, and the prompt object.
 *
 * Leftmost in the direction of data: nothing here knows of a region. A rule
 * says how to hash; a prompt copies the rule it was made with.
 */
#ifndef KVR_HASH_H
#define KVR_HASH_H

#include "base.h"

struct hash_rule {
	uint32_t unit;       /* enum kvr_unit */
	uint32_t block_size;
	uint32_t kind;       /* enum kvr_hash_kind */
	uint32_t eagle;
	uint64_t id;         /* digest of all else: equal ids, equal hashes */
	unsigned char secret[KVR_SECRET_BYTES];
};

/* Sets rule->id from the other fields. */
void hash_rule_seal(struct hash_rule *rule);
/* The sequence hash that stands before a prompt's first block. */
uint64_t hash_root(const struct hash_rule *rule, const struct kvr_scope *s);
int hash_scope_set(const struct hash_rule *rule, struct kvr_scope *scope,
    enum kvr_scope_part part, const void *text, size_t length);

/*
 * What the rest of the library reads of a prompt. `closed` is set between end
 * and the next change; only then are root and sequence[0..blocks) valid.
 */
struct kvr_prompt {
	struct hash_rule rule;
	uint64_t root;
	uint64_t *sequence;      /* [blocks] */
	uint32_t blocks;         /* complete blocks */
	uint32_t closed;
	uint64_t units;          /* tokens or bytes given in all */
	uint64_t *allowed;       /* [n_allowed] worker ids; n 0: all */
	size_t n_allowed;
	void *scratch;           /* see prompt_scratch */
	size_t scratch_bytes;
	/* hash.c and prompt.c only: */
	uint64_t *local;
	size_t local_capacity;
	size_t sequence_capacity;
	size_t allowed_capacity;
	uint32_t chained;        /* blocks whose sequence hash stands */
	uint32_t begun;
	struct kvr_scope scope;
	unsigned char *tail;     /* bytes of the incomplete block(s) */
	size_t tail_bytes;
	struct prompt_media *media;
	size_t n_media;
	size_t media_capacity;
};

int prompt_new(const struct hash_rule *rule, struct kvr_prompt **out);
/*
 * Scratch of at least `bytes` bytes that lives until the next call; NULL when
 * there is no memory. New memory reads as zero; old content is kept.
 */
void *prompt_scratch(struct kvr_prompt *p, size_t bytes);
/* The prompt's length in tokens (in byte mode an estimate: 4 bytes each). */
uint64_t prompt_tokens(const struct kvr_prompt *p);

#endif
