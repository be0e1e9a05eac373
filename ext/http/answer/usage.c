/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage.c - see usage.h.
 *
 * Names count in their place only: `usage` at the top of the object, in its
 * `message` or in its `response`.
 *
 *   ROOT --+-- usage ----> USAGE ----+-- prompt_tokens, ...     numbers
 *          |                 ^       +-- cached_tokens, ...     numbers
 *          |                 |       +-- prompt_tokens_details,
 *          +-- message --+   |           input_tokens_details --> DETAILS
 *          +-- response -+-> INNER                                  |
 *          +-- timings --> TIMINGS -- cache_n, ...       cached_tokens
 *          +-- choices --> CHOICES -- any element
 *          +-- conversation --> KEPT_BY -- id; also of INNER
 *          +-- id; also of INNER
 *          +-- error, type, object, prompt_progress
 */
#include "usage.h"

#include <stdlib.h>
#include <string.h>

#include "json_finder.h"

enum place {
	ROOT = FOUND_TOP, INNER, USAGE, DETAILS, TIMINGS, CHOICES, CHOICE,
	FAILURE, TYPE, PROGRESS, NUMBER, KEPT_BY, ID
};

/* Marks the usage at the top of the object. */
enum { OF_ROOT = 1 };

#define NUMBER_MOST (UINT64_C(1) << 53)
enum { EXPONENT_MOST = 99 };

struct object {
	struct object_facts facts;
	struct finder finder;
};

/* `which` of a number is an enum usage_number, of an id an enum object_id. */
static const struct finder_row rows[] = {
	{ ROOT, "usage", USAGE, OF_ROOT },
	{ INNER, "usage", USAGE, 0 },
	{ ROOT, "message", INNER, 0 },
	{ ROOT, "response", INNER, 0 },
	{ ROOT, "timings", TIMINGS, 0 },
	{ ROOT, "choices", CHOICES, 0 },
	{ CHOICES, NULL, CHOICE, 0 },
	{ ROOT, "id", ID, OBJECT_ID },
	{ INNER, "id", ID, OBJECT_ID },
	{ ROOT, "conversation", KEPT_BY, 0 },
	{ INNER, "conversation", KEPT_BY, 0 },
	{ KEPT_BY, "id", ID, OBJECT_CONVERSATION },
	{ ROOT, "error", FAILURE, 0 },
	{ ROOT, "type", TYPE, 0 },
	{ ROOT, "object", TYPE, 0 },
	{ ROOT, "prompt_progress", PROGRESS, 0 },
	{ USAGE, "prompt_tokens_details", DETAILS, 0 },
	{ USAGE, "input_tokens_details", DETAILS, 0 },
	{ USAGE, "prompt_tokens", NUMBER, USAGE_PROMPT },
	{ USAGE, "completion_tokens", NUMBER, USAGE_COMPLETION },
	{ USAGE, "input_tokens", NUMBER, USAGE_INPUT },
	{ USAGE, "output_tokens", NUMBER, USAGE_OUTPUT },
	{ USAGE, "cached_tokens", NUMBER, USAGE_FLAT },
	{ USAGE, "num_cached_tokens", NUMBER, USAGE_FLAT },
	{ USAGE, "prompt_cache_hit_tokens", NUMBER, USAGE_HIT },
	{ USAGE, "prompt_cache_miss_tokens", NUMBER, USAGE_MISS },
	{ USAGE, "cache_read_input_tokens", NUMBER, USAGE_READ },
	{ USAGE, "cache_creation_input_tokens", NUMBER, USAGE_CREATED },
	{ DETAILS, "cached_tokens", NUMBER, USAGE_CACHED },
	{ TIMINGS, "cache_n", NUMBER, USAGE_TIMED_CACHE },
	{ TIMINGS, "prompt_n", NUMBER, USAGE_TIMED_PROMPT },
	{ TIMINGS, "predicted_n", NUMBER, USAGE_TIMED_OUTPUT }
};

