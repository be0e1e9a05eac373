/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * salt.c - see salt.h. A span goes from the key of a salt to the comma after
 * its value. Salts at the end have no such comma: the first of them takes the
 * comma ahead of it. The rest is JSON, also without a new salt.
 *
 *   {"a":1,"cache_salt":"x","b":2}     {"a":1,"cache_salt":"x"}
 *          -----------------                 ------------------
 */
#include "salt.h"

#include <string.h>

#include "body_string.h"

static const char name[] = "cache_salt";

typedef const unsigned char *place;

/* --------------------------------------------------------------- reader --- */

static bool
on_key(void *context, const unsigned char *key, size_t n)
{
	struct salt *s = context;

	if (s->reader.depth != 1)
		return true;
	s->some = true;
	s->salty = !s->reader.cut && n == sizeof(name) - 1 &&
	    memcmp(key, name, n) == 0;
	if (!s->salty)
		return true;
	if (s->spans == SALT_SPANS)
		return false;
	s->span[s->spans++].at = s->reader.token_at;
	return true;
}

/* A comma at the top ends a member. */
static bool
on_comma(void *context, uint64_t at)
{
	struct salt *s = context;

	if (s->reader.depth != 1)
		return true;
	if (s->salty) {
		s->span[s->spans - 1].end = at + 1;
	} else {
		s->kept = true;
		s->lead = at;
		s->run = s->spans;
	}
	s->salty = false;
	return true;
}

/* The last brace ends a member, too. */
static bool
on_end(void *context, uint64_t at)
{
	struct salt *s = context;

	if (s->reader.depth > 0)
		return true;
	s->end = at;
	s->comma = s->salty ? s->kept : s->some;
	if (!s->salty)
		return true;
	s->span[s->spans - 1].end = at;
	if (s->kept)
		s->span[s->run].at = s->lead;
	return true;
}

/* Refuses a text that is not an object. */
static bool
on_value(void *context, enum json_kind kind, const void *text, size_t n)
{
	const struct salt *s = context;

	(void)text;
	(void)n;
	return kind == JSON_MAP || s->reader.depth > 0;
}

/* --------------------------------------------------------------- pieces --- */

/* Passes over the bytes of a byte order mark in this piece. */
static place
order_mark(struct salt *s, place p, place end)
{
	static const unsigned char mark[] = { 0xef, 0xbb, 0xbf };

	while (p < end && s->mark < sizeof(mark) && *p == mark[s->mark]) {
		s->mark++;
		p++;
	}
	if (p < end && s->mark > 0 && s->mark < sizeof(mark))
		s->broken = true;
	if (p < end)
		s->mark = sizeof(mark);
	return p;
}

void
salt_begin(struct salt *s)
{
	static const struct json_calls calls = { .key = on_key,
	    .value = on_value, .end = on_end, .comma = on_comma };

	memset(s, 0, sizeof(*s));
	json_reader_begin_bounded(&s->reader, &calls, s, s->text);
}

void
salt_data(struct salt *s, const void *data, size_t n)
{
	const place start = data, end = start + n;
	const place p = order_mark(s, start, end);

	s->reader.at += (uint64_t)(p - start);
	if (!s->broken)
		json_reader_data(&s->reader, p, (size_t)(end - p));
}

bool
salt_end(struct salt *s)
{
	return !s->broken && json_reader_whole(&s->reader);
}

/* --------------------------------------------------------------- member --- */

static unsigned char *
put_text(unsigned char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n);
	return to + n;
}

/* Writes the escaped value; NULL: it is not UTF-8. */
static unsigned char *
put_value(unsigned char *to, place p, place end)
{
	enum string_stop why;
	size_t n;

	while (p < end) {
		n = string_plain(p, (size_t)(end - p), &why);
		memcpy(to, p, n);
		to += n;
		p += n;
		if (p == end)
			break;
		if (why == STRING_MORE || (why == STRING_BAD && *p >= 0x20))
			return NULL;
		to += string_escape(*p++, to);
	}
	return to;
}

size_t
salt_member(const struct salt *s, const void *value, size_t n,
    unsigned char *to, size_t room)
{
	const place p = value;
	unsigned char *at = to;

	if (room < SALT_ROOM(n))
		return 0;
	if (s->comma)
		*at++ = ',';
	at = put_text(at, "\"cache_salt\":\"");
	at = put_value(at, p, p + n);
	if (at == NULL)
		return 0;
	*at++ = '"';
	return (size_t)(at - to);
}
