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
 * `take` gets each value that stands in a place, and where an object or a list
 * in a place ends. It may change the place that an object or a list is entered
 * as: FOUND_NOWHERE is one without rows. FOUND_TOP is the text itself.
 *
 * The text comes in pieces of any size and is read by a raw reader, see
 * json_reader.h: nothing is allocated, and of a string no more than FINDER_KEPT
 * bytes are kept, up to an escape. A key that is longer or has an escape is
 * none of the table. A text that is nested deeper than FINDER_DEPTH is broken.
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
	unsigned place, which; /* of its row */
	const char *text;      /* of a number or a string */
	size_t n;
	bool cut;              /* there is more of the string */
};

struct finder_row {
	unsigned char in;      /* the place of the object or the list */
	const char *key;       /* NULL: an element of a list */
	unsigned char is;      /* the place of the value */
	unsigned char which;
};

struct finder_table {
	const struct finder_row *rows;
	size_t n_rows;
	/* False: the rest is not wanted. */
	bool (*take)(void *context, struct found *found);
};

struct finder {
	const struct finder_table *table;
	void *context;
	unsigned char next, which;  /* of the value that comes next */
	unsigned char places[FINDER_DEPTH + 1]; /* of what is open */
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

/* It has ended: was it whole, and wanted to the end? */
static inline bool
finder_end(const struct finder *f)
{
	return json_reader_whole(&f->reader);
}

#endif