/* --------------------------------------------------------------- values --- */

static bool
is_text(const void *bytes, size_t n, const char *text)
{
	return n == strlen(text) && memcmp(bytes, text, n) == 0;
}

/*
 * A decimal number as it is read: digits * 10^(zeros + scale). Zeros are added
 * to the digits only when another digit follows.
 */
struct decimal {
	uint64_t digits;
	int zeros, scale;
	bool some, large;
};

static void
digit_add(struct decimal *d, char c)
{
	int i;

	d->some = true;
	if (c == '0') {
		d->zeros++;
		return;
	}
	for (i = 0; i <= d->zeros && d->digits <= NUMBER_MOST; i++)
		d->digits *= 10;
	d->digits += (uint64_t)(c - '0');
	d->zeros = 0;
	d->large |= d->digits > NUMBER_MOST;
}

/* Reads an exponent of JSON's grammar; false: it is absurd. */
static bool
exponent_add(struct decimal *d, const char *text, size_t n)
{
	const bool less = n > 0 && *text == '-';
	size_t i = n > 0 && (*text == '-' || *text == '+');
	int value = 0;

	for (; i < n; i++) {
		value = value * 10 + (text[i] - '0');
		if (value > EXPONENT_MOST)
			return false;
	}
	d->scale += less ? -value : value;
	return true;
}

/* Reads a whole number, such as 640, 640.0 or 6.4e2, of JSON's grammar. */
static bool
number_read(const char *text, size_t n, uint64_t *value)
{
	struct decimal d = { 0, 0, 0, false, false };
	bool fraction = false;
	size_t i;

	for (i = 0; i < n && text[i] != 'e' && text[i] != 'E'; i++) {
		if (text[i] == '.')
			fraction = true;
		else if (text[i] < '0' || text[i] > '9')
			return false;
		else
			digit_add(&d, text[i]);
		d.scale -= fraction && text[i] != '.';
	}
	if (i < n && !exponent_add(&d, text + i + 1, n - i - 1))
		return false;
	if (!d.some || d.large)
		return false;
	for (d.scale += d.zeros; d.digits > 0 && d.scale > 0; d.scale--) {
		d.digits *= 10;
		if (d.digits > NUMBER_MOST)
			return false;
	}
	*value = d.digits;
	return d.digits == 0 || d.scale == 0;
}

/* Ignores a number that cannot be a number of tokens. */
static void
number_take(struct object *o, const struct found *v)
{
	uint64_t value;

	if (v->kind != FOUND_NUMBER || !number_read(v->text, v->n, &value))
		return;
	o->facts.usage.number[v->which] = value;
	o->facts.usage.known |= 1u << v->which;
}

static void
id_take(struct object *o, const struct found *v)
{
	if (v->kind != FOUND_STRING)
		return;
	o->facts.id_length[v->which] = v->cut ? 0 : v->n;
	if (!v->cut)
		memcpy(o->facts.id[v->which], v->text, v->n);
}

static void
type_take(struct object *o, const struct found *v)
{
	static const char *const early[] = { "message_start", "ping",
	    "response.created", "response.queued", "response.in_progress" };
	size_t i;

	if (v->kind != FOUND_STRING || v->cut)
		return;
	for (i = 0; i < sizeof(early) / sizeof(early[0]); i++)
		if (is_text(v->text, v->n, early[i]))
			o->facts.at_once = true;
	if (is_text(v->text, v->n, "error") ||
	    is_text(v->text, v->n, "response.failed"))
		o->facts.error = true;
}

