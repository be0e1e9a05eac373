/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_keys.h - the known keys, by place, and the kinds of their values.
 *
 * A room is a kind of open object or list, and a value is the kind of the next
 * value in it; body_shape.c combines them. A key may be known at some endpoints
 * only: `input` is the conversation in Responses and the arguments of a call in
 * Messages.
 */
#ifndef KVROUTE_BODY_KEYS_H
#define KVROUTE_BODY_KEYS_H

#include <stdbool.h>
#include <stddef.h>

#include "endpoint.h"

enum room {
	ROOM_OUTSIDE = 0,
	ROOM_SKIP,
	ROOM_TOP,
	ROOM_MESSAGE, /* or an item of Responses */
	ROOM_PART,
	ROOM_MEDIA,
	ROOM_CALL,
	ROOM_FUNCTION, /* in a call */
	ROOM_OPTIONS,
	ROOM_METADATA,
	ROOM_LIST,    /* all elements have the same kind of value */
	ROOM_WHOLE_MAP,   /* written with all of its members */
	ROOM_WHOLE_LIST,
	ROOM_DIGEST_MAP,  /* a digest stands for it */
	ROOM_DIGEST_LIST
};

enum value {
	IS_SKIPPED = 0,
	IS_BODY,
	IS_MESSAGES,
	IS_MESSAGE,
	IS_SYSTEM,
	IS_CONTENT,
	IS_PART,
	IS_TEXT,
	IS_MEDIA,
	IS_CALLS,
	IS_CALL,
	IS_FUNCTION,
	IS_PROMPTS,
	IS_PROMPT, /* one of a list */
	IS_TOKEN,
	IS_AHEAD,
	IS_WHOLE,  /* in a value that is written as a whole */
	IS_DIGEST, /* in a value for which a digest stands */
	IS_OTHER,  /* a member that is not in the table */
	IS_NAME,
	IS_ID,
	IS_METADATA,
	IS_TRUE,   /* a flag: is it true? */
	IS_MANY,   /* a flag: is it a whole number above 1? */
	IS_FALSE,  /* a flag: is it false? */
	IS_THERE,  /* a flag: is it there, and not null? */
	IS_OPTIONS,
	IS_TYPE,   /* the type of an item */
	IS_MORE    /* more text of a completion */
};

struct key {
	unsigned char length;
	unsigned char value; /* enum value */
	unsigned char mark;  /* enum mark; or enum name, flag, ahead */
	unsigned char in;    /* a set of endpoints */
	unsigned char rank;  /* its place in an ordered object */
	const char *name;
};

/* Finds a key of a room at an endpoint, or returns NULL. */
const struct key *body_key(enum room room, enum endpoint endpoint,
    const void *name, size_t n);

/* Are the keys of this room written in the order of their ranks? */
static inline bool
body_is_ordered(enum room room)
{
	return room >= ROOM_MESSAGE && room <= ROOM_FUNCTION;
}

#endif
