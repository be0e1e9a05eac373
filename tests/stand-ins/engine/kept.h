/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kept.h - objects of /v1/responses that an engine keeps in memory, by id.
 *
 *                 object            items
 *   response      as GET has it     i i i | o o   the input it was made from,
 *                                                 then its output
 *   conversation  as GET has it     i o i i o     of all turns
 *
 * The items come before the input of the next turn. They are counted by JSON-C
 * and shared between the turns of a chain; only the lists are not.
 *
 * There are at most so many things of each kind: the one that was made first
 * leaves. Ids look alike in all engines, and none comes twice.
 */
#ifndef KVROUTE_KEPT_H
#define KVROUTE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;
struct kept;

enum kept_kind { KEPT_RESPONSE, KEPT_CONVERSATION, KEPT_KINDS };
enum { KEPT_ID_SIZE = 32 };

struct kept_thing {
	char id[KEPT_ID_SIZE];      /* resp_..., conv_... */
	struct json_object *object;
	struct json_object *items;  /* a list */
	size_t n_input;             /* a response's; of them, at the front */
};

/* `most` of each kind; 0: nothing is kept. NULL: no memory. */
struct kept *kept_new(size_t most, uint64_t seed);
void kept_free(struct kept *k);
/* Forgets all, but not which ids it gave. */
void kept_empty(struct kept *k);
/* A new id. */
void kept_id(struct kept *k, enum kept_kind kind, char id[KEPT_ID_SIZE]);
/*
 * Keeps a thing with an id of its own; takes references to object and items.
 * False: no memory, and nothing has changed but evictions.
 */
bool kept_add(struct kept *k, enum kept_kind kind,
    const struct kept_thing *thing);
/* Valid until the next change. NULL: unknown; also if k is NULL. */
const struct kept_thing *kept_find(const struct kept *k, enum kept_kind kind,
    const char *id);
/* Adds items, from number `first` on, to a conversation if it is there. */
bool kept_extend(struct kept *k, const char *id, struct json_object *items,
    size_t first);
void kept_drop(struct kept *k, enum kept_kind kind, const char *id);

/* Adds items of one list to another. False: no memory; some may be there. */
bool kept_copy(struct json_object *to, struct json_object *from, size_t first);
/* The message of an error; the id is a client's. */
void kept_missing(enum kept_kind kind, const char *id, char *out, size_t size);

#endif
