/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage.c - see usage.h.
 *
 * Names count in their place only: `usage` at the top of the object, in its
 * `message` or in its `response`.
 *
 *   ROOT --+-- usage ----> USAGE ----+-- prompt_tokens, ...     numbers
 *          |                 ^       +-- prompt_tokens_details,
 *          +-- message --+   |           input_tokens_details --> DETAILS
 *          +-- response -+-> INNER                                  |
 *          +-- timings --> TIMINGS -- cache_n, ...       cached_tokens
 *          +-- choices --> CHOICES -- its first element
 *          +-- conversation --> KEPT_BY -- id; also of INNER
 *          +-- id; also of INNER
 *          +-- error, type, object, prompt_progress
 */
#include "usage.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

enum {
	KEPT = OBJECT_ID_MAX, /* bytes of a string */
	NUMBER_KEPT = 40,  /* of a number */
	DEPTH_MAX = 100,   /* of nesting; YAJL takes a byte a level, and 128 */
	PLACES = 5,        /* nesting at which names can matter */
	ARENA = 4096       /* YAJL takes about 2.6 kB */
};

enum place {
	NOWHERE, ROOT, INNER, USAGE, DETAILS, TIMINGS, CHOICES, CHOICE, FAILURE,
	TYPE, PROGRESS, NUMBER, KEPT_BY, ID
};

/* State of thinning: outside strings, in a kept part, or past it. */
enum thin { OUTSIDE, KEEPING, SKIPPING, ESCAPED };

struct object {
	yajl_handle yajl;           /* in the arena */
	jmp_buf used_up;
	size_t used;
	bool dead;
	enum thin thin;
	size_t kept;                /* bytes of the token at hand */
	size_t depth;
	enum place places[PLACES];  /* of the maps and lists we are in */
	enum place next;            /* of the value that comes next */
	unsigned which;             /* NUMBER or ID */
	struct object_facts facts;
	alignas(max_align_t) unsigned char arena[ARENA];
};

/* ---------------------------------------------------------------- names --- */

struct name {
	const char *text;
	enum place in, is;
	unsigned which; /* enum usage_number or object_id */
};
static const struct name names[] = {
	{ "usage", ROOT, USAGE, 0 },
	{ "usage", INNER, USAGE, 0 },
	{ "message", ROOT, INNER, 0 },
	{ "response", ROOT, INNER, 0 },
	{ "timings", ROOT, TIMINGS, 0 },
	{ "choices", ROOT, CHOICES, 0 },
	{ "id", ROOT, ID, OBJECT_ID },
	{ "id", INNER, ID, OBJECT_ID },
	{ "conversation", ROOT, KEPT_BY, 0 },
	{ "conversation", INNER, KEPT_BY, 0 },
	{ "id", KEPT_BY, ID, OBJECT_CONVERSATION },
	{ "error", ROOT, FAILURE, 0 },
	{ "type", ROOT, TYPE, 0 },
	{ "object", ROOT, TYPE, 0 },
	{ "prompt_progress", ROOT, PROGRESS, 0 },
	{ "prompt_tokens_details", USAGE, DETAILS, 0 },
	{ "input_tokens_details", USAGE, DETAILS, 0 },
	{ "prompt_tokens", USAGE, NUMBER, USAGE_PROMPT },
	{ "completion_tokens", USAGE, NUMBER, USAGE_COMPLETION },
	{ "input_tokens", USAGE, NUMBER, USAGE_INPUT },
	{ "output_tokens", USAGE, NUMBER, USAGE_OUTPUT },
	{ "cache_read_input_tokens", USAGE, NUMBER, USAGE_READ },
	{ "cache_creation_input_tokens", USAGE, NUMBER, USAGE_CREATED },
	{ "cached_tokens", DETAILS, NUMBER, USAGE_CACHED },
	{ "cache_n", TIMINGS, NUMBER, USAGE_TIMED_CACHE },
	{ "prompt_n", TIMINGS, NUMBER, USAGE_TIMED_PROMPT },
	{ "predicted_n", TIMINGS, NUMBER, USAGE_TIMED_OUTPUT }
};

