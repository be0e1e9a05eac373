/* SPDX-License-Identifier: BSD-2-Clause */
/* text_rows.c - see text_rows.h. */
#include "text_rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <kvroute.h>

struct span {
	const char *at;
	size_t n;
};

struct text_unit {
	const char *name;
	double times;
};

static const struct text_unit sizes[] = { { "", 1 }, { "k", 1 << 10 },
    { "m", 1 << 20 }, { "g", 1 << 30 } };

enum { PAIR_MAX = 128, MS = 1000000 };

bool
text_same(const char *text, size_t n, const char *other, size_t length)
{
	return length == n && (n == 0 || strncasecmp(text, other, n) == 0);
}

bool
text_is(const char *text, size_t n, const char *word)
{
	return text_same(text, n, word, strlen(word));
}

bool
text_is_path(const char *text, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return n > 0 && n <= TEXT_PATH_MAX && text[0] == '/';
}

/* Digits, perhaps with decimals, at the start of s; the rest stays. */
static bool
number_read(struct span *s, bool decimals, double *out)
{
	double value = 0, unit = 1;
	size_t digits = 0;
	bool point = false;

	for (; s->n > 0 && digits <= 18; s->at++, s->n--) {
		if (*s->at == '.' && decimals && !point && digits > 0) {
			point = true;
			continue;
		}
		if (*s->at < '0' || *s->at > '9')
			break;
		digits++;
		value = value * 10 + (*s->at - '0');
		unit *= point ? 10 : 1;
	}
	*out = value / unit;
	return digits > 0 && digits <= 18 && (!point || unit > 1);
}

static bool
unit_read(const struct span *s, const struct text_unit *units, size_t n,
    double *value)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!text_is(s->at, s->n, units[i].name))
			continue;
		*value *= units[i].times;
		return *value < 9e18;
	}
	return false;
}

static bool
word_read(const struct text_row *row, const struct span *s, double *value)
{
	size_t i;

	for (i = 0; i < TEXT_WORDS; i++) {
		*value = (double)i;
		if (row->words[i] != NULL &&
		    text_is(s->at, s->n, row->words[i]))
			return true;
	}
	return false;
}

/* NAME=VALUE, one word of the library's; 0: it is another. */
static size_t
pair_make(char pair[PAIR_MAX], const char *name, const char *text, size_t n)
{
	const size_t before = strlen(name) + 1;
	size_t i;

	if (n > PAIR_MAX - before)
		return 0;
	for (i = 0; i < n; i++)
		if ((unsigned char)text[i] <= ' ')
			return 0;
	memcpy(pair, name, before - 1);
	pair[before - 1] = '=';
	memcpy(pair + before, text, n);
	return before + n;
}

static bool
time_read(const struct span *s, double *value)
{
	struct kvr_options o;
	char pair[PAIR_MAX];
	size_t n = pair_make(pair, "ttl", s->at, s->n);

	if (n == 0 || kvr_options_init(&o, sizeof(o)) != KVR_OK ||
	    kvr_options_parse(&o, pair, n, NULL, NULL) != KVR_OK)
		return false;
	*value = (double)o.ttl_ns;
	return true;
}

/* The number that a text is; false: it is not of the row's kind. */
static bool
value_parse(const struct text_row *row, struct span s, double *value)
{
	switch (row->kind) {
	case TEXT_FLAG:
		*value = text_is(s.at, s.n, "on");
		return *value != 0 || text_is(s.at, s.n, "off");
	case TEXT_COUNT:
	case TEXT_RATE:
		return number_read(&s, false, value) && s.n == 0;
	case TEXT_PERCENT:
		if (!number_read(&s, true, value))
			return false;
		*value *= 10000;
		return text_is(s.at, s.n, "%");
	case TEXT_SIZE:
		return number_read(&s, false, value) && unit_read(&s, sizes,
		    sizeof(sizes) / sizeof(sizes[0]), value);
	case TEXT_TIME:
	case TEXT_MS:
		return time_read(&s, value);
	case TEXT_WORD:
		return word_read(row, &s, value);
	case TEXT_SPECIAL:
	case TEXT_LIBRARY:
		break;
	}
	return false;
}

static void
value_store(const struct text_row *row, void *fields, double value)
{
	void *at = (char *)fields + row->offset;

	switch (row->kind) {
	case TEXT_FLAG:
		*(bool *)at = value != 0;
		break;
	case TEXT_COUNT:
	case TEXT_PERCENT:
	case TEXT_WORD:
		*(uint32_t *)at = (uint32_t)(value + .5);
		break;
	case TEXT_SIZE:
		*(uint64_t *)at = (uint64_t)value;
		break;
	case TEXT_RATE:
		*(double *)at = value;
		break;
	case TEXT_TIME:
		*(int64_t *)at = (int64_t)value;
		break;
	case TEXT_MS:
		*(uint64_t *)at = (uint64_t)value / MS;
		break;
	case TEXT_SPECIAL:
	case TEXT_LIBRARY:
		break;
	}
}

