/* SPDX-License-Identifier: BSD-2-Clause */
/* json_reader.c - see json_reader.h. */
#include "json_reader.h"

#include <string.h>

#include "body_string.h"

/* --------------------------------------------------------------- states --- */

enum json_state {
	START = 0,
	MAP_VALUE,
	FIRST_ELEMENT, /* or the end of the list */
	ELEMENT,
	FIRST_KEY,     /* or the end of the object */
	NEXT_KEY,
	COLON,
	MAP_NEXT,      /* a comma, or the end */
	LIST_NEXT,
	OVER
};

enum { PASS_BYTES = 4096 }; /* the most of a string in pieces, at a time */

enum json_token { TOKEN_NONE = 0, TOKEN_STRING, TOKEN_NUMBER, TOKEN_WORD };

/* The last character of the number so far. */
enum number {
	MINUS = 0,
	ZERO,  /* the only digit ahead of the point */
	DIGIT,
	POINT,
	FRACTION,
	EXPONENT,
	SIGN,
	POWER,
	NUMBER_ENDS,
	NUMBER_BAD
};

typedef const unsigned char *place;

/* Stops the reader; the first reason stays. */
static void
reader_stop(struct json_reader *r, enum json_stop why)
{
	if (r->stopped == JSON_LIVES)
		r->stopped = (unsigned char)why;
}

static place
stop_at(struct json_reader *r, place end, enum json_stop why)
{
	reader_stop(r, why);
	return end;
}

static bool
wants_value(const struct json_reader *r)
{
	return r->state <= ELEMENT;
}

/* A value has been reported; `more` is false if the rest is not wanted. */
static void
value_done(struct json_reader *r, bool more)
{
	if (!more)
		reader_stop(r, JSON_BROKEN);
	r->state = r->state == START ? OVER :
	    r->state == MAP_VALUE ? MAP_NEXT : LIST_NEXT;
}

/* -------------------------------------------------------------- strings --- */

static void
string_done(struct json_reader *r, const unsigned char *text, size_t n)
{
	r->token = TOKEN_NONE;
	if (wants_value(r)) {
		value_done(r, r->calls->value(r->context, JSON_STRING, text,
		    n));
	} else if (r->state == FIRST_KEY || r->state == NEXT_KEY) {
		if (!r->calls->key(r->context, text, n))
			reader_stop(r, JSON_BROKEN);
		r->state = COLON;
	} else {
		reader_stop(r, JSON_BROKEN);
	}
}

static void
raw_keep(struct json_reader *r, place p, size_t n)
{
	const size_t room = r->cut ? 0 : r->most - r->text.length;

	r->cut |= n > room;
	if (n > room)
		n = room;
	memcpy(r->text.data + r->text.length, p, n);
	r->text.length += n;
}

/* A raw string begins or goes on here. */
static place
raw_on(struct json_reader *r, place p, place end)
{
	place quote = NULL, escape;

	while (p < end) {
		if (r->escaped) {
			r->escaped = false;
			p++;
			continue;
		}
		if (quote == NULL || quote < p)
			quote = memchr(p, '"', (size_t)(end - p));
		if (quote == NULL)
			quote = end;
		escape = memchr(p, '\\', (size_t)(quote - p));
		raw_keep(r, p, (size_t)((escape == NULL ? quote : escape) - p));
		if (escape == NULL)
			break;
		r->cut = r->escaped = true;
		p = escape + 1;
	}
	if (p >= end || quote == end)
		return end;
	string_done(r, r->text.data, r->text.length);
	return quote + 1;
}

static place
raw_begins(struct json_reader *r, place p, place end)
{
	r->token = TOKEN_STRING;
	r->text.length = 0;
	r->cut = r->escaped = false;
	return raw_on(r, p, end);
}

/* False: no memory. A bounded reader without room drops the text so far. */
static bool
text_room(struct json_reader *r, size_t n)
{
	if (!r->bounded || n <= r->text.capacity - r->text.length)
		return hold_reserve(&r->text, n);
	r->cut = true;
	r->text.length = 0;
	return true;
}