static bool
is_text(const void *bytes, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(bytes, text, n) == 0;
}

/* The kind of the current map. */
static enum place
place_here(const struct object *o)
{
	return o->depth <= PLACES ? o->places[o->depth - 1] : NOWHERE;
}

static int
on_key(void *context, const unsigned char *bytes, size_t n)
{
	struct object *o = context;
	const enum place in = place_here(o);
	size_t i;

	o->next = NOWHERE;
	if (in == NOWHERE)
		return 1;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].in == in && is_text(bytes, n, names[i].text)) {
			o->next = names[i].is;
			o->which = names[i].which;
		}
	return 1;
}

/* --------------------------------------------------------------- values --- */

/* Any value but null. */
static int
on_value(struct object *o)
{
	if (o->depth == 0)
		return 0;
	if (o->next == CHOICE)
		o->facts.some_choice = true;
	else if (o->next == FAILURE)
		o->facts.error = true;
	else if (o->next == PROGRESS)
		o->facts.at_once = true;
	return 1;
}

static int
on_null(void *context)
{
	struct object *o = context;

	o->facts.some_choice |= o->next == CHOICE;
	return o->depth > 0;
}

static int
on_boolean(void *context, int value)
{
	(void)value;
	return on_value(context);
}

/* A number of tokens; if it is not one, it is ignored. */
static int
on_number(void *context, const char *digits, size_t n)
{
	const uint64_t most = UINT64_C(1) << 53;
	struct object *o = context;
	uint64_t value = 0;
	size_t i;

	if (o->next != NUMBER)
		return on_value(o);
	for (i = 0; i < n; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return 1;
		value = value * 10 + (uint64_t)(digits[i] - '0');
		if (value > most)
			return 1;
	}
	o->facts.usage.number[o->which] = value;
	o->facts.usage.known |= 1u << o->which;
	return 1;
}

/* A question mark at the end is where it was cut. */
static void
id_keep(struct object *o, const unsigned char *bytes, size_t n)
{
	const bool whole = n > 0 && n <= OBJECT_ID_MAX && bytes[n - 1] != '?';

	o->facts.id_length[o->which] = whole ? n : 0;
	if (whole)
		memcpy(o->facts.id[o->which], bytes, n);
}

static int
on_string(void *context, const unsigned char *bytes, size_t n)
{
	static const char *const early[] = { "message_start", "ping",
	    "response.created", "response.queued", "response.in_progress" };
	struct object *o = context;
	size_t i;

	if (o->next == ID)
		id_keep(o, bytes, n);
	if (o->next == TYPE) {
		for (i = 0; i < sizeof(early) / sizeof(early[0]); i++)
			if (is_text(bytes, n, early[i]))
				o->facts.at_once = true;
		if (is_text(bytes, n, "error") ||
		    is_text(bytes, n, "response.failed"))
			o->facts.error = true;
	}
	return on_value(o);
}

static int
place_enter(struct object *o, enum place place, enum place next)
{
	if (o->depth == DEPTH_MAX)
		return 0;
	if (o->depth < PLACES)
		o->places[o->depth] = place;
	o->depth++;
	o->next = next;
	return 1;
}

static int
on_map(void *context)
{
	struct object *o = context;
	const enum place place = o->next;

	if (o->depth == 0)
		return place_enter(o, ROOT, NOWHERE);
	if (!on_value(o))
		return 0;
	if (place == USAGE)
		o->facts.usage.seen = true;
	return place_enter(o, place, NOWHERE);
}

static int
on_list(void *context)
{
	struct object *o = context;
	const bool choices = o->next == CHOICES;

	if (!on_value(o))
		return 0;
	o->facts.choices |= choices;
	return place_enter(o, NOWHERE, choices ? CHOICE : NOWHERE);
}

