/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_cache.c - see engine_cache.h.
 *
 * A named block is in the table. An unused block is idle and also on the list
 * or, for random eviction, in the array. An idle block of an output has no
 * name and is only there.
 *
 *   pinned   table, pins > 0
 *   idle     table or nameless; list or array, pins = 0
 *
 * The array has room for every block, so a release cannot fail.
 */
#include "engine_cache.h"

#include "rng.h"

#include <stdlib.h>
#include <string.h>

/* Names are hashes already; their low bits suffice. */
static unsigned
low_bits(const void *name)
{
	uint64_t bits;

	memcpy(&bits, name, sizeof(bits));
	return (unsigned)(bits & UINT32_MAX);
}

#define HASH_FUNCTION(key, length, hash) ((hash) = low_bits(key))
#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->lost = true)
#include <uthash.h>
#include <utlist.h>

struct engine_block {
	uint64_t name;
	uint32_t pins;
	bool nameless;
	bool lost;    /* not in the table: out of memory */
	bool beside;  /* made without an origin */
	uint64_t place; /* in the array */
	struct engine_block *prev, *next;
	UT_hash_handle hh;
};

struct engine_cache {
	enum engine_eviction eviction;
	struct rng rng;
	struct engine_cache_counts counts;
	struct engine_block *table;
	struct engine_block *list;   /* idle; the head is evicted first */
	struct engine_block **array; /* [counts.idle], for RANDOM */
	size_t capacity;             /* of the array; at least all blocks */
	bool watched;
	bool unnoted;                /* a change: out of memory */
	struct cache_change *changes;
	size_t n_changes, changes_room;
	bool has_origin;
	struct cache_origin origin; /* of blocks made now */
};

struct engine_cache *
cache_new(enum engine_eviction eviction, uint64_t seed)
{
	struct engine_cache *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return NULL;
	c->eviction = eviction;
	c->rng.state = seed;
	return c;
}

void
cache_free(struct engine_cache *c)
{
	struct engine_block *b, *next;

	if (c == NULL)
		return;
	cache_reset(c);
	HASH_ITER(hh, c->table, b, next) {
		HASH_DEL(c->table, b);
		free(b);
	}
	free(c->array);
	free(c->changes);
	free(c);
}

/* -------------------------------------------------------------- changes --- */

void
cache_watch(struct engine_cache *c)
{
	c->watched = true;
}

bool
cache_changes(const struct engine_cache *c,
    const struct cache_change **changes, size_t *n)
{
	*changes = c->changes;
	*n = c->n_changes;
	return !c->unnoted;
}

void
cache_removals_first(struct engine_cache *c, size_t n)
{
	struct cache_change *p = c->changes, removal;
	size_t i;

	for (i = n; i < c->n_changes; i++) {
		if (p[i].stored)
			continue;
		removal = p[i];
		memmove(&p[n + 1], &p[n], (i - n) * sizeof(*p));
		p[n++] = removal;
	}
}

void
cache_noted(struct engine_cache *c)
{
	c->n_changes = 0;
}

void
cache_made_of(struct engine_cache *c, const struct cache_origin *origin)
{
	c->has_origin = origin != NULL;
	if (origin != NULL)
		c->origin = *origin;
}

static void
note_change(struct engine_cache *c, const struct engine_block *b, bool stored)
{
	size_t want = c->changes_room == 0 ? 64 : c->changes_room * 2;
	struct cache_change *p;

	if (!c->watched)
		return;
	if (c->n_changes == c->changes_room) {
		p = realloc(c->changes, want * sizeof(*p));
		if (p == NULL) {
			c->unnoted = true;
			return;
		}
		c->changes = p;
		c->changes_room = want;
	}
	c->changes[c->n_changes++] = (struct cache_change){ .name = b->name,
	    .stored = stored, .beside = b->beside, .origin = c->origin };
}

/* ---------------------------------------------------------- idle blocks --- */

static void
idle_add(struct engine_cache *c, struct engine_block *b)
{
	if (c->eviction == ENGINE_EVICT_RANDOM) {
		b->place = c->counts.idle;
		c->array[b->place] = b;
	} else {
		DL_APPEND(c->list, b);
	}
	c->counts.idle++;
}

static void
idle_remove(struct engine_cache *c, struct engine_block *b)
{
	c->counts.idle--;
	if (c->eviction == ENGINE_EVICT_RANDOM) {
		c->array[b->place] = c->array[c->counts.idle];
		c->array[b->place]->place = b->place;
	} else {
		DL_DELETE(c->list, b);
	}
}

static void
drop_block(struct engine_cache *c, struct engine_block *b)
{
	idle_remove(c, b);
	if (!b->nameless)
		HASH_DEL(c->table, b);
	if (b->name != 0 || !b->nameless)
		note_change(c, b, false);
	free(b);
}

void
cache_evict(struct engine_cache *c)
{
	if (c->eviction == ENGINE_EVICT_RANDOM)
		drop_block(c, c->array[rng_between(&c->rng, 0,
		    c->counts.idle - 1)]);
	else
		drop_block(c, c->list);
}

void
cache_reset(struct engine_cache *c)
{
	while (c->counts.idle > 0)
		drop_block(c, c->eviction == ENGINE_EVICT_RANDOM ?
		    c->array[c->counts.idle - 1] : c->list);
}

