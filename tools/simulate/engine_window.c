/* SPDX-License-Identifier: BSD-2-Clause */
/* engine_window.c - see engine_window.h. */
#include "engine_window.h"

#include <stdlib.h>

#define GROUP_STEP UINT64_C(0x9E3779B97F4A7C15)

const char *const engine_window_names[ENGINE_WINDOW_MODES] = {
	[ENGINE_WINDOW_FULL] = "full",
	[ENGINE_WINDOW_BOUNDARY] = "boundary",
	[ENGINE_WINDOW_DENSE] = "dense",
	[ENGINE_WINDOW_DUAL] = "dual"
};

struct window_pin {
	struct engine_block *block;
	size_t at; /* of the path */
};

struct engine_window {
	struct engine_window_idea idea;
	struct engine_cache *cache; /* where tails are */
	bool own;        /* that is not the engine's */
	uint64_t blocks; /* then: of it */
	size_t tail;     /* these three: blocks */
	size_t align;
	size_t interval;
};

static size_t
in_blocks(uint64_t tokens, uint32_t block)
{
	return (size_t)(tokens / block + (tokens % block > 0));
}

struct engine_window *
window_new(const struct engine_window_idea *idea, uint32_t block_tokens,
    struct engine_cache *cache)
{
	struct engine_window *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->idea = *idea;
	w->own = idea->mode == ENGINE_WINDOW_DUAL;
	w->idea.groups = w->own ? 1 : idea->groups;
	w->cache = w->own ? cache_new(ENGINE_EVICT_RELEASED, 0) : cache;
	w->blocks = idea->capacity / block_tokens;
	w->tail = in_blocks(idea->tokens - 1, block_tokens);
	w->align = in_blocks(idea->align, block_tokens);
	w->align += w->align == 0;
	w->interval = in_blocks(idea->interval, block_tokens);
	if (w->cache == NULL) {
		free(w);
		return NULL;
	}
	return w;
}

void
window_free(struct engine_window *w)
{
	if (w != NULL && w->own)
		cache_free(w->cache);
	free(w);
}

/* The name of a group's block beside one of the full group. */
static uint64_t
blocks_beside(uint64_t name, uint32_t group)
{
	return name + (group + 1) * GROUP_STEP;
}

/* ------------------------------------------------------------- resuming --- */

void
window_step(const struct engine_window *w, struct window_walk *walk,
    uint64_t name)
{
	uint32_t g = 0;

	walk->n++;
	if (w == NULL) {
		walk->best = walk->n;
		return;
	}
	while (g < w->idea.groups &&
	    cache_has(w->cache, blocks_beside(name, g)))
		g++;
	walk->tail = g == w->idea.groups ? walk->tail + 1 : 0;
	if (walk->n % w->align == 0 &&
	    (walk->tail >= w->tail || walk->tail == walk->n))
		walk->best = walk->n;
}

/* -------------------------------------------------------------- keeping --- */

static void
fit_memory(struct engine_window *w)
{
	struct engine_cache_counts c;

	for (cache_counts(w->cache, &c); w->own && c.idle > 0 &&
	    c.idle + c.pinned > w->blocks; cache_counts(w->cache, &c))
		cache_evict(w->cache);
}

static bool
pin_blocks(struct engine_window *w, uint64_t name, size_t at,
    struct window_pins *pins)
{
	size_t want = pins->room == 0 ? 16 : pins->room * 2;
	struct window_pin *p;

	if (pins->n == pins->room) {
		p = realloc(pins->pins, want * sizeof(*p));
		if (p == NULL)
			return false;
		pins->pins = p;
		pins->room = want;
	}
	p = &pins->pins[pins->n];
	*p = (struct window_pin){ cache_pin(w->cache, name), at };
	pins->n += p->block != NULL;
	return p->block != NULL;
}

/* Computes a block of each group, and keeps it without being in use. */
static bool
touch_blocks(struct engine_window *w, uint64_t name)
{
	struct engine_block *b;
	uint32_t g;

	for (g = 0; g < w->idea.groups; g++) {
		b = cache_pin(w->cache, blocks_beside(name, g));
		if (b == NULL)
			return false;
		cache_unpin(w->cache, b);
	}
	return true;
}

