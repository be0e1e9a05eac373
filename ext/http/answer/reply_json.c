/* SPDX-License-Identifier: BSD-2-Clause */
/* reply_json.c - see reply_json.h. */
#include "reply_json.h"

#include <stdint.h>
#include <string.h>

static const char *
skip_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' ||
	    *at == '\r'))
		at++;
	return at;
}

/*
 * After its closing quote; at is after the first. NULL: there is none. A quote
 * is escaped by an odd number of backslashes before it, so that other escapes
 * are passed over at the speed of memchr.
 */
static const char *
skip_string(const char *at, const char *end)
{
	const char *quote, *escape;

	for (;;) {
		while (end - at >= 2 && *at == '\\')
			at += 2;
		quote = memchr(at, '"', (size_t)(end - at));
		if (quote == NULL)
			return NULL;
		for (escape = quote; escape > at && escape[-1] == '\\';)
			escape--;
		at = quote + 1;
		if ((quote - escape) % 2 == 0)
			return at;
	}
}

static const char *
skip_nested(const char *at, const char *end)
{
	size_t depth = 0;

	while (at < end) {
		switch (*at++) {
		case '"':
			at = skip_string(at, end);
			if (at == NULL)
				return NULL;
			break;
		case '{': case '[':
			depth++;
			break;
		case '}': case ']':
			if (--depth == 0)
				return at;
			break;
		default:
			break;
		}
	}
	return NULL;
}

static const char *
skip_scalar(const char *at, const char *end)
{
	const char *from = at;

	while (at < end && *at != ',' && *at != '}' && *at != ']' &&
	    *at != ' ' && *at != '\t' && *at != '\n' && *at != '\r' &&
	    *at != '"' && *at != '{' && *at != '[' && *at != ':')
		at++;
	return at > from ? at : NULL;
}

/* After the value that begins here; NULL: it does not end. */
static const char *
skip_value(const char *at, const char *end)
{
	if (at == end)
		return NULL;
	if (*at == '"')
		return skip_string(at + 1, end);
	if (*at == '{' || *at == '[')
		return skip_nested(at, end);
	return skip_scalar(at, end);
}

static bool
take_value(const char **at, const char *end, struct view *value)
{
	const char *from = skip_space(*at, end);
	const char *to = skip_value(from, end);

	if (to == NULL)
		return false;
	value->at = from;
	value->n = (size_t)(to - from);
	*at = skip_space(to, end);
	return true;
}

/* ----------------------------------------------------------------- walk --- */

static bool
walk_into(struct walk *w, struct view value, char open, char close)
{
	if (value.n < 2 || *value.at != open)
		return false;
	w->at = value.at + 1;
	w->end = value.at + value.n;
	w->close = close;
	w->first = true;
	w->broken = false;
	return true;
}

bool
walk_object(struct walk *w, struct view value)
{
	return walk_into(w, value, '{', '}');
}

bool
walk_list(struct walk *w, struct view value)
{
	return walk_into(w, value, '[', ']');
}

static bool
walk_fail(struct walk *w)
{
	w->broken = true;
	w->close = 0;
	return false;
}

/* Is there one more? Then at is where it begins. */
static bool
walk_more(struct walk *w)
{
	if (w->close == 0)
		return false;
	w->at = skip_space(w->at, w->end);
	if (w->at == w->end)
		return walk_fail(w);
	if (*w->at == w->close) {
		if (w->at + 1 < w->end)
			return walk_fail(w);
		w->close = 0;
		return false;
	}
	if (!w->first && *w->at++ != ',')
		return walk_fail(w);
	w->first = false;
	return true;
}

bool
walk_element(struct walk *w, struct view *value)
{
	if (!walk_more(w))
		return false;
	return take_value(&w->at, w->end, value) || walk_fail(w);
}

bool
walk_member(struct walk *w, struct view *key, struct view *value)
{
	if (!walk_more(w))
		return false;
	if (!take_value(&w->at, w->end, key) || !view_is_string(*key) ||
	    w->at == w->end || *w->at != ':')
		return walk_fail(w);
	w->at++;
	*key = view_inside(*key);
	return take_value(&w->at, w->end, value) || walk_fail(w);
}

/* ---------------------------------------------------------------- views --- */

bool
view_text(const char *text, size_t n, struct view *value)
{
	const char *at = text;

	if (n == 0)
		return false;
	return take_value(&at, text + n, value) && at == text + n;
}

bool
view_is_string(struct view v)
{
	return v.n >= 2 && *v.at == '"';
}

bool
view_is_null(struct view v)
{
	return view_is(v, "null");
}

struct view
view_inside(struct view v)
{
	return (struct view){ v.at + 1, v.n - 2 };
}

bool
view_is(struct view v, const char *text)
{
	return v.n > 0 && v.n == strlen(text) &&
	    memcmp(v.at, text, v.n) == 0;
}

bool
view_number(struct view v, size_t *number)
{
	uint64_t value = 0;
	size_t i;

	for (i = 0; i < v.n && value <= UINT32_MAX; i++) {
		if (v.at[i] < '0' || v.at[i] > '9')
			return false;
		value = value * 10 + (uint64_t)(v.at[i] - '0');
	}
	*number = (size_t)value;
	return v.n > 0 && value <= UINT32_MAX;
}