/* A key follows, or an element that is not the first. */
static int
on_end(void *context)
{
	struct object *o = context;

	o->depth--;
	o->next = NOWHERE;
	return 1;
}

/* -------------------------------------------------------------- YAJL --- */

/* Each allocation records its length: realloc needs it. */
static void *
block_take(void *context, size_t n)
{
	struct object *o = context;
	const size_t head = alignof(max_align_t);
	unsigned char *p = o->arena + o->used;

	if (n > ARENA || n + 2 * head > ARENA - o->used)
		longjmp(o->used_up, 1);
	memcpy(p, &n, sizeof(n));
	o->used += head + (n + head - 1) / head * head;
	return p + head;
}

static void *
take_more(void *context, void *old, size_t n)
{
	unsigned char *p = block_take(context, n);
	size_t before;

	if (old != NULL) {
		memcpy(&before, (unsigned char *)old - alignof(max_align_t),
		    sizeof(before));
		memcpy(p, old, before < n ? before : n);
	}
	return p;
}

/* The arena is released as a whole. */
static void
take_back(void *context, void *p)
{
	(void)context;
	(void)p;
}

static const yajl_callbacks callbacks = {
	.yajl_null = on_null, .yajl_boolean = on_boolean,
	.yajl_number = on_number, .yajl_string = on_string,
	.yajl_start_map = on_map, .yajl_map_key = on_key,
	.yajl_end_map = on_end, .yajl_start_array = on_list,
	.yajl_end_array = on_end
};

/* Sets dead if the arena is exhausted. */
static void
make_parser(struct object *o)
{
	yajl_alloc_funcs memory = { block_take, take_more, take_back, o };

	if (setjmp(o->used_up) != 0) {
		o->dead = true;
		return;
	}
	o->yajl = yajl_alloc(&callbacks, &memory, o);
	/* Strings may be cut within a character. */
	yajl_config(o->yajl, yajl_dont_validate_strings, 1);
}

struct object *
object_new(void)
{
	struct object *o = malloc(sizeof(*o));

	if (o != NULL)
		object_again(o);
	return o;
}

void
object_again(struct object *o)
{
	memset(o, 0, offsetof(struct object, arena));
	make_parser(o);
}

void
object_free(struct object *o)
{
	free(o);
}

/* n bytes more, or the end. */
static void
object_parse(struct object *o, const char *bytes, size_t n)
{
	yajl_status status;

	if (o->dead)
		return;
	if (setjmp(o->used_up) != 0) {
		o->dead = true;
		return;
	}
	status = bytes == NULL ? yajl_complete_parse(o->yajl) :
	    yajl_parse(o->yajl, (const unsigned char *)bytes, n);
	if (status != yajl_status_ok)
		o->dead = true;
}

/* ------------------------------------------------------------- thinning --- */

static bool
ends_token(char c)
{
	switch (c) {
	case ' ': case '\t': case '\r': case '\n': case ',': case ':':
	case '[': case ']': case '{': case '}':
		return true;
	default:
		return false;
	}
}

/* The first byte that is not like those before. */
static const char *
pass_outside(struct object *o, const char *at, const char *end)
{
	for (; at < end; at++) {
		if (*at == '"') {
			o->thin = KEEPING;
			o->kept = 0;
			return at + 1;
		}
		if (ends_token(*at))
			o->kept = 0;
		else if (++o->kept > NUMBER_KEPT)
			o->dead = true;
	}
	return at;
}

static const char *
pass_keeping(struct object *o, const char *at, const char *end)
{
	for (; at < end; at++) {
		if (*at == '"') {
			o->thin = OUTSIDE;
			o->kept = 0;
			return at + 1;
		}
		if (*at == '\\' || o->kept++ == KEPT) {
			o->thin = SKIPPING;
			return at;
		}
	}
	return at;
}

