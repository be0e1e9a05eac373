/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * salt.c - see salt.h. States are those of json_reader.h:
 *
 *   {  "a"  :  1  ,  "b"  :  [  2  ,  3  ]  }
 *   |  |    |  |  |  |    |  |  |  |  |  |  OVER
 *   |  |    |  |  |  |    |  |  |  |  |  NEXT in an object
 *   |  |    |  |  |  |    |  |  |  |  NEXT in a list
 *   |  |    |  |  |  |    |  |  |  VALUE
 *   |  |    |  |  |  |    |  |  NEXT in a list
 *   |  |    |  |  |  |    |  FIRST: a value, or the end
 *   |  |    |  |  |  |    VALUE
 *   |  |    |  |  |  KEY
 *   |  |    |  |  NEXT in an object: a comma, or the end
 *   |  |    |  VALUE
 *   |  |    COLON
 *   |  FIRST: a key, or the end
 *   START
 *
 * A span is open from the key of a salt to the comma after its value. None is
 * behind salts at the end: the first of them takes the comma ahead of it. So
 * what is left is JSON, also where no new salt is put in.
 */
#include "salt.h"

#include <string.h>

#include "body_string.h"

enum state { START = 0, FIRST, KEY, COLON, VALUE, NEXT, OVER };
enum token { NONE = 0, STRING, ESCAPE, DIGITS, WORD };

static const char name[] = "cache_salt";

typedef const unsigned char *place;

static place
fail_at(struct salt *s, place end)
{
	s->broken = true;
	return end;
}

static bool
in_map(const struct salt *s)
{
	return s->is_map[s->depth];
}

static bool
in_key(const struct salt *s)
{
	return s->state == KEY || (s->state == FIRST && in_map(s));
}

/* -------------------------------------------------------------- members --- */

/* A value has ended just ahead of `at`. */
static void
value_ends(struct salt *s, uint64_t at)
{
	if (s->depth == 1 && s->salty)
		s->span[s->spans - 1].end = at;
	s->state = NEXT;
}

static void
key_ends(struct salt *s)
{
	if (s->depth != 1)
		return;
	s->salty = s->match == sizeof(name) - 1;
	if (!s->salty)
		return;
	if (s->spans == SALT_SPANS) {
		s->broken = true;
		return;
	}
	s->span[s->spans].at = s->key;
	s->spans++;
}

/* Ahead of the next member of the object at the top. */
static void
comma_at_top(struct salt *s, uint64_t at)
{
	if (s->salty) {
		s->span[s->spans - 1].end = at + 1;
	} else {
		s->kept = true;
		s->lead = at;
		s->run = s->spans;
	}
	s->salty = false;
}

/* The last brace: has it a member ahead of it that stays? */
static bool
members_end(struct salt *s)
{
	if (s->salty && s->kept)
		s->span[s->run].at = s->lead;
	return s->salty ? s->kept : s->state == NEXT;
}

/* -------------------------------------------------------------- strings --- */

static void
key_takes(struct salt *s, place p, size_t n)
{
	if (s->match + n < sizeof(name) && memcmp(name + s->match, p, n) == 0)
		s->match += n;
	else if (n > 0)
		s->match = sizeof(name);
}

static void
string_ends(struct salt *s, uint64_t at)
{
	s->token = NONE;
	if (in_key(s)) {
		key_ends(s);
		s->state = COLON;
	} else {
		value_ends(s, at + 1);
	}
}

/* A character that a piece has cut: byte by byte, until it is whole. */
static place
cut_on(struct salt *s, place p, place end)
{
	enum string_stop why;

	s->cut[s->n_cut++] = *p;
	if (string_plain(s->cut, s->n_cut, &why) == s->n_cut) {
		key_takes(s, s->cut, s->n_cut);
		s->n_cut = 0;
	} else if (why != STRING_MORE || s->n_cut == SALT_CUT) {
		return fail_at(s, end);
	}
	return p + 1;
}

static place
string_on(struct salt *s, place start, place p, place end)
{
	enum string_stop why;
	size_t n;

	if (s->n_cut > 0)
		return cut_on(s, p, end);
	n = string_plain(p, (size_t)(end - p), &why);
	if (in_key(s))
		key_takes(s, p, n);
	p += n;
	switch (why) {
	case STRING_QUOTE:
		string_ends(s, s->given + (uint64_t)(p - start));
		return p + 1;
	case STRING_ESCAPE:
		s->token = ESCAPE;
		return p + 1;
	case STRING_MORE:
		s->n_cut = (size_t)(end - p);
		if (s->n_cut >= SALT_CUT)
			return fail_at(s, end);
		memcpy(s->cut, p, s->n_cut);
		return end;
	default:
		return fail_at(s, end);
	}
}

/* After a backslash. None of what letters stand for is in the name. */
static place
escape_on(struct salt *s, place p, place end)
{
	if (*p == 'u') {
		s->token = DIGITS;
		s->digits = 4;
		s->code = 0;
		return p + 1;
	}
	if (*p == '\0' || strchr("\"\\/bfnrt", *p) == NULL)
		return fail_at(s, end);
	s->match = sizeof(name);
	s->token = STRING;
	return p + 1;
}

