/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prompt.h - the prompt object, which keeps its own copy of the rule.
 */
#ifndef KVR_PROMPT_H
#define KVR_PROMPT_H

#include "hash.h"

/*
 * The first fields are read by the rest of the library. `closed` is set between
 * end and the next change; only then are root and sequence[0..blocks) valid.
 */
struct kvr_prompt {
	struct hash_rule rule;
	uint64_t root;
	uint64_t *sequence;      /* [blocks] */
	uint32_t blocks;         /* complete blocks */
	uint32_t closed;
	uint64_t units;          /* tokens or bytes given so far */
	uint64_t tail_digest;    /* of what follows the last block */
	uint64_t *allowed;       /* [n_allowed] worker ids; n 0: all */
	size_t n_allowed;
	void *scratch;           /* see prompt_scratch */
	size_t scratch_bytes;
	uint32_t found_slots;    /* of the region last used with it */
	uint32_t found_base;     /* of the next match; see found_set */
	/* hash.c and prompt.c only: */
	uint64_t *local;         /* [blocks] */
	size_t capacity;         /* of local and of sequence */
	size_t allowed_capacity;
	size_t stride, window;   /* bytes; see hash_stride */
	uint32_t begun;
	uint32_t deferred;       /* end may set the scope: chain then */
	uint32_t by_locals;      /* some blocks were given as hashes */
	uint32_t media_sorted;
	struct kvr_scope scope;
	struct hash_chain chain;
	unsigned char *tail;     /* [window] of the next block */
	size_t tail_bytes;
	struct hash_media *media; /* [n_media]; below next_media: hashed */
	size_t n_media, next_media, media_capacity;
};

int prompt_new(const struct hash_rule *rule, struct kvr_prompt **out);
/*
 * Scratch of at least `bytes` bytes, valid until the next call; NULL if out of
 * memory. New memory reads as zero; old content is kept.
 */
void *prompt_scratch(struct kvr_prompt *p, size_t bytes);
/* The prompt's length in tokens (in byte mode an estimate: 4 bytes each). */
uint64_t prompt_tokens(const struct kvr_prompt *p);
/* Tokens in the first `blocks` blocks; in byte mode an estimate. */
uint64_t prompt_blocks_tokens(const struct kvr_prompt *p, uint32_t blocks);

#endif
