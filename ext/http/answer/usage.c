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

struct object {
	struct object_facts facts;
	struct finder finder;
};

/* Those of numbers and ids say which: enum usage_number or object_id. */
static const struct finder_row rows[] = {
	{ ROOT, "usage", USAGE, 0 },
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

/* If it is no number of tokens, it is ignored. */
static void
number_take(struct object *o, const struct found *v)
{
	const uint64_t most = UINT64_C(1) << 53;
	uint64_t value = 0;
	size_t i;

	if (v->kind != FOUND_NUMBER)
		return;
	for (i = 0; i < v->n; i++) {
		if (v->text[i] < '0' || v->text[i] > '9')
			return;
		value = value * 10 + (uint64_t)(v->text[i] - '0');
		if (value > most)
			return;
	}
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
		break;
	case CHOICES:
		f->choices |= v->kind == FOUND_LIST;
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
