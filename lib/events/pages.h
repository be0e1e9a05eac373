/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pages.h - engines with smaller blocks than the index's.
 */
#ifndef KVR_PAGES_H
#define KVR_PAGES_H

#include "alias.h"
#include "event_batch.h"

/* Aliases of a page of so many tokens, if it does not end a block. */
uint64_t pages_aliases(uint32_t size);
/* Tokens of a page, if that is what such a block is; else 0. */
uint32_t pages_size(const struct kvr *k, uint32_t block_tokens);
/* Blocks of the index that an event may end; 0: it has no pages' contents. */
uint64_t pages_most(const struct kvr *k, const struct kvr_event *e);

/* What an event stores. */
struct pages {
	uint32_t size;          /* of a page; 0: they are none */
	/* since pages_begin */
	uint32_t begun;         /* tokens of its first block that were known */
	uint32_t above;         /* alias before that block */
	/* since pages_hash */
	const uint32_t *tokens;
	uint32_t blocks;        /* of the index, that it ends */
	uint32_t node;          /* which has these: set by the caller */
	const uint64_t *sequence; /* of these: the same */
};

/*
 * The event goes on behind this alias. Writes the tokens that its block has
 * begun with. false: no page ends there.
 */
bool pages_begin(const struct kvr *k, struct pages *g, uint32_t parent,
    uint32_t *block, uint64_t *steps);
/* Local hashes of the blocks that it ends, with what pages_begin wrote. */
void pages_hash(const struct kvr *k, struct pages *g,
    const struct event_batch *b, const struct kvr_event *e, uint32_t *block,
    uint64_t *local);
/* Of the event's pages, the one that ends its i-th block. */
uint64_t pages_end(const struct kvr *k, const struct pages *g, uint64_t i);
/*
 * The alias of its i-th page, behind like->parent; 0: there are no more, or the
 * name is of another page.
 */
uint32_t pages_add(struct kvr *k, const struct pages *g, struct alias *like,
    uint64_t i, uint64_t name);

/* Does it end where it can, behind its parent? */
bool pages_sound(const struct kvr *k, const struct alias *a);

#endif
