/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_json.c - the grammar of JSON, over a body that comes in pieces.
 *
 *   state        {  "a"  :  1  ,  "b"  :  [  2  ,  3  ]  }
 *                |  |    |  |  |  |    |  |  |  |  |  |  OVER
 *     START -----+  |    |  |  |  |    |  |  |  |  |  MAP_NEXT
 *     FIRST_KEY ----+    |  |  |  |    |  |  |  |  LIST_NEXT
 *     COLON -------------+  |  |  |    |  |  |  ELEMENT
 *     MAP_VALUE ------------+  |  |    |  |  LIST_NEXT
 *     MAP_NEXT ----------------+  |    |  FIRST_ELEMENT
 *     NEXT_KEY -------------------+    MAP_VALUE
 *
 * It calls body_shape.c with each key, value, begin and end, in their order. A
 * string in one piece and without escapes is given where it lies; any other is
 * gathered in `text`, which is used for cut numbers too.
 *
 * A piece may end anywhere. Between pieces `token` says what was cut:
 *
 *   ... "aa\u00 | e4b" ...     text: aa    rest: \u00
 *   ... 12.     | 5e7, ...     text: 12.   number: POINT
 *   ... tr      | ue, ...      word: ue
 *
 * No byte is read twice, except those of `rest`, of which there are few. It
 * accepts what YAJL accepts, the parser that it replaced, and reports the same
 * to the byte; tests/http/body_yajl.h is the comparison.
 */
#include "body_in.h"

#include "body_string.h"

/* --------------------------------------------------------------- states --- */

enum json_state {
	START = 0,
	MAP_VALUE,
	FIRST_ELEMENT, /* or the end */
	ELEMENT,
	FIRST_KEY,     /* or the end */
	NEXT_KEY,
	COLON,
	MAP_NEXT,      /* a comma, or the end */
	LIST_NEXT,
	OVER
};

enum json_token { TOKEN_NONE = 0, TOKEN_STRING, TOKEN_NUMBER, TOKEN_WORD };

/* What the number so far ends in. */
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

static place
stop_at(struct body *b, place end, enum body_outcome why)
{
	body_stop(b, why);
	return end;
}

static bool
wants_value(const struct body *b)
{
	return b->state <= ELEMENT;
}

/* After a value has been reported; false: body_shape.c wants no more. */
static void
value_done(struct body *b, bool more)
{
	if (!more)
		body_stop(b, BODY_NOT_JSON);
	b->state = b->state == START ? OVER :
	    b->state == MAP_VALUE ? MAP_NEXT : LIST_NEXT;
}

/* -------------------------------------------------------------- strings --- */

static void
string_done(struct body *b, const unsigned char *text, size_t n)
{
	b->token = TOKEN_NONE;
	if (wants_value(b)) {
		value_done(b, body_on_string(b, text, n));
	} else if (b->state == FIRST_KEY || b->state == NEXT_KEY) {
		if (!body_on_key(b, text, n))
			body_stop(b, BODY_NOT_JSON);
		b->state = COLON;
	} else {
		body_stop(b, BODY_NOT_JSON);
	}
}

/* Keeps what is no whole character or escape for the next piece. */
static place
string_cut(struct body *b, place p, place end)
{
	b->rest_length = (size_t)(end - p);
	memcpy(b->rest, p, b->rest_length);
	return end;
}

/* The string goes on here. */
static place
string_on(struct body *b, place p, place end)
{
	enum string_stop why = STRING_FULL;
	struct hold *t = &b->text;
	size_t written;

	while (why == STRING_FULL) {
		if (!hold_reserve(t, 2 * STRING_SLACK))
			return stop_at(b, end, BODY_NO_MEMORY);
		p += string_decode(p, (size_t)(end - p), t->data + t->length,
		    t->capacity - t->length, &written, &why);
		t->length += written;
	}
	if (why == STRING_BAD)
		return stop_at(b, end, BODY_NOT_JSON);
	if (why == STRING_MORE)
		return string_cut(b, p, end);
	string_done(b, t->data, t->length);
	return p + 1;
}

/* After a quote. */
static place
string_begins(struct body *b, place p, place end)
{
	enum string_stop why;
	size_t n = string_plain(p, (size_t)(end - p), &why);

	if (why == STRING_QUOTE) {
		string_done(b, p, n);
		return p + n + 1;
	}
	if (why == STRING_BAD)
		return stop_at(b, end, BODY_NOT_JSON);
	b->token = TOKEN_STRING;
	b->text.length = 0;
	if (!hold_append(&b->text, p, n))
		return stop_at(b, end, BODY_NO_MEMORY);
	return string_on(b, p + n, end);
}

/*
 * The rest and the first bytes of this piece, one after the other, as far as
 * the rest goes: what follows is read where it lies.
 */