static bool
value_take(void *context, struct found *v)
{
	struct object *o = context;
	struct object_facts *f = &o->facts;

	if (v->kind == FOUND_END)
		return true;
	switch ((enum place)v->place) {
	case ROOT:
		return v->kind == FOUND_MAP;
	case USAGE:
		f->usage.seen |= v->kind == FOUND_MAP;
		f->top_usage |= v->kind == FOUND_MAP && v->which == OF_ROOT;
		break;
	case CHOICES:
		f->choices |= v->kind == FOUND_LIST;
		f->some_choice |= v->kind != FOUND_LIST &&
		    v->kind != FOUND_NULL;
		break;
	case CHOICE:
		f->some_choice = true;
		break;
	case FAILURE:
		f->error |= v->kind != FOUND_NULL;
		break;
	case PROGRESS:
		f->at_once |= v->kind != FOUND_NULL;
		break;
	case TYPE:
		type_take(o, v);
		break;
	case NUMBER:
		number_take(o, v);
		break;
	case ID:
		id_take(o, v);
		break;
	default:
		break;
	}
	return true;
}

/* --------------------------------------------------------------- object --- */

static const struct finder_table table = {
	rows, sizeof(rows) / sizeof(rows[0]), value_take
};

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
	memset(&o->facts, 0, sizeof(o->facts));
	finder_begin(&o->finder, &table, o);
}

void
object_free(struct object *o)
{
	free(o);
}

void
object_data(struct object *o, const void *bytes, size_t n)
{
	finder_data(&o->finder, bytes, n);
}

const struct object_facts *
object_facts(const struct object *o)
{
	return &o->facts;
}

bool
object_lives(const struct object *o)
{
	return finder_lives(&o->finder);
}

bool
object_end(const struct object *o)
{
	return finder_end(&o->finder);
}

/* -------------------------------------------------------------- numbers --- */

/*
 * The last event of Messages may repeat numbers of the first, or have 0 in
 * their place.
 */
void
usage_add(struct usage *sum, const struct usage *later)
{
	size_t i;

	for (i = 0; i < USAGE_NUMBERS; i++)
		if ((later->known >> i & 1) != 0 &&
		    (later->number[i] > 0 || (sum->known >> i & 1) == 0))
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

	if (n[USAGE_PROMPT] > 0)
		return n[USAGE_PROMPT];
	if (has_number(u, USAGE_INPUT))
		return n[USAGE_INPUT] + (has_number(u, USAGE_CACHED) ? 0 :
		    n[USAGE_READ] + n[USAGE_CREATED]);
	if (has_number(u, USAGE_HIT) && has_number(u, USAGE_MISS))
		return n[USAGE_HIT] + n[USAGE_MISS];
	if (has_number(u, USAGE_TIMED_PROMPT) &&
	    has_number(u, USAGE_TIMED_CACHE))
		return n[USAGE_TIMED_PROMPT] + n[USAGE_TIMED_CACHE];
	return 0;
}

/* Finds the first number above 0; false: the engine reports none of them. */
static bool
number_of(const struct usage *u, const enum usage_number *names, size_t n,
    uint64_t *value)
{
	bool known = false;
	size_t i;

	*value = 0;
	for (i = 0; i < n && *value == 0; i++) {
		known |= has_number(u, names[i]);
		*value = u->number[names[i]];
	}
	return known;
}

void
usage_report(const struct usage *u, struct kvr_report *report)
{
	static const enum usage_number cached[] = { USAGE_CACHED, USAGE_FLAT,
	    USAGE_HIT, USAGE_READ, USAGE_TIMED_CACHE };
	static const enum usage_number output[] = { USAGE_COMPLETION,
	    USAGE_OUTPUT, USAGE_TIMED_OUTPUT };

	report->kind = u->seen ? KVR_REPORT_ABSENT : KVR_REPORT_NONE;
	report->prompt_tokens = prompt_tokens(u);
	if (number_of(u, cached, sizeof(cached) / sizeof(cached[0]),
	    &report->cached_tokens))
		report->kind = KVR_REPORT_VALUE;
	(void)number_of(u, output, sizeof(output) / sizeof(output[0]),
	    &report->completion_tokens);
}
