/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_reader.h - the grammar of JSON, over a text that comes in pieces.
 *
 *   state        {  "a"  :  1  ,  "b"  :  [  2  ,  3  ]  }
 *                |  |    |  |  |  |    |  |  |  |  |  |  OVER
 *     START -----+  |    |  |  |  |    |  |  |  |  |  MAP_NEXT
 *     FIRST_KEY ----+    |  |  |  |    |  |  |  |  LIST_NEXT
 *     COLON -------------+  |  |  |    |  |  |  ELEMENT
 *     MAP_VALUE ------------+  |  |    |  |  LIST_NEXT
 *     MAP_NEXT ----------------+  |    |  FIRST_ELEMENT
 *     NEXT_KEY -------------------+    MAP_VALUE
 *
 * It reports each key, value, begin and end, in their order. A string in one
 * piece and without escapes is given where it lies; any other is gathered in
 * `text`, which is used for cut numbers too.
 *
 * A piece may end anywhere. Between pieces `token` says what was cut:
 *
 *   ... "aa\u00 | e4b" ...     text: aa    rest: \u00
 *   ... 12.     | 5e7, ...     text: 12.   number: POINT
 *   ... tr      | ue, ...      word: ue
 *
 * No byte is read twice, except those of `rest`, of which there are few. It
 * accepts what YAJL accepts, and reports the same to the byte: see
 * tests/http/body_yajl.h.
 *
 * A raw reader allocates nothing. Its strings are given as they are written, up
 * to an escape and at most `most` bytes; `cut` says that there is more of it.
 * What they consist of is not checked. A number longer than JSON_NUMBER_MOST
 * breaks the text.
 *
 *   "Once upon a time \u00e4 ..."    text: Once upon a time    cut
 *
 * A bounded reader allocates nothing either, but reads and checks all that the
 * first kind does. A string for which there is no room is `cut`, and is given
 * in part.
 */
#ifndef KVROUTE_JSON_READER_H
#define KVROUTE_JSON_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "body_string.h"
#include "text_hold.h"

enum {
	JSON_DEPTH = 128,     /* objects and lists within each other */
	JSON_BOUND = 512,     /* bytes that a bounded reader needs */
	JSON_NUMBER_MOST = 40 /* of a raw reader */
};

enum json_stop { JSON_LIVES = 0, JSON_BROKEN, JSON_NO_MEMORY };

enum json_kind {
	JSON_NULL = 0, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_MAP,
	JSON_LIST
};

/* They return false if the rest is not wanted: then the text is broken. */
struct json_calls {
	bool (*key)(void *context, const unsigned char *name, size_t n);
	/*
	 * A value, or where an object or a list begins. `text` is that of a
	 * string or a number; n of a boolean is 1 or 0.
	 */
	bool (*value)(void *context, enum json_kind kind, const void *text,
	    size_t n);
	/* Of either; the offset of its bracket. */
	bool (*end)(void *context, uint64_t at);
	/*
	 * NULL, or takes elements of a list that are numbers, with the comma
	 * behind each, and returns their length, up to where one begins.
	 */
	size_t (*elements)(void *context, const unsigned char *start, size_t n);
	/* NULL, or takes the offset of each comma. */
	bool (*comma)(void *context, uint64_t at);
};

struct json_reader {
	const struct json_calls *calls;
	void *context;
	uint64_t at;            /* offset of the next piece */
	uint64_t token_at;      /* offset at which the last token began */
	struct hold text;       /* of the token, as far as it came */
	size_t most;            /* of a raw reader; 0: it is none */
	bool bounded;
	bool cut, escaped;      /* the string at hand; behind a backslash */
	size_t depth;
	size_t rest_length;
	unsigned char rest[STRING_UNIT]; /* of an escape or a character */
	unsigned char stopped;  /* enum json_stop: nothing more is read */
	/* enums of json_reader.c */
	unsigned char state;
	unsigned char token;    /* that a piece has cut */
	unsigned char number;
	unsigned char word;     /* where in the words */
	bool is_map[JSON_DEPTH + 1];
};

/* `text` is as it was or all 0; hold_free frees it. */
void json_reader_begin(struct json_reader *r, const struct json_calls *calls,
    void *context);
/* Of raw strings; `kept` has `most` bytes, at least JSON_NUMBER_MOST. */
void json_reader_begin_raw(struct json_reader *r,
    const struct json_calls *calls, void *context, unsigned char *kept,
    size_t most);
/* Of whole strings, in `kept`. */
void json_reader_begin_bounded(struct json_reader *r,
    const struct json_calls *calls, void *context,
    unsigned char kept[JSON_BOUND]);
void json_reader_data(struct json_reader *r, const void *piece, size_t n);
/*
 * The text ends here: was it one whole value? A number alone ends only with a
 * blank.
 */
bool json_reader_whole(const struct json_reader *r);

#endif