/* The closing quote, or end. */
static const char *
pass_skipping(struct object *o, const char *at, const char *end)
{
	const char *quote = NULL, *escape;

	if (o->thin == ESCAPED && at < end) {
		at++;
		o->thin = SKIPPING;
	}
	while (at < end) {
		if (quote == NULL || quote < at)
			quote = memchr(at, '"', (size_t)(end - at));
		if (quote == NULL)
			quote = end;
		escape = memchr(at, '\\', (size_t)(quote - at));
		if (escape == NULL)
			return quote;
		if (escape + 1 == end)
			o->thin = ESCAPED;
		at = escape + 1 == end ? end : escape + 2;
	}
	return end;
}

/*
 * Passes on all but the rest of long strings, which becomes a question mark, so
 * that cutting never makes a name.
 */
void
object_data(struct object *o, const void *bytes, size_t n)
{
	const char *at = bytes, *from = at;
	const char *const end = at + n;

	while (at < end && !o->dead) {
		if (o->thin == OUTSIDE) {
			at = pass_outside(o, at, end);
		} else if (o->thin == KEEPING) {
			at = pass_keeping(o, at, end);
			if (o->thin != SKIPPING)
				continue;
			object_parse(o, from, (size_t)(at - from));
			object_parse(o, "?", 1);
			from = end;
		} else {
			from = at = pass_skipping(o, at, end);
			if (at < end) {
				o->thin = KEEPING;
				o->kept = 0;
			}
		}
	}
	if (from < at && !o->dead)
		object_parse(o, from, (size_t)(at - from));
}

const struct object_facts *
object_facts(const struct object *o)
{
	return &o->facts;
}

bool
object_lives(const struct object *o)
{
	return !o->dead;
}

bool
object_end(struct object *o)
{
	object_parse(o, NULL, 0);
	return !o->dead;
}

/* -------------------------------------------------------------- numbers --- */

void
usage_add(struct usage *sum, const struct usage *later)
{
	size_t i;

	for (i = 0; i < USAGE_NUMBERS; i++)
		if (later->known >> i & 1)
			sum->number[i] = later->number[i];
	sum->known |= later->known;
	sum->seen |= later->seen;
}

static bool
has_number(const struct usage *u, enum usage_number which)
{
	return u->known >> which & 1;
}

/* Only Anthropic's input numbers exclude cached tokens. */
static uint64_t
prompt_tokens(const struct usage *u)
{
	const uint64_t *n = u->number;

	if (has_number(u, USAGE_PROMPT))
		return n[USAGE_PROMPT];
	if (has_number(u, USAGE_INPUT))
		return n[USAGE_INPUT] + (has_number(u, USAGE_CACHED) ? 0 :
		    n[USAGE_READ] + n[USAGE_CREATED]);
	if (has_number(u, USAGE_TIMED_PROMPT) &&
	    has_number(u, USAGE_TIMED_CACHE))
		return n[USAGE_TIMED_PROMPT] + n[USAGE_TIMED_CACHE];
	return 0;
}

void
usage_report(const struct usage *u, struct kvr_report *report)
{
	static const enum usage_number cached[] = { USAGE_CACHED, USAGE_READ,
	    USAGE_TIMED_CACHE };
	static const enum usage_number output[] = { USAGE_COMPLETION,
	    USAGE_OUTPUT, USAGE_TIMED_OUTPUT };
	size_t i;

	report->kind = u->seen ? KVR_REPORT_ABSENT : KVR_REPORT_NONE;
	report->prompt_tokens = prompt_tokens(u);
	report->cached_tokens = 0;
	report->completion_tokens = 0;
	for (i = 3; i-- > 0;) {
		if (has_number(u, cached[i])) {
			report->kind = KVR_REPORT_VALUE;
			report->cached_tokens = u->number[cached[i]];
		}
		if (has_number(u, output[i]))
			report->completion_tokens = u->number[output[i]];
	}
}
