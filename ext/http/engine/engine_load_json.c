/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_load_json.c - reads TensorRT-LLM's iterations, see engine_load.h.
 *
 *   LIST --> ONE --+-- numActiveRequests, numQueuedRequests
 *                  +-- kvCacheStats --> CACHE
 *                                         usedNumBlocks, maxNumBlocks
 *
 * If the list is whole, the last iteration with a number of active requests
 * counts.
 */
#include "engine_load_in.h"

#include <string.h>

enum place { LIST = FOUND_TOP, ONE, CACHE, NUMBER };

static const struct finder_row rows[] = {
	{ LIST, NULL, ONE, 0 },
	{ ONE, "numActiveRequests", NUMBER, ITERATION_ACTIVE },
	{ ONE, "numQueuedRequests", NUMBER, ITERATION_QUEUED },
	{ ONE, "kvCacheStats", CACHE, 0 },
	{ CACHE, "usedNumBlocks", NUMBER, ITERATION_USED },
	{ CACHE, "maxNumBlocks", NUMBER, ITERATION_BLOCKS }
};

/* An element of the list begins or ends. */
static void
one_take(struct iterations *it, struct found *v)
{
	size_t i;

	if (v->kind == FOUND_END && it->at[ITERATION_ACTIVE] >= 0)
		memcpy(it->last, it->at, sizeof(it->last));
	if (v->kind == FOUND_END)
		return;
	it->elements++;
	if (v->kind == FOUND_LIST)
		v->place = FOUND_NOWHERE;
	for (i = 0; i < ITERATION_NUMBERS; i++)
		it->at[i] = -1;
}

static bool
value_take(void *context, struct found *v)
{
	struct iterations *it = context;

	switch ((enum place)v->place) {
	case LIST:
		return v->kind == FOUND_LIST || v->kind == FOUND_END;
	case ONE:
		one_take(it, v);
		break;
	case NUMBER:
		if (v->kind == FOUND_NUMBER)
			it->at[v->which] = load_number(v->text, v->text +
			    v->n);
		break;
	case CACHE:
		break;
	}
	return true;
}

void
iterations_begin(struct iterations *it)
{
	static const struct finder_table table = { rows, sizeof(rows) /
	    sizeof(rows[0]), value_take };
	size_t i;

	memset(it, 0, sizeof(*it));
	for (i = 0; i < ITERATION_NUMBERS; i++)
		it->last[i] = -1;
	finder_begin(&it->finder, &table, it);
}

void
iterations_data(struct iterations *it, const char *bytes, size_t n)
{
	finder_data(&it->finder, bytes, n);
}

bool
iterations_end(const struct iterations *it)
{
	return finder_end(&it->finder);
}