static bool
text_append(struct json_reader *r, const void *bytes, size_t n)
{
	if (!r->bounded)
		return hold_append(&r->text, bytes, n);
	(void)text_room(r, n);
	return n > r->text.capacity || hold_append(&r->text, bytes, n);
}

/* Keeps the begin of a character or an escape for the next piece. */
static place
string_cut(struct json_reader *r, place p, place end)
{
	r->rest_length = (size_t)(end - p);
	memcpy(r->rest, p, r->rest_length);
	return end;
}

static void
text_pass(struct json_reader *r, const unsigned char *bytes, size_t n)
{
	if (n > 0)
		r->calls->piece(r->context, bytes, n);
	r->passed += n;
}

/* The closing quote has been read. */
static void
string_over(struct json_reader *r)
{
	if (r->passes)
		text_pass(r, r->text.data, r->text.length);
	string_done(r, r->passes ? NULL : r->text.data, r->passes ?
	    r->passed : r->text.length);
}

/* The string goes on here. */
static place
string_on(struct json_reader *r, place p, place end)
{
	const size_t room = r->passes ? PASS_BYTES : 2 * STRING_SLACK;
	enum string_stop why = STRING_FULL;
	struct hold *t = &r->text;
	size_t written;

	while (why == STRING_FULL) {
		if (r->passes) {
			text_pass(r, t->data, t->length);
			t->length = 0;
		}
		if (!text_room(r, room))
			return stop_at(r, end, JSON_NO_MEMORY);
		p += string_decode(p, (size_t)(end - p), t->data + t->length,
		    t->capacity - t->length, &written, &why);
		t->length += written;
	}
	if (why == STRING_BAD)
		return stop_at(r, end, JSON_BROKEN);
	if (why == STRING_MORE)
		return string_cut(r, p, end);
	string_over(r);
	return p + 1;
}

/* A string begins at p, behind its quote. */
static place
string_begins(struct json_reader *r, place p, place end)
{
	enum string_stop why;
	size_t n = string_plain(p, (size_t)(end - p), &why);

	r->cut = false;
	if (why == STRING_QUOTE) {
		string_done(r, p, n);
		return p + n + 1;
	}
	if (why == STRING_BAD)
		return stop_at(r, end, JSON_BROKEN);
	r->token = TOKEN_STRING;
	r->text.length = r->passed = 0;
	r->passes = r->calls->in_pieces != NULL && wants_value(r) &&
	    r->calls->in_pieces(r->context);
	if (r->passes)
		text_pass(r, p, n);
	else if (!text_append(r, p, n))
		return stop_at(r, end, JSON_NO_MEMORY);
	return string_on(r, p + n, end);
}

/*
 * Decodes the rest of the last piece joined with the first bytes of this one.
 * All bytes behind that escape or character are read where they lie.
 */
static place
string_join(struct json_reader *r, place p, place end)
{
	unsigned char join[2 * STRING_UNIT];
	const size_t had = r->rest_length;
	size_t n = sizeof(join) - had, at, written;
	enum string_stop why;
	struct hold *t = &r->text;

	if (n > (size_t)(end - p))
		n = (size_t)(end - p);
	memcpy(join, r->rest, had);
	memcpy(join + had, p, n);
	if (!text_room(r, 2 * STRING_SLACK))
		return stop_at(r, end, JSON_NO_MEMORY);
	at = string_decode(join, had + n, t->data + t->length,
	    t->capacity - t->length, &written, &why);
	t->length += written;
	r->rest_length = 0;
	if (why == STRING_BAD)
		return stop_at(r, end, JSON_BROKEN);
	if (at < had) {
		(void)string_cut(r, join + at, join + had + n);
		return end;
	}
	p += at - had;
	if (why == STRING_MORE)
		return string_on(r, p, end);
	string_over(r);
	return p + 1;
}

/* -------------------------------------------------------------- numbers --- */