/* Blocks [from, to) of each group. Pins NULL: they are not used. */
static bool
keep_blocks(struct engine_window *w, const struct window_path *path,
    size_t from, size_t to, struct window_pins *pins)
{
	uint32_t g;
	size_t i;

	for (i = from; i < to; i++) {
		if (pins == NULL) {
			if (!touch_blocks(w, path->names[i]))
				return false;
			continue;
		}
		for (g = 0; g < w->idea.groups; g++)
			if (!pin_blocks(w, blocks_beside(path->names[i], g), i,
			    pins))
				return false;
	}
	return true;
}

/* The tail of the first `end` blocks, rounded down to the alignment. */
static bool
keep_tail(struct engine_window *w, const struct window_path *path, size_t end,
    struct window_pins *pins)
{
	end -= end % w->align;
	return keep_blocks(w, path, end > w->tail ? end - w->tail : 0, end,
	    pins);
}

static bool
admit_dense(struct engine_window *w, const struct window_path *path,
    struct window_pins *pins)
{
	size_t last = path->n > w->tail ? path->n - w->tail : 0;

	if (last < path->hit)
		last = path->hit;
	return keep_tail(w, path, path->hit, pins) &&
	    keep_blocks(w, path, path->hit, last, NULL) &&
	    keep_blocks(w, path, last, path->n, pins);
}

static bool
admit_tails(struct engine_window *w, const struct window_path *path,
    struct window_pins *pins)
{
	size_t at = w->interval == 0 ? path->n : path->hit + w->interval -
	    path->hit % w->interval;
	bool kept = keep_tail(w, path, path->hit, pins);

	for (; kept && at < path->most; at += w->interval)
		kept = keep_tail(w, path, at, NULL);
	if (kept && path->cached > path->hit)
		kept = keep_tail(w, path, path->cached, pins);
	return kept && keep_tail(w, path, path->most, pins);
}

bool
window_admit(struct engine_window *w, const struct window_path *path,
    struct window_pins *pins)
{
	bool kept;

	if (w == NULL)
		return true;
	kept = w->idea.mode == ENGINE_WINDOW_DENSE ?
	    admit_dense(w, path, pins) : admit_tails(w, path, pins);
	fit_memory(w);
	return kept;
}

void
window_release(struct engine_window *w, struct window_pins *pins,
    size_t computed)
{
	size_t i;

	for (i = pins->n; i-- > 0;)
		if (pins->pins[i].at < computed)
			cache_unpin(w->cache, pins->pins[i].block);
		else
			cache_discard(w->cache, pins->pins[i].block);
	free(pins->pins);
	*pins = (struct window_pins){ NULL, 0, 0 };
	if (w != NULL)
		fit_memory(w);
}

bool
window_output(struct engine_window *w, const uint64_t *name)
{
	uint32_t g;

	if (w == NULL || w->idea.mode != ENGINE_WINDOW_DENSE)
		return true;
	if (name != NULL)
		return touch_blocks(w, *name);
	for (g = 0; g < w->idea.groups; g++)
		if (!cache_add_nameless(w->cache, 0))
			return false;
	return true;
}

void
window_reset(struct engine_window *w)
{
	if (w != NULL && w->own)
		cache_reset(w->cache);
}

/* ---------------------------------------------------------------- state --- */

uint64_t
window_need(const struct engine_window *w, size_t n)
{
	size_t tails = 3 * (w == NULL ? 0 : w->tail);

	if (w == NULL || w->own)
		return 0;
	return (uint64_t)w->idea.groups * (tails < 3 * n ? tails : 3 * n);
}

size_t
window_held(const struct engine_window *w, const struct window_pins *pins)
{
	return w == NULL || w->own ? 0 : pins->n;
}

bool
window_check(const struct engine_window *w)
{
	return w == NULL || !w->own || cache_check(w->cache);
}
