/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * text_rows.h - reads NAME=VALUE texts by a table with a row for each name.
 *
 *   "gray=8"      { "gray", "how many times slower ...", TEXT_RATE, offset,
 *      |              "2", "100", "8", off }
 *      '-- looked up --> the field at the offset
 *
 * Limits and defaults are texts of the same kind as the value: one function
 * reads all of them, and errors quote them. Options of a region and facts of a
 * worker are read, and explained, by the library; their rows allow the names.
 */
#ifndef KVROUTE_TEXT_ROWS_H
#define KVROUTE_TEXT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum text_kind {
	TEXT_FLAG,       /* on, off; bool */
	TEXT_COUNT,      /* a whole number; uint32_t */
	TEXT_RATE,       /* the same; double */
	TEXT_PERCENT,    /* with a sign, in millionths; uint32_t */
	TEXT_SIZE,       /* bytes, k, m, g; uint64_t */
	TEXT_TIME,       /* as the library has it; int64_t of nanoseconds */
	TEXT_MS,         /* the same; uint64_t of milliseconds */
	TEXT_WORD,       /* one of the words; uint32_t */
	TEXT_SPECIAL,    /* by a function */
	TEXT_LIBRARY     /* by a function that has NAME=VALUE, without blanks */
};

enum { TEXT_WORDS = 4, TEXT_PATH_MAX = 200 };

/* NULL, or the reason for which it is refused; "": the meaning of the row. */
typedef const char *text_special(void *fields, const char *text, size_t n);

struct text_row {
	const char *name;
	const char *meaning;       /* "it is ..."; NULL: special gives it */
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
/* The type of the field must be that of the kind. */
#define FIELD(type, of, field) .kind = type, .offset = offsetof(of, field) + \
	0 * sizeof(char[_Generic(((of *)0)->field, TYPE_OF_##type: 1, \
	default: -1)])
#define TYPE_OF_TEXT_FLAG bool
#define TYPE_OF_TEXT_COUNT uint32_t
#define TYPE_OF_TEXT_RATE double
#define TYPE_OF_TEXT_PERCENT uint32_t
#define TYPE_OF_TEXT_SIZE uint64_t
#define TYPE_OF_TEXT_TIME int64_t
#define TYPE_OF_TEXT_MS uint64_t
#define TYPE_OF_TEXT_WORD uint32_t

/* What was read. */
struct text_fault {
	const struct text_row *row; /* NULL: there is none of that name */
	const char *why;            /* NULL: it was accepted; "": the meaning */
};

/* Are they equal? Letters of both cases are. */
bool text_same(const char *text, size_t n, const char *other, size_t length);
/* Is it this word? */
bool text_is(const char *text, size_t n, const char *word);
/* Is it a path of an engine, of at most TEXT_PATH_MAX bytes? */
bool text_is_path(const char *text, size_t n);
/* Sets the defaults. */
void text_presets(const struct text_row *rows, size_t n, void *fields);
/* Reads one pair; on an error the fields are as they were. */
struct text_fault text_pair(const struct text_row *rows, size_t n, void *fields,
    const char *pair, size_t length);
/*
 * The reason of a fault, as a sentence: what the value is, or which names there
 * are of what is called so. It is cut to the room, and has its NUL.
 */
void text_explain(const struct text_row *rows, size_t n, const char *called,
    const struct text_fault *fault, char *to, size_t room);

#endif