static enum number
number_next(enum number so_far, unsigned char c)
{
	const bool digit = c >= '0' && c <= '9';
	const enum number exponent = c == 'e' || c == 'E' ? EXPONENT :
	    NUMBER_ENDS;

	switch (so_far) {
	case MINUS:
		return c == '0' ? ZERO : digit ? DIGIT : NUMBER_BAD;
	case DIGIT:
		if (digit)
			return DIGIT;
		/* fallthrough */
	case ZERO:
		return c == '.' ? POINT : exponent;
	case POINT:
		return digit ? FRACTION : NUMBER_BAD;
	case FRACTION:
		return digit ? FRACTION : exponent;
	case EXPONENT:
		if (c == '+' || c == '-')
			return SIGN;
		/* fallthrough */
	case SIGN:
		return digit ? POWER : NUMBER_BAD;
	case POWER:
		return digit ? POWER : NUMBER_ENDS;
	default:
		return NUMBER_BAD;
	}
}

static void
number_done(struct json_reader *r, const void *digits, size_t n)
{
	r->token = TOKEN_NONE;
	if (wants_value(r))
		value_done(r, r->calls->value(r->context, JSON_NUMBER, digits,
		    n));
	else
		reader_stop(r, JSON_BROKEN);
}

/* Goes on with a number at p; the bytes from `start` to p have been read. */
static place
number_on(struct json_reader *r, place start, place p, place end)
{
	enum number next = r->number;
	bool whole;

	for (; p < end; p++) {
		next = number_next(r->number, *p);
		if (next >= NUMBER_ENDS)
			break;
		r->number = (unsigned char)next;
	}
	if (next == NUMBER_BAD || (r->most > 0 && r->text.length +
	    (size_t)(p - start) > JSON_NUMBER_MOST))
		return stop_at(r, end, JSON_BROKEN);
	whole = p < end;
	if (whole && r->token == TOKEN_NONE) {
		number_done(r, start, (size_t)(p - start));
		return p;
	}
	if (!text_append(r, start, (size_t)(p - start)))
		return stop_at(r, end, JSON_NO_MEMORY);
	r->token = TOKEN_NUMBER;
	if (whole)
		number_done(r, r->text.data, r->text.length);
	return p;
}

static place
number_begins(struct json_reader *r, place p, place end)
{
	size_t row = r->state == ELEMENT && r->calls->elements != NULL ?
	    r->calls->elements(r->context, p, (size_t)(end - p)) : 0;

	if (row > 0)
		return p + row;
	r->text.length = 0;
	r->number = *p == '-' ? MINUS : *p == '0' ? ZERO : DIGIT;
	return number_on(r, p, p + 1, end);
}

/* ---------------------------------------------------------------- words --- */

static void
word_done(struct json_reader *r, unsigned char first)
{
	r->token = TOKEN_NONE;
	if (!wants_value(r))
		reader_stop(r, JSON_BROKEN);
	else
		value_done(r, r->calls->value(r->context, first == 'n' ?
		    JSON_NULL : JSON_BOOLEAN, NULL, first == 't'));
}

/* Goes on with a word at p; r->word is its next letter in `words`. */
static place
word_on(struct json_reader *r, place p, place end)
{
	static const char words[] = "true\0false\0null";

	r->token = TOKEN_WORD;
	for (; p < end && words[r->word] != '\0'; p++, r->word++)
		if (*p != (unsigned char)words[r->word])
			return stop_at(r, end, JSON_BROKEN);
	if (r->word == 4 || r->word == 10 || r->word == 15)
		word_done(r, r->word == 4 ? 't' : r->word == 10 ? 'f' : 'n');
	return p;
}

static place
word_begins(struct json_reader *r, place p, place end)
{
	r->word = *p == 't' ? 1 : *p == 'f' ? 6 : 12;
	return word_on(r, p + 1, end);
}

/* ---------------------------------------------------- objects and lists --- */

static void
level_begins(struct json_reader *r, bool is_map)
{
	if (!wants_value(r) || !r->calls->value(r->context, is_map ?
	    JSON_MAP : JSON_LIST, NULL, 0) || r->depth == JSON_DEPTH) {
		reader_stop(r, JSON_BROKEN);
		return;
	}
	r->depth++;
	r->is_map[r->depth] = is_map;
	r->state = is_map ? FIRST_KEY : FIRST_ELEMENT;
}

