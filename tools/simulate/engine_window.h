/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_window.h - the blocks that a modelled engine keeps of layers
 * with windows.
 *
 * The layers of a model are in groups that take equal room for a token. Full
 * ones form one group; its blocks are those of engine_cache.h. Each group of
 * layers with a window of W tokens has blocks of its own beside them, with
 * names made from the names of the former. To resume behind p blocks an engine
 * needs p blocks of the full group, and of each other group the blocks that
 * hold their last W - 1 tokens: the tail of p.
 *
 *   FULL      there are no windows
 *   BOUNDARY  a tail is kept where a prompt ended, where it left what was
 *             cached of it, and at multiples of an interval, if there is one
 *   DENSE     all blocks are kept. Those that have left the window of a prompt
 *             are released during its prefill, and so before its other blocks.
 *   DUAL      as BOUNDARY, one group, in a memory of its own
 *
 * Except with DUAL all groups are in one memory and are evicted in one order.
 * The prompt's end is that before its last token, which is always computed, and
 * rounded down to the alignment. While a request runs, the tail at its prompt's
 * end stands for its window. The windows of outputs are not kept, except with
 * DENSE.
 */
#ifndef KVROUTE_ENGINE_WINDOW_H
#define KVROUTE_ENGINE_WINDOW_H

#include "engine_cache.h"

enum engine_window_mode {
	ENGINE_WINDOW_FULL,
	ENGINE_WINDOW_BOUNDARY,
	ENGINE_WINDOW_DENSE,
	ENGINE_WINDOW_DUAL,
	ENGINE_WINDOW_MODES
};
extern const char *const engine_window_names[ENGINE_WINDOW_MODES];

/* All zero: no windows. */
struct engine_window_idea {
	enum engine_window_mode mode;
	uint32_t groups;   /* with windows, for a full one; DUAL: 1 */
	uint64_t tokens;   /* W, above 0 */
	uint64_t align;    /* tokens; 0: a block */
	uint64_t interval; /* tokens; 0: none */
	uint64_t capacity; /* DUAL: tokens */
};

struct engine_window;

/* NULL: out of memory. `cache` is that of the full group. */
struct engine_window *window_new(const struct engine_window_idea *idea,
    uint32_t block_tokens, struct engine_cache *cache);
void window_free(struct engine_window *w);

/* Finds where to resume; call window_step for each cached block in order. */
struct window_walk {
	size_t n, tail;
	size_t best; /* blocks */
};
void window_step(const struct engine_window *w, struct window_walk *walk,
    uint64_t name);

/* A prompt's path. */
struct window_path {
	const uint64_t *names; /* [n] */
	size_t n;
	size_t most;   /* blocks before its last token */
	size_t cached; /* of the full group */
	size_t hit;    /* where it resumes */
};
/* The pins of a running request; all zero at first. */
struct window_pins {
	struct window_pin *pins;
	size_t n, room;
};
/* Blocks that it takes of the engine's memory at most, while it runs. */
uint64_t window_need(const struct engine_window *w, size_t n);
/* False: out of memory. Pinned blocks must still be released. */
bool window_admit(struct engine_window *w, const struct window_path *path,
    struct window_pins *pins);
/* `computed` blocks of the path exist. Frees the pins. */
void window_release(struct engine_window *w, struct window_pins *pins,
    size_t computed);
/* Caches a block of an output; name: NULL if it is not known. */
bool window_output(struct engine_window *w, const uint64_t *name);
/* Evicts all that is idle in the memory of its own. */
void window_reset(struct engine_window *w);
/* Pins in the cache of the full group. */
size_t window_held(const struct engine_window *w,
    const struct window_pins *pins);
bool window_check(const struct engine_window *w);

#endif
