/* SPDX-License-Identifier: BSD-2-Clause */
/* kept.c - see kept.h. A table of uthash is in the order of insertion. */
#include "kept.h"

#include "rng.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) ((element)->lost = true)
#include <uthash.h>

struct entry {
	struct kept_thing thing;
	bool lost; /* not in the table: no memory */
	UT_hash_handle hh;
};

struct kept {
	struct entry *tables[KEPT_KINDS];
	size_t most;
	struct rng rng;
};

static void
entry_free(struct entry *e)
{
	json_object_put(e->thing.object);
	json_object_put(e->thing.items);
	free(e);
}

static void
leave(struct kept *k, enum kept_kind kind, struct entry *e)
{
	HASH_DEL(k->tables[kind], e);
	entry_free(e);
}

struct kept *
kept_new(size_t most, uint64_t seed)
{
	struct kept *k = calloc(1, sizeof(*k));

	if (k != NULL) {
		k->most = most;
		k->rng.state = seed;
	}
	return k;
}

void
kept_empty(struct kept *k)
{
	int kind;

	for (kind = 0; kind < KEPT_KINDS; kind++)
		while (k->tables[kind] != NULL)
			leave(k, (enum kept_kind)kind, k->tables[kind]);
}

void
kept_free(struct kept *k)
{
	if (k != NULL)
		kept_empty(k);
	free(k);
}

void
kept_id(struct kept *k, enum kept_kind kind, char id[KEPT_ID_SIZE])
{
	uint64_t high = rng_next(&k->rng), low = rng_next(&k->rng);

	snprintf(id, KEPT_ID_SIZE, "%s_%016" PRIx64 "%08" PRIx32,
	    kind == KEPT_RESPONSE ? "resp" : "conv", high, (uint32_t)low);
}

static struct entry *
entry_of(const struct kept *k, enum kept_kind kind, const char *id)
{
	struct entry *e = NULL;

	if (k != NULL)
		HASH_FIND_STR(k->tables[kind], id, e);
	return e;
}

bool
kept_add(struct kept *k, enum kept_kind kind, const struct kept_thing *thing)
{
	struct entry *e;

	if (k->most == 0)
		return true;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return false;
	e->thing = *thing;
	while (HASH_COUNT(k->tables[kind]) >= k->most)
		leave(k, kind, k->tables[kind]);
	HASH_ADD_STR(k->tables[kind], thing.id, e);
	if (e->lost) {
		free(e);
		return false;
	}
	json_object_get(thing->object);
	json_object_get(thing->items);
	return true;
}

const struct kept_thing *
kept_find(const struct kept *k, enum kept_kind kind, const char *id)
{
	const struct entry *e = entry_of(k, kind, id);

	return e == NULL ? NULL : &e->thing;
}

bool
kept_extend(struct kept *k, const char *id, struct json_object *items,
    size_t first)
{
	struct entry *e = entry_of(k, KEPT_CONVERSATION, id);

	return e == NULL || kept_copy(e->thing.items, items, first);
}

void
kept_drop(struct kept *k, enum kept_kind kind, const char *id)
{
	struct entry *e = entry_of(k, kind, id);

	if (e != NULL)
		leave(k, kind, e);
}

bool
kept_copy(struct json_object *to, struct json_object *from, size_t first)
{
	size_t n = json_object_array_length(from), i;
	struct json_object *item;

	for (i = first; i < n; i++) {
		item = json_object_get(json_object_array_get_idx(from, i));
		if (json_object_array_add(to, item) != 0) {
			json_object_put(item);
			return false;
		}
	}
	return true;
}

/* Names only valid letters of the id, so that the message is valid JSON. */
void
kept_missing(enum kept_kind kind, const char *id, char *out, size_t size)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz"
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	snprintf(out, size, "%s with id '%.*s' not found.",
	    kind == KEPT_RESPONSE ? "Response" : "Conversation",
	    n < 64 ? (int)n : 64, id);
}
