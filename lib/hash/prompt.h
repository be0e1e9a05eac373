/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * prompt.h - the prompt object, which keeps its own copy of the rule.
 */
#ifndef KVR_PROMPT_H
#define KVR_PROMPT_H

#include "hash.h"

/*
 * The first fields are read by the rest of the library. `closed` is set between
 * end and the next change; only then are root and the sequence hashes valid.
 *
 * A resumed prompt (saved.c) has no hashes of its first blocks, but for the
 * sequence hash of the last of them: `first` is the first block with both, and
 * `base` the one at the beginning of the arrays. Both are 0 in all others, but
 * in those of sequence hashes (sequences.c), which are closed and not begun.
 */
struct kvr_prompt {
	struct hash_rule rule;
	uint64_t root;
	uint64_t *sequence;      /* [blocks - base]; see prompt_sequence */
	uint32_t blocks;         /* complete blocks */
	uint32_t closed;
	uint64_t units;          /* tokens or bytes given so far */
	uint64_t tail_digest;    /* of the units after the last block */
	uint64_t *allowed;       /* [n_allowed] worker ids; n 0: all */
	size_t n_allowed;
	void *scratch;           /* see prompt_scratch */
	size_t scratch_bytes;
	uint32_t found_slots;    /* of the region last used with it */
	uint32_t found_base;     /* of the next match; see found_set */
	uint32_t first, base;    /* blocks; see above */
	uint32_t resumed;
	uint32_t share;          /* of its tenant, as it was set; or 0 */
	/* the files of this room only: */
	uint64_t *local;         /* [blocks - base] */
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
 * Room for the hashes of n blocks and for m media in a prompt that begins anew.
 * The content stays.
 */
int prompt_room(struct kvr_prompt *p, uint32_t n, size_t m);
/*
 * Scratch of at least `bytes` bytes, valid until the next call; NULL if out of
 * memory. New memory reads as zero; old content is kept.
 */
void *prompt_scratch(struct kvr_prompt *p, size_t bytes);
/* The prompt's length in tokens (in byte mode an estimate: 4 bytes each). */
uint64_t prompt_tokens(const struct kvr_prompt *p);
/* Tokens in the first `blocks` blocks; in byte mode an estimate. */
uint64_t prompt_blocks_tokens(const struct kvr_prompt *p, uint32_t blocks);

/* Digest of its tenant; 0: it has none. */
static inline uint64_t
prompt_tenant(const struct kvr_prompt *p)
{
	return p->scope.digest[KVR_SCOPE_TENANT];
}

/* The sequence hashes from block i on; i is base or above. */
static inline const uint64_t *
prompt_sequence(const struct kvr_prompt *p, uint32_t i)
{
	return p->sequence + (i - p->base);
}

#endif