static void
level_ends(struct json_reader *r, bool is_map, uint64_t at)
{
	const unsigned state = r->state;

	if (is_map ? state != FIRST_KEY && state != MAP_NEXT :
	    state != FIRST_ELEMENT && state != LIST_NEXT) {
		reader_stop(r, JSON_BROKEN);
		return;
	}
	r->depth--;
	if (!r->calls->end(r->context, at))
		reader_stop(r, JSON_BROKEN);
	r->state = r->depth == 0 ? OVER :
	    r->is_map[r->depth] ? MAP_NEXT : LIST_NEXT;
}

static void
take_punctuation(struct json_reader *r, unsigned char c)
{
	const unsigned state = r->state;

	if (c == ':' && state == COLON) {
		r->state = MAP_VALUE;
	} else if (c == ',' && (state == MAP_NEXT || state == LIST_NEXT)) {
		r->state = state == MAP_NEXT ? NEXT_KEY : ELEMENT;
		if (r->calls->comma != NULL &&
		    !r->calls->comma(r->context, r->token_at))
			reader_stop(r, JSON_BROKEN);
	} else {
		reader_stop(r, JSON_BROKEN);
	}
}

/* --------------------------------------------------------------- pieces --- */

/* Reads one token, which begins at p. */
static place
token_begins(struct json_reader *r, place p, place end, uint64_t at)
{
	r->token_at = at;
	switch (*p) {
	case ' ': case '\t': case '\n': case '\v': case '\f': case '\r':
		return p + 1;
	case '"':
		return r->most > 0 ? raw_begins(r, p + 1, end) :
		    string_begins(r, p + 1, end);
	case '{': case '[':
		level_begins(r, *p == '{');
		return p + 1;
	case '}': case ']':
		level_ends(r, *p == '}', at);
		return p + 1;
	case ':': case ',':
		take_punctuation(r, *p);
		return p + 1;
	case 't': case 'f': case 'n':
		return word_begins(r, p, end);
	case '-': case '0': case '1': case '2': case '3': case '4':
	case '5': case '6': case '7': case '8': case '9':
		return number_begins(r, p, end);
	default:
		return stop_at(r, end, JSON_BROKEN);
	}
}

/* Goes on with the token that the last piece has cut. */
static place
resume_token(struct json_reader *r, place p, place end)
{
	switch (r->token) {
	case TOKEN_STRING:
		if (r->most > 0)
			return raw_on(r, p, end);
		return r->rest_length > 0 ? string_join(r, p, end) :
		    string_on(r, p, end);
	case TOKEN_NUMBER:
		return number_on(r, p, p, end);
	case TOKEN_WORD:
		return word_on(r, p, end);
	default:
		return p;
	}
}

void
json_reader_begin(struct json_reader *r, const struct json_calls *calls,
    void *context)
{
	const struct hold text = r->text;

	memset(r, 0, offsetof(struct json_reader, is_map));
	r->calls = calls;
	r->context = context;
	r->text = text;
	r->text.length = 0;
}

void
json_reader_begin_raw(struct json_reader *r,
    const struct json_calls *calls, void *context, unsigned char *kept,
    size_t most)
{
	r->text = (struct hold){ .data = kept, .capacity = most };
	json_reader_begin(r, calls, context);
	r->most = most;
}

void
json_reader_begin_bounded(struct json_reader *r,
    const struct json_calls *calls, void *context,
    unsigned char kept[JSON_BOUND])
{
	r->text = (struct hold){ .data = kept, .capacity = JSON_BOUND };
	json_reader_begin(r, calls, context);
	r->bounded = true;
}

void
json_reader_data(struct json_reader *r, const void *piece, size_t n)
{
	const place start = piece, end = start + n;
	place p = start;

	if (r->stopped == JSON_LIVES)
		p = resume_token(r, start, end);
	while (p < end && r->stopped == JSON_LIVES)
		p = token_begins(r, p, end, r->at + (uint64_t)(p - start));
	r->at += n;
}

bool
json_reader_whole(const struct json_reader *r)
{
	return r->stopped == JSON_LIVES && r->state == OVER &&
	    r->token == TOKEN_NONE;
}
