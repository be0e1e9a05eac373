/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_finder.h - finds values in a JSON text by where they stand.
 *
 * Each row of a table is a step from one place to another. The places are
 * numbers of the table's own, from FOUND_TOP + 1 on:
 *
 *   { FOUND_TOP, "usage", USAGE, 0 }            {"usage": {"prompt_tokens": 7},
 *   { USAGE, "prompt_tokens", NUMBER, PROMPT }
 *   { FOUND_TOP, "choices", CHOICES, 0 }         "choices": [{...}, ...]}
 *   { CHOICES, NULL, CHOICE, 0 }                 each element of a list
 *
 * `take` receives each value that stands in a place, and the end of each object
 * or list in a place. It may change the place of an object or a list before
 * this is entered: FOUND_NOWHERE is a place without rows. FOUND_TOP is the text
 * itself.
 *
 * The text comes in pieces of any size and is read by a raw reader, see
 * json_reader.h. Nothing is allocated. At most FINDER_KEPT bytes of a string
 * are kept, up to its first escape. A key that is longer or has an escape
 * matches no row. A text that is nested deeper than FINDER_DEPTH is broken.
 */
#ifndef KVROUTE_JSON_FINDER_H
#define KVROUTE_JSON_FINDER_H

#include "json_reader.h"

enum { FINDER_KEPT = 256, FINDER_DEPTH = 100 };

enum { FOUND_NOWHERE = 0, FOUND_TOP };

enum found_kind {
	FOUND_NULL = JSON_NULL, FOUND_BOOLEAN, FOUND_NUMBER, FOUND_STRING,
	FOUND_MAP, FOUND_LIST, FOUND_END
};

struct found {
	enum found_kind kind;
	unsigned place, which; /* copied from its row */
	const char *text;      /* a number or a string; until `take` returns */
	size_t n;
	bool cut;              /* `text` is the begin of the string */
};

struct finder_row {
	unsigned char in;      /* the place of the object or the list */
	const char *key;       /* NULL: an element of a list */
	unsigned char is;      /* the place of the value */
	unsigned char which;   /* the caller's; passed on to `take` */
};

struct finder_table {
	const struct finder_row *rows;
	size_t n_rows;
	/* Returns false if the rest is not wanted. */
	bool (*take)(void *context, struct found *found);
};

struct finder {
	const struct finder_table *table;
	void *context;
	unsigned char next, which;  /* the row of the next value */
	unsigned char places[FINDER_DEPTH + 1]; /* of open objects and lists */
	unsigned char kept[FINDER_KEPT];
	struct json_reader reader;
};

void finder_begin(struct finder *f, const struct finder_table *table,
    void *context);
void finder_data(struct finder *f, const void *piece, size_t n);

/* Can it still become a whole text? */
static inline bool
finder_lives(const struct finder *f)
{
	return f->reader.stopped == JSON_LIVES;
}

/* The text has ended: was it whole, and wanted to the end? */
static inline bool
finder_end(const struct finder *f)
{
	return json_reader_whole(&f->reader);
}

#endif