static place
string_join(struct body *b, place p, place end)
{
	unsigned char join[2 * STRING_UNIT];
	const size_t had = b->rest_length;
	size_t n = sizeof(join) - had, at, written;
	enum string_stop why;
	struct hold *t = &b->text;

	if (n > (size_t)(end - p))
		n = (size_t)(end - p);
	memcpy(join, b->rest, had);
	memcpy(join + had, p, n);
	if (!hold_reserve(t, 2 * STRING_SLACK))
		return stop_at(b, end, BODY_NO_MEMORY);
	at = string_decode(join, had + n, t->data + t->length,
	    t->capacity - t->length, &written, &why);
	t->length += written;
	b->rest_length = 0;
	if (why == STRING_BAD)
		return stop_at(b, end, BODY_NOT_JSON);
	if (at < had) {
		(void)string_cut(b, join + at, join + had + n);
		return end;
	}
	p += at - had;
	if (why == STRING_MORE)
		return string_on(b, p, end);
	string_done(b, t->data, t->length);
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
number_done(struct body *b, const void *digits, size_t n)
{
	b->token = TOKEN_NONE;
	if (wants_value(b))
		value_done(b, body_on_number(b, digits, n));
	else
		body_stop(b, BODY_NOT_JSON);
}

/* Reads on at p; what precedes it, from `start` on, has been read. */
static place
number_on(struct body *b, place start, place p, place end)
{
	enum number next = b->number;
	bool whole;

	for (; p < end; p++) {
		next = number_next(b->number, *p);
		if (next >= NUMBER_ENDS)
			break;
		b->number = (unsigned char)next;
	}
	if (next == NUMBER_BAD)
		return stop_at(b, end, BODY_NOT_JSON);
	whole = p < end;
	if (whole && b->token == TOKEN_NONE) {
		number_done(b, start, (size_t)(p - start));
		return p;
	}
	if (!hold_append(&b->text, start, (size_t)(p - start)))
		return stop_at(b, end, BODY_NO_MEMORY);
	b->token = TOKEN_NUMBER;
	if (whole)
		number_done(b, b->text.data, b->text.length);
	return p;
}

static place
number_begins(struct body *b, place p, place end)
{
	size_t row = b->state == ELEMENT ?
	    body_tokens(b, p, (size_t)(end - p)) : 0;

	if (row > 0)
		return p + row;
	b->text.length = 0;
	b->number = *p == '-' ? MINUS : *p == '0' ? ZERO : DIGIT;
	return number_on(b, p, p + 1, end);
}

/* ---------------------------------------------------------------- words --- */

static void
word_done(struct body *b, unsigned char first)
{
	b->token = TOKEN_NONE;
	if (!wants_value(b))
		body_stop(b, BODY_NOT_JSON);
	else
		value_done(b, first == 'n' ? body_on_null(b) :
		    body_on_boolean(b, first == 't'));
}

/* The first letter is read; b->word is where its word continues. */
static place
word_on(struct body *b, place p, place end)
{
	static const char words[] = "true\0false\0null";

	b->token = TOKEN_WORD;
	for (; p < end && words[b->word] != '\0'; p++, b->word++)
		if (*p != (unsigned char)words[b->word])
			return stop_at(b, end, BODY_NOT_JSON);
	if (b->word == 4 || b->word == 10 || b->word == 15)
		word_done(b, b->word == 4 ? 't' : b->word == 10 ? 'f' : 'n');
	return p;
}

static place
word_begins(struct body *b, place p, place end)
{
	b->word = *p == 't' ? 1 : *p == 'f' ? 6 : 12;
	return word_on(b, p + 1, end);
}

/* ---------------------------------------------------- objects and lists --- */

static void
level_begins(struct body *b, bool is_map)
{
	if (!wants_value(b) || !(is_map ? body_on_map(b) : body_on_list(b))) {
		body_stop(b, BODY_NOT_JSON);
		return;
	}
	b->is_map[b->depth] = is_map;
	b->state = is_map ? FIRST_KEY : FIRST_ELEMENT;
}

static void
level_ends(struct body *b, bool is_map, uint64_t at)
{
	const unsigned state = b->state;

	if (is_map ? state != FIRST_KEY && state != MAP_NEXT :
	    state != FIRST_ELEMENT && state != LIST_NEXT) {
		body_stop(b, BODY_NOT_JSON);
		return;
	}
	if (!body_on_end(b, at))
		body_stop(b, BODY_NOT_JSON);
	b->state = b->depth == 0 ? OVER :
	    b->is_map[b->depth] ? MAP_NEXT : LIST_NEXT;
}

static void
take_punctuation(struct body *b, unsigned char c)
{
	if (c == ':' && b->state == COLON)
		b->state = MAP_VALUE;
	else if (c == ',' && b->state == MAP_NEXT)
		b->state = NEXT_KEY;
	else if (c == ',' && b->state == LIST_NEXT)
		b->state = ELEMENT;
	else
		body_stop(b, BODY_NOT_JSON);
}

/* --------------------------------------------------------------- pieces --- */

/* One token, which begins at p. */
static place
token_begins(struct body *b, place p, place end, uint64_t at)
{
	switch (*p) {
	case ' ': case '\t': case '\n': case '\v': case '\f': case '\r':
		return p + 1;
	case '"':
		return string_begins(b, p + 1, end);
	case '{': case '[':
		level_begins(b, *p == '{');
		return p + 1;
	case '}': case ']':
		level_ends(b, *p == '}', at);
		return p + 1;
	case ':': case ',':
		take_punctuation(b, *p);
		return p + 1;
	case 't': case 'f': case 'n':
		return word_begins(b, p, end);
	case '-': case '0': case '1': case '2': case '3': case '4':
	case '5': case '6': case '7': case '8': case '9':
		return number_begins(b, p, end);
	default:
		return stop_at(b, end, BODY_NOT_JSON);
	}
}

/* What the last piece has cut. */
static place
resume_token(struct body *b, place p, place end)
{
	switch (b->token) {
	case TOKEN_STRING:
		return b->rest_length > 0 ? string_join(b, p, end) :
		    string_on(b, p, end);
	case TOKEN_NUMBER:
		return number_on(b, p, p, end);
	case TOKEN_WORD:
		return word_on(b, p, end);
	default:
		return p;
	}
}

void
body_json_begin(struct body *b)
{
	b->state = START;
	b->token = TOKEN_NONE;
	b->rest_length = 0;
	b->text.length = 0;
}

void
body_json(struct body *b, const void *piece, size_t n)
{
	const place start = piece, end = start + n;
	place p = resume_token(b, start, end);

	while (p < end && !b->stopped)
		p = token_begins(b, p, end, b->fed + (uint64_t)(p - start));
}