/* 16: none. */
static unsigned
hex_of(unsigned char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

static place
digits_on(struct salt *s, place p, place end)
{
	unsigned char c;
	unsigned digit;

	for (; p < end && s->digits > 0; p++, s->digits--) {
		digit = hex_of(*p);
		if (digit == 16)
			return fail_at(s, end);
		s->code = s->code << 4 | digit;
	}
	if (s->digits > 0)
		return p;
	c = (unsigned char)s->code;
	if (s->code < 0x80)
		key_takes(s, &c, 1);
	else
		s->match = sizeof(name);
	s->token = STRING;
	return p;
}

/* ---------------------------------------------------- numbers and words --- */

static bool
is_word(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	    (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.';
}

static place
word_on(struct salt *s, place start, place p, place end)
{
	while (p < end && is_word(*p))
		p++;
	if (p == end)
		return p;
	s->token = NONE;
	value_ends(s, s->given + (uint64_t)(p - start));
	return p;
}

/* --------------------------------------------------- objects and lists --- */

static bool
wants_value(const struct salt *s)
{
	return s->state == VALUE || (s->state == FIRST && !in_map(s));
}

static void
level_begins(struct salt *s, bool is_map)
{
	if (s->state == START ? !is_map : !wants_value(s) ||
	    s->depth == SALT_DEPTH) {
		s->broken = true;
		return;
	}
	s->depth++;
	s->is_map[s->depth] = is_map;
	s->state = FIRST;
}

static void
level_ends(struct salt *s, bool is_map, uint64_t at)
{
	if (s->depth == 0 || in_map(s) != is_map ||
	    (s->state != FIRST && s->state != NEXT)) {
		s->broken = true;
		return;
	}
	s->depth--;
	if (s->depth > 0) {
		value_ends(s, at + 1);
		return;
	}
	s->end = at;
	s->comma = members_end(s);
	s->state = OVER;
}

static void
take_punctuation(struct salt *s, unsigned char c, uint64_t at)
{
	if (c == ':' && s->state == COLON) {
		s->state = VALUE;
	} else if (c == ',' && s->state == NEXT) {
		s->state = in_map(s) ? KEY : VALUE;
		if (s->depth == 1)
			comma_at_top(s, at);
	} else {
		s->broken = true;
	}
}

static void
string_begins(struct salt *s, uint64_t at)
{
	s->token = STRING;
	s->match = 0;
	if (in_key(s)) {
		if (s->depth == 1)
			s->key = at;
	} else if (!wants_value(s)) {
		s->broken = true;
	}
}

static void
token_begins(struct salt *s, unsigned char c, uint64_t at)
{
	switch (c) {
	case '"':
		string_begins(s, at);
		break;
	case '{': case '[':
		level_begins(s, c == '{');
		break;
	case '}': case ']':
		level_ends(s, c == '}', at);
		break;
	case ':': case ',':
		take_punctuation(s, c, at);
		break;
	default:
		if (!is_word(c) || !wants_value(s))
			s->broken = true;
		s->token = WORD;
	}
}

/* --------------------------------------------------------------- pieces --- */

static bool
is_blank(unsigned char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static place
take_step(struct salt *s, place start, place p, place end)
{
	switch (s->token) {
	case STRING:
		return string_on(s, start, p, end);
	case ESCAPE:
		return escape_on(s, p, end);
	case DIGITS:
		return digits_on(s, p, end);
	case WORD:
		return word_on(s, start, p, end);
	default:
		if (!is_blank(*p))
			token_begins(s, *p, s->given + (uint64_t)(p - start));
		return p + 1;
	}
}

/* Whatever of a byte order mark is in this piece. */
static place
order_mark(struct salt *s, place p, place end)
{
	static const unsigned char mark[] = { 0xef, 0xbb, 0xbf };

	while (p < end && s->mark < sizeof(mark) && *p == mark[s->mark]) {
		s->mark++;
		p++;
	}
	/* Of another byte it is none, or a broken one. */
	if (p < end && s->mark > 0 && s->mark < sizeof(mark))
		s->broken = true;
	if (p < end)
		s->mark = sizeof(mark);
	return p;
}

void
salt_begin(struct salt *s)
{
	memset(s, 0, sizeof(*s));
}

void
salt_data(struct salt *s, const void *data, size_t n)
{
	const place start = data, end = start + n;
	place p = start;

	if (s->state == START && s->depth == 0)
		p = order_mark(s, p, end);
	while (p < end && !s->broken)
		p = take_step(s, start, p, end);
	s->given += n;
}

bool
salt_end(struct salt *s)
{
	return !s->broken && s->state == OVER;
}

/* --------------------------------------------------------------- member --- */

static unsigned char *
put_text(unsigned char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n);
	return to + n;
}

/* NULL: not UTF-8. */
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
