/* SPDX-License-Identifier: BSD-2-Clause */
/* json_writer.c - see json_writer.h. */
#include "json_writer.h"

#include <string.h>

#include "body_string.h"

enum { MILLION = 1000000 };

/* ------------------------------------------------------------ strings --- */

static void
string_put(struct writer *to, const unsigned char *p, size_t n)
{
	const bool utf8 = text_is_utf8(p, n);
	unsigned char escape[STRING_ESCAPED];
	size_t at, from;

	writer_put(to, "\"", 1);
	for (from = at = 0; at < n; at++) {
		if (p[at] >= 0x20 && p[at] != '"' && p[at] != '\\' &&
		    (utf8 || p[at] < 0x80))
			continue;
		writer_put(to, p + from, at - from);
		from = at + 1;
		if (p[at] >= 0x80)
			writer_put(to, "?", 1);
		else
			writer_put(to, escape, string_escape(p[at], escape));
	}
	writer_put(to, p + from, n - from);
	writer_put(to, "\"", 1);
}

/* ------------------------------------------------------------- values --- */

/* False: the writer has failed, perhaps since no value may stand here. */
static bool
value_begin(struct json *j, const char *key)
{
	if (j->complete || j->is_map[j->depth] != (key != NULL))
		j->to->failed = true;
	if (j->some)
		writer_put(j->to, ",", 1);
	if (key != NULL) {
		string_put(j->to, (const unsigned char *)key, strlen(key));
		writer_put(j->to, ":", 1);
	}
	j->some = true;
	j->complete = j->depth == 0;
	return !j->to->failed;
}

static void
level_begin(struct json *j, const char *key, bool is_map)
{
	if (j->depth == JSON_NESTED)
		j->to->failed = true;
	if (!value_begin(j, key))
		return;
	writer_put(j->to, is_map ? "{" : "[", 1);
	j->is_map[++j->depth] = is_map;
	j->some = j->complete = false;
}

static void
level_end(struct json *j, bool is_map)
{
	if (j->depth == 0 || j->is_map[j->depth] != is_map)
		j->to->failed = true;
	if (j->to->failed)
		return;
	writer_put(j->to, is_map ? "}" : "]", 1);
	j->some = true;
	j->complete = --j->depth == 0;
}

static void
scalar_put(struct json *j, const char *key, const char *text, size_t n)
{
	if (value_begin(j, key))
		writer_put(j->to, text, n);
}

void
json_begin(struct json *j, struct writer *to)
{
	memset(j, 0, sizeof(*j));
	j->to = to;
}

void
json_end(struct json *j)
{
	if (!j->complete)
		j->to->failed = true;
	writer_put(j->to, "\n", 1);
}

void
json_map(struct json *j, const char *key)
{
	level_begin(j, key, true);
}

void
json_map_end(struct json *j)
{
	level_end(j, true);
}

void
json_list(struct json *j, const char *key)
{
	level_begin(j, key, false);
}

void
json_list_end(struct json *j)
{
	level_end(j, false);
}

void
json_null(struct json *j, const char *key)
{
	scalar_put(j, key, "null", 4);
}

void
json_bool(struct json *j, const char *key, bool value)
{
	scalar_put(j, key, value ? "true" : "false", value ? 4 : 5);
}

void
json_whole(struct json *j, const char *key, uint64_t value)
{
	char digits[WRITER_DIGITS];

	scalar_put(j, key, digits, (size_t)(digits_write(digits, value) -
	    digits));
}

/* printf is not used, because a locale may replace its point. */
void
json_real(struct json *j, const char *key, double value)
{
	char text[1 + 2 * WRITER_DIGITS], *end = text;
	uint64_t whole, part;

	if (!(value > -1e18 && value < 1e18)) {
		json_null(j, key);
		return;
	}
	if (value < 0) {
		*end++ = '-';
		value = -value;
	}
	whole = (uint64_t)value;
	part = (uint64_t)((value - (double)whole) * MILLION + 0.5);
	if (part == MILLION) {
		whole++;
		part = 0;
	}
	end = digits_write(end, whole);
	/* The 1 ahead keeps the zeros; the point replaces it. */
	(void)digits_write(end, MILLION + part);
	*end = '.';
	scalar_put(j, key, text, (size_t)(end + 7 - text));
}

void
json_text(struct json *j, const char *key, const char *text)
{
	json_bytes(j, key, text, strlen(text));
}

void
json_bytes(struct json *j, const char *key, const void *bytes, size_t n)
{
	if (value_begin(j, key))
		string_put(j->to, bytes, n);
}
