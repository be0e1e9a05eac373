/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_text.h - reads NAME=VALUE texts by a table with a row for each name.
 *
 *   "size=64m gray=8"      { "gray", TEXT_RATE, offset, "2", "100", "8", off }
 *             |                 |
 *             '-- looked up ----'--> the field at the offset
 *
 * Limits and defaults are texts of the same kind as the value: one function
 * reads all of them. Options of a region and facts of a worker are read by the
 * library; their rows allow the names. A name is given once.
 */
#ifndef KVROUTE_POOL_TEXT_H
#define KVROUTE_POOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

enum text_kind {
	TEXT_FLAG,       /* on, off; bool */
	TEXT_COUNT,      /* a whole number; uint32_t */
	TEXT_RATE,       /* the same; double */
	TEXT_PERCENT,    /* with a sign, in millionths; uint32_t */
	TEXT_SIZE,       /* bytes, k, m, g; uint64_t */
	TEXT_TIME,       /* as the library has it; int64_t of nanoseconds */
	TEXT_WORD,       /* one of the words; uint32_t */
	TEXT_SPECIAL,    /* by a function */
	TEXT_LIBRARY     /* by a function that has NAME=VALUE */
};

enum { TEXT_WORDS = 4 };

/* False: this is no value. */
typedef bool text_special(void *fields, const char *text, size_t n);

struct text_row {
	const char *name;
	enum text_kind kind;
	size_t offset;
	const char *least, *most;  /* NULL: no limit */
	const char *preset;        /* NULL: the fields have it already */
	bool off;                  /* "off" is 0 */
	const char *const *words;
	text_special *special;
};

/* Members of a row. */
#define RANGE(from, to) .least = from, .most = to
#define LEAST(from) .least = from
#define PRESET(text) .preset = text
#define OFF .off = true

/* Are they equal? Letters of both cases are. */
bool text_same(const char *text, size_t n, const char *other, size_t length);
/* Is it this word? */
bool text_is(const char *text, size_t n, const char *word);
/* Sets the defaults. */
void text_presets(const struct text_row *rows, size_t n, void *fields);
/*
 * Reads all pairs, which are separated by blanks or ends of lines. Returns 0,
 * KVH_ENAME or KVH_EVALUE; then *bad (may be NULL) is the offset of the pair.
 */
int text_read(const struct text_row *rows, size_t n, void *fields,
    const char *text, size_t length, size_t *bad);

#endif
