/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_cache.h - the prefix cache of a modelled engine: its blocks, their
 * users and their order of eviction.
 *
 * A block has a name that stands for its whole prefix. Blocks in use are
 * pinned, once per sequence. All others are idle, and an idle one is evicted
 * when room is needed:
 *
 *   RELEASED   the least recently released. A sequence releases its tail
 *              first, so children are evicted before their parent.
 *
 *   LEAF       the least recently used block without children. A block is
 *              used by the arrival, the admission and the end of a request
 *              that finds it cached.
 *
 *   RANDOM     any idle block, with equal probability. A block whose prefix
 *              was evicted cannot be hit; it takes room until it is evicted
 *              or a request computes its prefix again.
 *
 * The first two use one list and evict its head. This is correct for LEAF too:
 * a use of a block is a use of its whole prefix, so no block was used later
 * than its parent, and a use moves blocks to the end of the list from the last
 * to the first. So children always precede their parent in the list, and the
 * head has no children.
 *
 *   used:  a0 a1 a2, then b0 b1, then a0 a1      b0's child is b1, ...
 *   list:  a2 | b1 b0 | a1 a0                    evicts a2, then b1, b0, a1
 *
 * RELEASED and LEAF differ only because of requests that wait. Admission pins
 * blocks and the end of a request releases them, but a request that arrives
 * and waits uses the blocks that it finds without pinning them.
 *
 * The cost is O(1) per block in every case.
 *
 * A cache that is watched notes which blocks come and go, in order, as an
 * engine publishes them by events.
 */
#ifndef KVROUTE_ENGINE_CACHE_H
#define KVROUTE_ENGINE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum engine_eviction {
	ENGINE_EVICT_RELEASED,
	ENGINE_EVICT_LEAF,
	ENGINE_EVICT_RANDOM
};

struct engine_block;
struct engine_cache;

/* `seed` is for RANDOM. NULL: out of memory. */
struct engine_cache *cache_new(enum engine_eviction eviction, uint64_t seed);
void cache_free(struct engine_cache *c);

bool cache_has(const struct engine_cache *c, uint64_t name);
/* How many leading ones of n names are cached. */
size_t cache_leading(const struct engine_cache *c, const uint64_t *names,
    size_t n);
/* How many of the n names of a path are pinned: always leading ones. */
size_t cache_pinned_leading(const struct engine_cache *c,
    const uint64_t *names, size_t n);
/* Records a use of the first n names of a path, which are all cached. */
void cache_use(struct engine_cache *c, const uint64_t *names, size_t n);

/* Creates the block if it is not cached. NULL: out of memory. */
struct engine_block *cache_pin(struct engine_cache *c, uint64_t name);
/* The last unpin releases the block, which is then idle. */
void cache_unpin(struct engine_cache *c, struct engine_block *b);
/* The same, but the last unpin removes the block: it was never computed. */
void cache_discard(struct engine_cache *c, struct engine_block *b);
/* Adds an idle block that nothing can hit. The name is for changes alone; 0:
   they are not noted. False: out of memory. */
bool cache_add_nameless(struct engine_cache *c, uint64_t name);

/* Evicts the next block; there must be an idle one. */
void cache_evict(struct engine_cache *c);
/* Evicts all idle blocks. */
void cache_reset(struct engine_cache *c);

/* Where blocks that are made come from. */
struct cache_origin {
	uint64_t request;
	uint64_t index;  /* of the block in it */
	uint64_t before; /* the block before it, if the index is above 0 */
};
/* The path of blocks made from now on; NULL: they have no path. */
void cache_made_of(struct engine_cache *c, const struct cache_origin *origin);

struct cache_change {
	uint64_t name;
	bool stored; /* else it was removed */
	bool beside; /* it was made without an origin */
	struct cache_origin origin; /* if stored, and not beside */
};
/* Notes changes from now on. */
void cache_watch(struct engine_cache *c);
/* Changes since the last cache_noted. False: some are missing: no memory. */
bool cache_changes(const struct engine_cache *c,
    const struct cache_change **changes, size_t *n);
/* After the first n, removals are put before the rest. */
void cache_removals_first(struct engine_cache *c, size_t n);
/* They have been read. */
void cache_noted(struct engine_cache *c);

struct engine_cache_counts {
	uint64_t pinned; /* blocks */
	uint64_t idle;
	uint64_t pins;
};
void cache_counts(const struct engine_cache *c,
    struct engine_cache_counts *out);
uint64_t cache_block_name(const struct engine_block *b);
/* Recounts everything; false: inconsistent. */
bool cache_check(const struct engine_cache *c);

#endif
