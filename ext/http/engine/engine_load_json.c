/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_load_json.c - TensorRT-LLM's list of iterations, see engine_load.h.
 *
 *   LIST --> ONE --+-- numActiveRequests, numQueuedRequests
 *                  +-- kvCacheStats --> CACHE
 *                                         usedNumBlocks, maxNumBlocks
 *
 * The last iteration that says how many requests are active counts, if the list
 * is whole. What YAJL keeps of a token cut in two is at most all of the text,
 * which its reader bounds.
 */
#include "engine_load_in.h"

#include <string.h>

enum { DEPTH_MAX = 100 /* of nesting; YAJL takes a byte a level */ };

static const struct {
	const char *text;
	enum iterations_place in, is;
	enum iteration_number number;
} names[] = {
	{ "numActiveRequests", ITERATIONS_ONE, ITERATIONS_NUMBER,
	    ITERATION_ACTIVE },
	{ "numQueuedRequests", ITERATIONS_ONE, ITERATIONS_NUMBER,
	    ITERATION_QUEUED },
	{ "kvCacheStats", ITERATIONS_ONE, ITERATIONS_CACHE, 0 },
	{ "usedNumBlocks", ITERATIONS_CACHE, ITERATIONS_NUMBER,
	    ITERATION_USED },
	{ "maxNumBlocks", ITERATIONS_CACHE, ITERATIONS_NUMBER,
	    ITERATION_BLOCKS }
};

/* ----------------------------------------------------------- callbacks --- */

static enum iterations_place
place_here(const struct iterations *it)
{
	return it->depth > 0 && it->depth <= ITERATIONS_PLACES ?
	    it->places[it->depth - 1] : ITERATIONS_NOWHERE;
}

static int
on_key(void *context, const unsigned char *bytes, size_t n)
{
	struct iterations *it = context;
	size_t i;

	it->next = ITERATIONS_NOWHERE;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].in == place_here(it) &&
		    n == strlen(names[i].text) &&
		    memcmp(bytes, names[i].text, n) == 0) {
			it->next = names[i].is;
			it->number = names[i].number;
		}
	return 1;
}

/* A value that is not read; there is a list around all. */
static int
on_other(struct iterations *it)
{
	it->elements += place_here(it) == ITERATIONS_LIST;
	return it->depth > 0;
}

static int
on_null(void *context)
{
	return on_other(context);
}

static int
on_boolean(void *context, int value)
{
	(void)value;
	return on_other(context);
}

static int
on_number(void *context, const char *digits, size_t n)
{
	struct iterations *it = context;

	if (it->next == ITERATIONS_NUMBER)
		it->at[it->number] = load_number(digits, digits + n);
	it->next = ITERATIONS_NOWHERE;
	return on_other(it);
}

static int
on_string(void *context, const unsigned char *bytes, size_t n)
{
	(void)bytes;
	(void)n;
	return on_other(context);
}

static int
place_enter(struct iterations *it, enum iterations_place place)
{
	if (it->depth == DEPTH_MAX)
		return 0;
	if (it->depth < ITERATIONS_PLACES)
		it->places[it->depth] = place;
	it->depth++;
	it->next = ITERATIONS_NOWHERE;
	return 1;
}

static int
on_map(void *context)
{
	struct iterations *it = context;
	size_t i;

	if (place_here(it) == ITERATIONS_LIST) {
		it->elements++;
		for (i = 0; i < ITERATION_NUMBERS; i++)
			it->at[i] = -1;
		return place_enter(it, ITERATIONS_ONE);
	}
	return it->depth > 0 && place_enter(it, it->next == ITERATIONS_CACHE ?
	    ITERATIONS_CACHE : ITERATIONS_NOWHERE);
}

static int
on_list(void *context)
{
	struct iterations *it = context;

	it->elements += place_here(it) == ITERATIONS_LIST;
	return place_enter(it, it->depth == 0 ? ITERATIONS_LIST :
	    ITERATIONS_NOWHERE);
}

static int
on_end(void *context)
{
	struct iterations *it = context;

	if (place_here(it) == ITERATIONS_ONE && it->at[ITERATION_ACTIVE] >= 0)
		memcpy(it->last, it->at, sizeof(it->last));
	it->depth--;
	it->next = ITERATIONS_NOWHERE;
	return 1;
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null, .yajl_boolean = on_boolean,
	.yajl_number = on_number, .yajl_string = on_string,
	.yajl_start_map = on_map, .yajl_map_key = on_key,
	.yajl_end_map = on_end, .yajl_start_array = on_list,
	.yajl_end_array = on_end
};

/* ------------------------------------------------------------- feeding --- */

void
iterations_begin(struct iterations *it)
{
	size_t i;

	memset(it, 0, offsetof(struct iterations, pool));
	pool_init(&it->pool);
	for (i = 0; i < ITERATION_NUMBERS; i++)
		it->last[i] = -1;
}

void
iterations_free(struct iterations *it)
{
	pool_end(&it->pool);
}

/* Returns from YAJL, or by a jump of the pool. NULL: that was all. */
static void
piece_parse(struct iterations *it, const char *bytes, size_t n)
{
	yajl_status status;

	if (it->dead)
		return;
	if (setjmp(it->pool.full) != 0) {
		it->dead = true;
		return;
	}
	if (it->yajl == NULL) {
		it->yajl = yajl_alloc(&callbacks, &it->pool.calls, it);
		yajl_config(it->yajl, yajl_dont_validate_strings, 1);
	}
	status = bytes == NULL ? yajl_complete_parse(it->yajl) :
	    yajl_parse(it->yajl, (const unsigned char *)bytes, n);
	it->dead = status != yajl_status_ok;
}

void
iterations_data(struct iterations *it, const char *bytes, size_t n)
{
	piece_parse(it, bytes, n);
}

bool
iterations_end(struct iterations *it)
{
	piece_parse(it, NULL, 0);
	return !it->dead;
}
