/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage_cut.c - see usage_cut.h.
 *
 *   data: {"id":"1","usage":{"prompt_tokens":5},"choices":[{}]}
 *                   \__________________________/
 *   data: {"id":"1","choices":[{}],
 *   data: "usage":{"prompt_tokens":5}}
 *                 goes, with the comma ahead; the line itself stays
 *
 * Places are counted in bytes of data, so that a member may go over lines. The
 * object has been parsed, so this looks for quotes and brackets only.
 */
#include "usage_cut.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "events.h"

static const char wanted[] = "usage\"";
enum { WANTED = sizeof(wanted) - 1 };
#define NOWHERE UINT64_MAX

struct search {
	uint64_t at;           /* bytes of data so far */
	unsigned depth;
	bool string, escaped;
	bool key;              /* the next string at the top is a key */
	size_t matched;        /* bytes of the key; WANTED + 1: it differs */
	uint64_t comma;        /* the last one at the top */
	uint64_t begins;       /* the key at hand */
	bool found;
	uint64_t from, to;     /* the member */
};

static void
string_next(struct search *s, char c)
{
	if (s->key && s->matched < WANTED && c == wanted[s->matched])
		s->matched++;
	else
		s->matched = WANTED + 1;
	if (s->escaped) {
		s->escaped = false;
	} else if (c == '\\') {
		s->escaped = true;
	} else if (c == '"') {
		s->string = false;
		s->found |= s->key && s->matched == WANTED;
		s->key = false;
	}
}

/* A member ends at a comma, or at the brace that ends the object. */
static void
member_ends(struct search *s, char c)
{
	if (s->found) {
		s->from = s->comma != NOWHERE ? s->comma : s->begins;
		s->to = s->at + (c == ',' && s->comma == NOWHERE);
	}
	s->comma = s->at;
	s->key = true;
}

static void
sign_next(struct search *s, char c)
{
	if (c == '"') {
		s->string = true;
		s->matched = 0;
		if (s->depth == 1 && s->key)
			s->begins = s->at;
	} else if (c == '{' || c == '[') {
		s->key = s->depth == 0;
		s->depth++;
	} else if (c == '}' || c == ']') {
		if (--s->depth == 0)
			member_ends(s, c);
	} else if (c == ',' && s->depth == 1) {
		member_ends(s, c);
	}
}

static void
data_search(struct search *s, const struct events_part *part)
{
	size_t i;

	for (i = 0; i < part->n && s->to == 0; i++, s->at++) {
		if (s->string)
			string_next(s, part->bytes[i]);
		else
			sign_next(s, part->bytes[i]);
	}
}

static bool
member_find(const char *event, size_t n, struct search *s)
{
	struct events_piece piece = { event, event + n, NULL };
	struct events events = { 0 };
	struct events_part part;
	enum events_what what;

	memset(s, 0, sizeof(*s));
	s->comma = NOWHERE;
	while ((what = events_next(&events, &piece, &part)) != EVENTS_MORE)
		if (what == EVENTS_DATA)
			data_search(s, &part);
	return s->to > 0;
}

/* Copies `bytes` to `to`, which does not lie behind them. */
static char *
bytes_keep(char *to, const char *bytes, size_t n)
{
	memmove(to, bytes, n);
	return to + n;
}

/* Copies a part of the data, at offset `at`, without the member. */
static char *
part_keep(char *to, const struct events_part *part, uint64_t at,
    const struct search *s)
{
	uint64_t from = s->from > at ? s->from - at : 0;
	uint64_t end = s->to > at ? s->to - at : 0;

	from = from < part->n ? from : part->n;
	end = end < part->n ? end : part->n;
	to = bytes_keep(to, part->bytes, (size_t)from);
	return bytes_keep(to, part->bytes + end, part->n - (size_t)end);
}

static size_t
member_remove(char *event, size_t n, const struct search *s)
{
	struct events_piece piece = { event, event + n, NULL };
	struct events events = { 0 };
	struct events_part part;
	enum events_what what;
	const char *from = event;
	char *to = event;
	uint64_t at = 0;

	while ((what = events_next(&events, &piece, &part)) != EVENTS_MORE) {
		if (what != EVENTS_DATA)
			continue;
		to = bytes_keep(to, from, (size_t)(part.bytes - from));
		to = part_keep(to, &part, at, s);
		from = part.bytes + part.n;
		at += part.n;
	}
	to = bytes_keep(to, from, (size_t)(event + n - from));
	return (size_t)(to - event);
}

size_t
usage_cut(char *event, size_t n)
{
	struct search s;

	while (member_find(event, n, &s))
		n = member_remove(event, n, &s);
	return n;
}
