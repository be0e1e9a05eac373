/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_cache.h - the prefix cache of a modelled engine: which blocks are
 * there, who uses them, and which leaves next.
 *
 * A block has a name that stands for its whole prefix. Those that sequences
 * use are pinned, once for each; all others are idle, and when room is needed
 * one of these leaves:
 *
 *   RELEASED   the one released longest ago. A sequence releases its tail
 *              first, so a tail leaves before what it hangs on.
 *
 *   LEAF       of those on which no other block hangs, the one whose last use
 *              is longest ago. Uses of a block are the arrival, the admission
 *              and the end of a request that finds it there.
 *
 *   RANDOM     any of them, each as likely. One whose prefix has left cannot
 *              be hit; it takes room until it is drawn, or until a request
 *              computes its prefix again.
 *
 * The first two have one list, and its head leaves. For LEAF that needs a
 * reason: whoever uses a block uses its whole prefix, so no block was used
 * later than the one that it hangs on; and a use puts blocks at the end of the
 * list from the last to the first. So what hangs on a block always stands
 * before it, and the head has nothing that hangs on it.
 *
 *   used:  a0 a1 a2, then b0 b1, then a0 a1      b0's child is b1, ...
 *   list:  a2 | b1 b0 | a1 a0                    a2 leaves, then b1, b0, a1
 *
 * The two differ only by requests that wait: admission pins, and the end of a
 * request is when its blocks are released; but who arrives and waits has used
 * what it found and not pinned it.
 *
 * Every call costs O(1) for a block, whatever the order.
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

/* `seed` is of RANDOM. NULL: no memory. */
struct engine_cache *cache_new(enum engine_eviction eviction, uint64_t seed);
void cache_free(struct engine_cache *c);

/* Is it there? */
bool cache_has(const struct engine_cache *c, uint64_t name);
/* How many leading ones of n names are there. */
size_t cache_leading(const struct engine_cache *c, const uint64_t *names,
    size_t n);
/* How many of n names that are one path are pinned: always leading ones. */
size_t cache_pinned_leading(const struct engine_cache *c,
    const uint64_t *names, size_t n);
/* The first n names of a path, all there, were used. */
void cache_use(struct engine_cache *c, const uint64_t *names, size_t n);

/* Makes it if it is not there. NULL: no memory. */
struct engine_block *cache_pin(struct engine_cache *c, uint64_t name);
/* The last one to unpin a block releases it: it is idle from then on. */
void cache_unpin(struct engine_cache *c, struct engine_block *b);
/* A block that is idle and nothing can ever hit. False: no memory. */
bool cache_add_nameless(struct engine_cache *c);

/* The next one leaves; there must be an idle one. */
void cache_evict(struct engine_cache *c);
/* All idle ones leave. */
void cache_reset(struct engine_cache *c);

struct engine_cache_counts {
	uint64_t pinned; /* blocks */
	uint64_t idle;
	uint64_t pins;
};
void cache_counts(const struct engine_cache *c,
    struct engine_cache_counts *out);
uint64_t cache_block_name(const struct engine_block *b);
/* Counts everything again; false: something is not conserved. */
bool cache_check(const struct engine_cache *c);

#endif
