/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_text.c - see pool_text.h. */
#include "pool_text.h"

#include <string.h>
#include <strings.h>

#include "pool_in.h"

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

enum { PAIR_MAX = 128 };

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
	return digits > 0 && digits <= 18;
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
value_read(const struct text_row *row, void *fields, const char *text,
    size_t n)
{
	char pair[PAIR_MAX];
	double value;
	size_t length;

	if (row->kind == TEXT_SPECIAL)
		return row->special(fields, text, n);
	if (row->kind == TEXT_LIBRARY) {
		length = pair_make(pair, row->name, text, n);
		return length > 0 && row->special(fields, pair, length);
	}
	if (row->off && text_is(text, n, "off")) {
		value_store(row, fields, 0);
		return true;
	}
	if (!value_parse(row, (struct span){ text, n }, &value) ||
	    value < limit_parse(row, row->least, 0) ||
	    value > limit_parse(row, row->most, kind_most(row->kind)))
		return false;
	value_store(row, fields, value);
	return true;
}

void
text_presets(const struct text_row *rows, size_t n, void *fields)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (rows[i].preset != NULL)
			(void)value_read(&rows[i], fields, rows[i].preset,
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

static int
pair_read(const struct text_row *rows, size_t n, void *fields, const char *pair,
    size_t length, uint32_t *seen)
{
	const char *equals = memchr(pair, '=', length);
	const struct text_row *row;
	size_t name;

	if (equals == NULL)
		return KVH_ENAME;
	name = (size_t)(equals - pair);
	row = row_find(rows, n, pair, name);
	if (row == NULL)
		return KVH_ENAME;
	if ((*seen >> (row - rows) & 1) != 0)
		return KVH_EVALUE;
	*seen |= UINT32_C(1) << (row - rows);
	return value_read(row, fields, equals + 1, length - name - 1) ? KVR_OK :
	    KVH_EVALUE;
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

int
text_read(const struct text_row *rows, size_t n, void *fields,
    const char *text, size_t length, size_t *bad)
{
	size_t at = 0, end;
	uint32_t seen = 0;
	int error = KVR_OK;

	for (; at < length; at = end) {
		while (at < length && is_blank(text[at]))
			at++;
		for (end = at; end < length && !is_blank(text[end]); end++)
			continue;
		if (end > at)
			error = pair_read(rows, n, fields, text + at, end - at,
			    &seen);
		if (error != KVR_OK)
			break;
	}
	if (error != KVR_OK && bad != NULL)
		*bad = at;
	return error;
}
