/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pages.h - pages of an engine, made into blocks of an index.
 *
 * An engine may name smaller blocks than a region has: SGLang's page is often
 * one token. Prompts then part anywhere, and so within a block of the index.
 * The region only learns of whole blocks, by the name of their last page:
 *
 *	pages      a b c d | e f g h       blocks of 4 tokens, pages of 1
 *	                       `-- x y     stored later, behind f
 *	region     d: abcd   h: efgh behind d   y: efxy behind d
 *
 *	kept       a <- b <- c    e <- f <- g      until they are removed
 *	                               ^- x
 *
 * A page that ends no block is kept here with its tokens, so that pages behind
 * it can be made whole. A name that is not kept is taken for that of a block.
 * If it names a page that is older than this process, the region does not know
 * it either: blocks behind it are orphans there. The same holds when the table
 * is as large as it may be: then all pages are forgotten, and counted.
 */
#ifndef KVROUTE_PAGES_H
#define KVROUTE_PAGES_H

#include <kvroute.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room for n + more items of `each` bytes; false: no memory. */
bool pages_room(void **items, size_t *has, size_t n, uint64_t more,
    size_t each);

/* The arrays to which the events of a call refer. */
struct pages_arrays {
	uint64_t *hashes;
	uint32_t *tokens;
	size_t n_hashes, n_tokens, hashes_room, tokens_room;
};
/* Room for n more at the end of each; false: no memory. */
bool pages_hashes_add(struct pages_arrays *a, const uint64_t *hashes,
    uint64_t n);
bool pages_tokens_add(struct pages_arrays *a, const uint32_t *tokens,
    uint64_t n);
void pages_arrays_free(struct pages_arrays *a);

#define PAGES_BYTES ((size_t)256 << 20)

struct page;
/* A table of kept pages. It is empty if all is 0. */
struct pages {
	uint32_t block;      /* tokens of a block of the index; 0: not known */
	uint32_t size;       /* tokens of the pages that are kept */
	struct page *page;   /* [1 + room] */
	uint32_t *tokens;    /* [1 + room][size] */
	uint32_t *buckets;   /* [room] */
	uint32_t room, fresh, free; /* a power of 2; never used; a stack */
	uint32_t kept;
	size_t most;         /* bytes that it may have; 0: PAGES_BYTES */
	uint64_t forgotten;  /* pages, for want of memory */
};

/* Bytes that it has. */
size_t pages_bytes(const struct pages *p);
void pages_clear(struct pages *p);
void pages_free(struct pages *p);

/* An event about pages. Parent and scope become the blocks' own. */
struct pages_event {
	const uint64_t *names;
	const uint32_t *tokens; /* NULL: the event has none */
	uint64_t n;
	uint64_t parent;
	bool has_parent;
	bool full;           /* the engine lists the tiers of a page, */
	uint32_t tier;       /* and does not count its copies */
	struct kvr_scope scope;
	uint64_t blocks;     /* whole ones, put to the ends of the arrays */
};

/* Are blocks of so many tokens pages? */
bool pages_are(const struct pages *p, uint32_t size);
/* Both return false if there is no memory. */
bool pages_store(struct pages *p, uint32_t size, struct pages_event *e,
    struct pages_arrays *a);
bool pages_remove(struct pages *p, struct pages_event *e,
    struct pages_arrays *a);

#endif