/* --------------------------------------------------------------- blocks --- */

static struct engine_block *
find_block(const struct engine_cache *c, uint64_t name)
{
	struct engine_block *b;

	HASH_FIND(hh, c->table, &name, sizeof(name), b);
	return b;
}

static bool
array_room(struct engine_cache *c)
{
	size_t want = c->capacity == 0 ? 64 : c->capacity * 2;
	struct engine_block **p;

	if (c->eviction != ENGINE_EVICT_RANDOM ||
	    c->counts.pinned + c->counts.idle < c->capacity)
		return true;
	p = realloc(c->array, want * sizeof(struct engine_block *));
	if (p == NULL)
		return false;
	c->array = p;
	c->capacity = want;
	return true;
}

/* Neither pinned nor idle yet. NULL: out of memory. */
static struct engine_block *
block_new(struct engine_cache *c, bool nameless, uint64_t name)
{
	struct engine_block *b = array_room(c) ? calloc(1, sizeof(*b)) : NULL;

	if (b == NULL)
		return NULL;
	b->nameless = nameless;
	b->name = name;
	b->beside = !c->has_origin;
	if (nameless) {
		if (name != 0)
			note_change(c, b, true);
		return b;
	}
	HASH_ADD(hh, c->table, name, sizeof(b->name), b);
	if (b->lost) {
		free(b);
		return NULL;
	}
	note_change(c, b, true);
	return b;
}

bool
cache_add_nameless(struct engine_cache *c, uint64_t name)
{
	struct engine_block *b = block_new(c, true, name);

	if (b != NULL)
		idle_add(c, b);
	return b != NULL;
}

struct engine_block *
cache_pin(struct engine_cache *c, uint64_t name)
{
	struct engine_block *b = find_block(c, name);

	if (b == NULL)
		b = block_new(c, false, name);
	else if (b->pins == 0)
		idle_remove(c, b);
	if (b == NULL)
		return NULL;
	c->counts.pins++;
	c->counts.pinned += b->pins == 0;
	b->pins++;
	return b;
}

void
cache_unpin(struct engine_cache *c, struct engine_block *b)
{
	c->counts.pins--;
	if (--b->pins > 0)
		return;
	c->counts.pinned--;
	idle_add(c, b);
}

void
cache_discard(struct engine_cache *c, struct engine_block *b)
{
	bool last = b->pins == 1;

	cache_unpin(c, b);
	if (last)
		drop_block(c, b);
}

/* ---------------------------------------------------------------- paths --- */

bool
cache_has(const struct engine_cache *c, uint64_t name)
{
	return find_block(c, name) != NULL;
}

size_t
cache_leading(const struct engine_cache *c, const uint64_t *names, size_t n)
{
	size_t i;

	for (i = 0; i < n && find_block(c, names[i]) != NULL; i++)
		;
	return i;
}

/* Pinning a block pins its prefix, so a binary search is correct. */
size_t
cache_pinned_leading(const struct engine_cache *c, const uint64_t *names,
    size_t n)
{
	size_t low = 0, high = n, middle;
	const struct engine_block *b;

	while (low < high) {
		middle = low + (high - low) / 2;
		b = find_block(c, names[middle]);
		if (b != NULL && b->pins > 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void
cache_use(struct engine_cache *c, const uint64_t *names, size_t n)
{
	struct engine_block *b;

	if (c->eviction != ENGINE_EVICT_LEAF)
		return;
	while (n-- > 0) {
		b = find_block(c, names[n]);
		if (b->pins > 0)
			continue;
		idle_remove(c, b);
		idle_add(c, b);
	}
}

/* --------------------------------------------------------------- state --- */

void
cache_counts(const struct engine_cache *c, struct engine_cache_counts *out)
{
	*out = c->counts;
}

uint64_t
cache_block_name(const struct engine_block *b)
{
	return b->name;
}

static bool
idle_right(const struct engine_cache *c, const struct engine_block *b)
{
	return b->pins == 0 && (b->nameless || find_block(c, b->name) == b);
}

/* Counts the list or array; false: it has a block that is not idle. */
static bool
idle_count(const struct engine_cache *c, uint64_t *n, uint64_t *named)
{
	const struct engine_block *b;
	bool right = true;

	*n = *named = 0;
	DL_FOREACH(c->list, b) {
		right = right && idle_right(c, b);
		*named += !b->nameless;
		++*n;
	}
	if (c->eviction != ENGINE_EVICT_RANDOM)
		return right;
	for (; *n < c->counts.idle; ++*n) {
		b = c->array[*n];
		right = right && b->place == *n && idle_right(c, b);
		*named += !b->nameless;
	}
	return right;
}

bool
cache_check(const struct engine_cache *c)
{
	uint64_t pinned = 0, pins = 0, idle, named;
	const struct engine_block *b;

	for (b = c->table; b != NULL; b = b->hh.next) {
		pinned += b->pins > 0;
		pins += b->pins;
	}
	return idle_count(c, &idle, &named) && idle == c->counts.idle &&
	    pinned == c->counts.pinned && pins == c->counts.pins &&
	    pinned + named == HASH_COUNT(c->table);
}