static double
limit_parse(const struct text_row *row, const char *text, double otherwise)
{
	double value;

	return text != NULL && value_parse(row, (struct span){ text,
	    strlen(text) }, &value) ? value : otherwise;
}

/* The largest value that the field of a kind holds. */
static double
kind_most(enum text_kind kind)
{
	return kind == TEXT_COUNT || kind == TEXT_PERCENT ? UINT32_MAX : 9e18;
}

static bool
number_take(const struct text_row *row, void *fields, const char *text,
    size_t n)
{
	double value = 0;

	if ((!row->off || !text_is(text, n, "off")) &&
	    (!value_parse(row, (struct span){ text, n }, &value) ||
	    value < limit_parse(row, row->least, 0) ||
	    value > limit_parse(row, row->most, kind_most(row->kind))))
		return false;
	value_store(row, fields, value);
	return true;
}

/* A pair is one word for the library. */
static const char *
library_take(const struct text_row *row, void *fields, const char *text,
    size_t n)
{
	char pair[PAIR_MAX];
	size_t length = pair_make(pair, row->name, text, n);
	const char *why = length == 0 ? "it contains a blank, or is too long" :
	    row->special(fields, pair, length);

	return length > 0 && why != NULL && row->meaning != NULL ? "" : why;
}

/* As text_special. */
static const char *
value_take(const struct text_row *row, void *fields, const char *text, size_t n)
{
	if (row->kind == TEXT_SPECIAL)
		return row->special(fields, text, n);
	if (row->kind == TEXT_LIBRARY)
		return library_take(row, fields, text, n);
	return number_take(row, fields, text, n) ? NULL : "";
}

void
text_presets(const struct text_row *rows, size_t n, void *fields)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (rows[i].preset != NULL)
			(void)value_take(&rows[i], fields, rows[i].preset,
			    strlen(rows[i].preset));
}

static const struct text_row *
row_find(const struct text_row *rows, size_t n, const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strlen(rows[i].name) == length &&
		    memcmp(rows[i].name, name, length) == 0)
			return &rows[i];
	return NULL;
}

struct text_fault
text_pair(const struct text_row *rows, size_t n, void *fields, const char *pair,
    size_t length)
{
	const char *equals = memchr(pair, '=', length);
	struct text_fault fault = { NULL, "" };
	size_t name = equals == NULL ? 0 : (size_t)(equals - pair);

	fault.row = equals == NULL ? NULL : row_find(rows, n, pair, name);
	if (fault.row != NULL)
		fault.why = value_take(fault.row, fields, equals + 1,
		    length - name - 1);
	return fault;
}

/* --------------------------------------------------------------- errors --- */

/* What is written of it so far, and all of what is left. */
struct line {
	char *at;
	size_t room;
};

static void line_add(struct line *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void
line_add(struct line *l, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(l->at, l->room, format, args);
	va_end(args);
	if (n < 0)
		return;
	if ((size_t)n >= l->room)
		n = (int)l->room - 1;
	l->at += n;
	l->room -= (size_t)n;
}

/* "off", or MEANING: one of WORDS, from LEAST to MOST */
static void
meaning_add(struct line *l, const struct text_row *row)
{
	const char *before = ": ";
	size_t i;

	line_add(l, "it is %s%s", row->off ? "\"off\", or " : "",
	    row->meaning);
	for (i = 0; row->words != NULL && i < TEXT_WORDS; i++) {
		if (row->words[i] == NULL)
			continue;
		line_add(l, "%s%s", before, row->words[i]);
		before = " or ";
	}
	if (row->least != NULL)
		line_add(l, ", from %s", row->least);
	if (row->most != NULL)
		line_add(l, " to %s", row->most);
}

void
text_explain(const struct text_row *rows, size_t n, const char *called,
    const struct text_fault *fault, char *to, size_t room)
{
	struct line l = { to, room };
	size_t i;

	if (fault->row == NULL) {
		line_add(&l, "the parameters of \"%s\" are", called);
		for (i = 0; i < n; i++)
			line_add(&l, "%s%s=", i > 0 ? ", " : " ", rows[i].name);
	} else if (*fault->why == '\0' && fault->row->meaning != NULL) {
		meaning_add(&l, fault->row);
	} else {
		line_add(&l, "%s", fault->why);
	}
}
