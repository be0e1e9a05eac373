/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chains.h - the sequence hashes of prompts that were published or applied.
 *
 * A region keeps hashes where chains part, but not all those between. This
 * store has them, so that a peer can get whole chains, and so that a
 * continuation can be joined to the chain before it.
 *
 * Memory is bounded: chains that have not been added again for some time are
 * forgotten, always as a whole. At least the last `blocks` different ones are
 * known.
 */
#ifndef KVROUTE_CHAINS_H
#define KVROUTE_CHAINS_H

#include <stddef.h>

#include "roots.h"

enum {
	CHAINS_BLOCKS = 3 << 19, /* 1.5 M: at most 2 x 27 MB */
	CHAINS_LENGTH_MAX = 1 << 17
};

struct chains;

/* A part of a chain. */
struct stretch {
	uint64_t parent;       /* hash before it; the root if first is 0 */
	uint32_t first;
	size_t n;
	const uint64_t *hashes; /* until the next call */
};

/* NULL: no memory. */
struct chains *chains_new(size_t blocks);
void chains_free(struct chains *c);
/*
 * Adds a part of a chain. false: the part before it is not known, or it is no
 * continuation: at another position than before, or too long.
 */
bool chains_add(struct chains *c, const struct stretch *s);
/*
 * The chain from its root to the block `hash`, with room for `more` hashes
 * behind it, which the caller may write. false: it is not known.
 */
bool chains_get(struct chains *c, uint64_t hash, size_t more,
    struct stretch *out, uint64_t **end);
/* Forgets all marks. */
void chains_unmark(struct chains *c);
/*
 * Marks up to `most` of the first `blocks` of the chain that `hash` is in, and
 * returns their hashes; blocks with a mark are passed over. n is 0 if all have.
 * *last: the hash of the last one of `blocks`. false: not known.
 */
bool chains_mark(struct chains *c, uint64_t hash, uint32_t blocks, size_t most,
    struct stretch *out, uint64_t *last);
/* The tenants of their roots. */
struct roots *chains_roots(const struct chains *c);
/* How many different blocks are known; some twice. */
size_t chains_blocks(const struct chains *c);

#endif
