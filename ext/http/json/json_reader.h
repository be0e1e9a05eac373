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
 * The reader reports each key, value, begin and end in order. A string without
 * escapes that lies in one piece is passed where it lies; any other is gathered
 * in `text`, as is a number that was cut.
 *
 * A piece may end anywhere. Between pieces `token` is the kind of token that
 * was cut:
 *
 *   ... "aa\u00 | e4b" ...     text: aa    rest: \u00
 *   ... 12.     | 5e7, ...     text: 12.   number: POINT
 *   ... tr      | ue, ...      word: ue
 *
 * No byte is read twice, except the few in `rest`. The reader accepts the same
 * texts as YAJL and reports the same bytes: see tests/http/body_yajl.h.
 *
 * A raw reader allocates nothing. It passes a string as it is written, up to an
 * escape and at most `most` bytes, and sets `cut` if the string is longer. It
 * does not check the bytes of strings. A number longer than JSON_NUMBER_MOST
 * breaks the text.
 *
 *   "Once upon a time \u00e4 ..."    text: Once upon a time    cut
 *
 * A string that is not needed as a whole may be taken in pieces, in constant
 * memory: photos have megabytes.
 *
 * A bounded reader allocates nothing either, but decodes and checks strings as
 * the first kind does. A string for which it has no room is `cut`, and a part
 * of it is passed.
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
	JSON_NUMBER_MOST = 40 /* bytes of a number in a raw reader */
};

enum json_stop { JSON_LIVES = 0, JSON_BROKEN, JSON_NO_MEMORY };

enum json_kind {
	JSON_NULL = 0, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_MAP,
	JSON_LIST
};

/* A call returns false if the rest is not wanted; the text is then broken. */
struct json_calls {
	bool (*key)(void *context, const unsigned char *name, size_t n);
	/*
	 * A value, or the begin of an object or a list. `text` has the n bytes
	 * of a string or a number, else it is NULL; n of a boolean is 1 or 0.
	 */
	bool (*value)(void *context, enum json_kind kind, const void *text,
	    size_t n);
	/* The end of an object or a list; the offset of its bracket. */
	bool (*end)(void *context, uint64_t at);
	/*
	 * NULL, or takes numbers of a list, each with the comma behind it, and
	 * returns how many bytes it took; the next element begins there.
	 */
	size_t (*elements)(void *context, const unsigned char *start, size_t n);
	/* NULL, or takes the offset of each comma. */
	bool (*comma)(void *context, uint64_t at);
	/*
	 * NULL, or: may the string that begins here come in pieces? `piece`
	 * takes these; `value` then has NULL for the text, and the length. A
	 * string that lies in one piece without escapes goes to `value` alone.
	 */
	bool (*in_pieces)(void *context);
	void (*piece)(void *context, const unsigned char *bytes, size_t n);
};

struct json_reader {
	const struct json_calls *calls;
	void *context;
	uint64_t at;            /* offset of the next piece */
	uint64_t token_at;      /* offset at which the last token began */
	struct hold text;       /* the token so far */
	bool passes;            /* the current string comes in pieces, */
	size_t passed;          /* bytes of it so far */
	size_t most;            /* bytes of a raw string; 0: not a raw reader */
	bool bounded;
	bool cut;               /* the current string is passed in part */
	bool escaped;           /* a raw string: after a backslash */
	size_t depth;
	size_t rest_length;
	unsigned char rest[STRING_UNIT]; /* an escape or character, cut */
	unsigned char stopped;  /* enum json_stop: nothing more is read */
	/* enums of json_reader.c */
	unsigned char state;
	unsigned char token;    /* the one that a piece has cut */
	unsigned char number;
	unsigned char word;     /* where in the words */
	bool is_map[JSON_DEPTH + 1];
};

/* `text` is of an earlier use, or all 0; the caller frees it by hold_free. */
void json_reader_begin(struct json_reader *r, const struct json_calls *calls,
    void *context);
/* Begins a raw reader; `kept` has `most` bytes, at least JSON_NUMBER_MOST. */
void json_reader_begin_raw(struct json_reader *r,
    const struct json_calls *calls, void *context, unsigned char *kept,
    size_t most);
/* Begins a bounded reader, which gathers strings in `kept`. */
void json_reader_begin_bounded(struct json_reader *r,
    const struct json_calls *calls, void *context,
    unsigned char kept[JSON_BOUND]);
void json_reader_data(struct json_reader *r, const void *piece, size_t n);
/*
 * The text ends here: was it one whole value? A number by itself must be
 * followed by a blank.
 */
bool json_reader_whole(const struct json_reader *r);

#endif
