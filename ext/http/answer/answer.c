/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answer.c - see answer.h.
 *
 * Most events of a stream carry one token and nothing else, and most lie whole
 * in one piece. Such events are searched for the few words that matter and are
 * not parsed:
 *
 *   piece  | data: {...}   data: {...}   data: {..|
 *              \_________/   \_________/   \____/
 *               whole: search for "usage", cut: parse this part, and the rest
 *               "timings", "error", ...    when it arrives
 *
 * Until the response has started all events are parsed, so that the result does
 * not depend on how the stream was cut. The search may find too much, but never
 * too little: the parser ignores names written with escapes, too.
 *
 * When stripping, the bytes of an event end in one of four ways:
 *
 *   undecided --+-- at the end of the piece --> held
 *               +-- no object, too long --> passed
 *               +-- its end: usage and no choice --> dropped
 *               +-- its end: usage and a choice --> passed without usage
 *               '-- its end, otherwise --> passed
 *
 * At most one event is held. It precedes everything else in a piece, so held
 * bytes are passed, if at all, before any others.
 */
#include "answer.h"

#include "events.h"
#include "text_hold.h"
#include "usage_cut.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The part of an event that the client has not asked for. */
enum extra { EXTRA_NOTHING, EXTRA_MEMBER, EXTRA_EVENT };

struct answer {
	enum answer_kind kind;
	bool strip;
	bool started, failed;
	uint64_t n_events;       /* since it has started */
	struct events events;
	struct usage usage;
	size_t id_length[OBJECT_IDS];
	char id[OBJECT_IDS][OBJECT_ID_MAX];
	/* The current event, or the whole of a JSON response. */
	bool has_data;
	bool lost;               /* no memory to parse it */
	bool stays;              /* its begin has passed: it is not dropped */
	struct object *object;   /* while it is being parsed */
	struct object *spare;    /* left by an earlier response, or NULL */
	const char *whole;       /* its only line, in this piece; not parsed */
	size_t n_whole;
	/* Stripping. */
	bool dropped;            /* the previous event */
	struct hold held;
};

/* The output to the client; a NULL sink: nothing is stripped. */
struct sink {
	char *out;
	size_t n;
	const char *from;  /* the piece is processed up to here */
	const char *begin; /* the current event begins here, in this piece */
};

struct answer *
answer_new(void)
{
	return calloc(1, sizeof(struct answer));
}

void
answer_free(struct answer *a)
{
	if (a == NULL)
		return;
	object_free(a->object);
	object_free(a->spare);
	hold_free(&a->held);
	free(a);
}

void
answer_begin(struct answer *a, enum answer_kind kind, bool strip)
{
	struct object *spare = a->spare;

	object_free(a->object);
	hold_free(&a->held);
	memset(a, 0, sizeof(*a));
	a->spare = spare;
	a->kind = kind;
	a->strip = strip && kind == ANSWER_STREAM;
}

/* -------------------------------------------------------------- objects --- */

static void
object_take(struct answer *a)
{
	a->object = a->spare != NULL ? a->spare : object_new();
	if (a->spare != NULL)
		object_again(a->spare);
	a->spare = NULL;
}

/* A stream keeps nothing; a response that ends keeps its object. */
static void
object_leave(struct answer *a)
{
	if (a->kind == ANSWER_JSON && a->spare == NULL)
		a->spare = a->object;
	else
		object_free(a->object);
	a->object = NULL;
}

static void
usage_feed(struct answer *a, const char *bytes, size_t n)
{
	if (a->object == NULL && !a->lost) {
		object_take(a);
		a->lost = a->object == NULL;
	}
	if (!a->lost)
		object_data(a->object, bytes, n);
}

/* Parses the deferred line, because its content is needed now. */
static void
parse_whole(struct answer *a)
{
	if (a->whole != NULL)
		usage_feed(a, a->whole, a->n_whole);
	a->whole = NULL;
}

static void
ids_keep(struct answer *a, const struct object_facts *f)
{
	size_t i;

	for (i = 0; i < OBJECT_IDS; i++) {
		if (a->id_length[i] > 0)
			continue;
		a->id_length[i] = f->id_length[i];
		memcpy(a->id[i], f->id[i], f->id_length[i]);
	}
}

static enum extra
extra_of(const struct object_facts *f)
{
	if (!f->top_usage)
		return EXTRA_NOTHING;
	return f->some_choice || f->error ? EXTRA_MEMBER : EXTRA_EVENT;
}

/* The object has ended: takes its numbers, ids and kind. */
static enum extra
usage_conclude(struct answer *a)
{
	const struct object_facts *f;
	enum extra extra = EXTRA_NOTHING;

	if (a->object != NULL && object_end(a->object)) {
		f = object_facts(a->object);
		usage_add(&a->usage, &f->usage);
		if (!a->started)
			ids_keep(a, f);
		a->failed |= f->error;
		a->started |= a->kind == ANSWER_STREAM && !f->error &&
		    !f->at_once && (!f->choices || f->some_choice);
		extra = extra_of(f);
	}
	object_leave(a);
	return extra;
}

/* Is the value of a name null? The name's closing quote is before `at`. */
static bool
is_null(const char *at, const char *end)
{
	bool colon = false;

	for (; at < end; at++) {
		if (*at == ':' && !colon)
			colon = true;
		else if (*at != ' ' && *at != '\t')
			break;
	}
	return colon && end - at >= 4 && memcmp(at, "null", 4) == 0;
}

/* Does a whole line hold a name that must be parsed? */
static bool
needs_parsing(const char *at, size_t n)
{
	static const struct {
		const char *text; /* after its opening quote */
		size_t n;
	} words[] = { { "usage\"", 6 }, { "timings\"", 8 },
	    { "error\"", 6 }, { "response.failed\"", 16 } };
	const char *const end = at + n;
	size_t i;

	while ((at = memchr(at, '"', (size_t)(end - at))) != NULL) {
		at++;
		for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			if ((size_t)(end - at) >= words[i].n &&
			    *at == words[i].text[0] &&
			    memcmp(at, words[i].text, words[i].n) == 0 &&
			    !is_null(at + words[i].n, end))
				return true;
	}
	return false;
}

/* ------------------------------------------------------------ stripping --- */

static void
sink_give(struct sink *s, const char *to)
{
	size_t n = (size_t)(to - s->from);

	if (n > 0)
		memcpy(s->out + s->n, s->from, n);
	s->n += n;
	s->from = to;
}

static void
give_held(struct answer *a, struct sink *s)
{
	if (a->held.length > 0)
		memcpy(s->out + s->n, a->held.data, a->held.length);
	s->n += a->held.length;
	hold_free(&a->held);
}

/* The event has ended before `at`. */
static void
event_settle(struct answer *a, struct sink *s, const char *at,
    enum extra extra)
{
	size_t n = a->held.length + (size_t)(at - s->begin), start;

	if (a->stays || n > ANSWER_HELD_MAX)
		extra = EXTRA_NOTHING;
	a->dropped = extra == EXTRA_EVENT;
	if (a->dropped) {
		sink_give(s, s->begin);
		s->from = at;
		hold_free(&a->held);
	} else {
		if (extra == EXTRA_MEMBER)
			sink_give(s, s->begin);
		start = s->n;
		give_held(a, s);
		if (extra == EXTRA_MEMBER) {
			sink_give(s, at);
			s->n = start + usage_cut(s->out + start, n);
		}
	}
	s->begin = at;
}

/* The LF at `at` belongs to the event that the CR before it has ended. */
static void
settle_lf(const struct answer *a, struct sink *s, const char *at)
{
	if (a->dropped)
		s->from = at;
	s->begin = at;
}

/* The piece ends within an event, or between two. */
static void
settle_rest(struct answer *a, struct sink *s, const char *end)
{
	const bool cannot = a->lost || (a->object != NULL &&
	    !object_lives(a->object));
	const size_t n = (size_t)(end - s->begin);

	if (n > 0 && !a->stays && !cannot &&
	    n <= ANSWER_HELD_MAX - a->held.length &&
	    hold_append(&a->held, s->begin, n)) {
		sink_give(s, s->begin);
		return;
	}
	a->stays |= s->begin < end;
	give_held(a, s);
	sink_give(s, end);
}

/* --------------------------------------------------------------- events --- */

static void
on_data(struct answer *a, const struct events_part *part)
{
	if (!a->has_data && part->first && part->last) {
		a->whole = part->bytes;
		a->n_whole = part->n;
	} else {
		parse_whole(a);
		if (a->has_data && part->first)
			usage_feed(a, "\n", 1);
		usage_feed(a, part->bytes, part->n);
	}
	a->has_data = true;
}

static enum extra
end_event(struct answer *a)
{
	enum extra extra;

	if (a->whole != NULL && (!a->started ||
	    needs_parsing(a->whole, a->n_whole)))
		parse_whole(a);
	a->whole = NULL;
	extra = usage_conclude(a);
	a->n_events += a->started && a->has_data;
	a->has_data = a->lost = false;
	return extra;
}

static void
read_events(struct answer *a, const char *bytes, size_t n, struct sink *s)
{
	struct events_piece piece = { bytes, bytes + n, NULL };
	struct events_part part;
	enum events_what what;
	enum extra extra;

	while ((what = events_next(&a->events, &piece, &part)) !=
	    EVENTS_MORE) {
		if (what == EVENTS_DATA) {
			on_data(a, &part);
		} else if (what == EVENTS_END) {
			extra = end_event(a);
			if (s != NULL)
				event_settle(a, s, piece.at, extra);
			a->stays = false;
		} else if (s != NULL) {
			settle_lf(a, s, piece.at);
		}
	}
	parse_whole(a);
	if (s != NULL)
		settle_rest(a, s, piece.end);
}

void
answer_data(struct answer *a, const void *bytes, size_t n)
{
	if (n == 0)
		return;
	if (a->kind == ANSWER_STREAM)
		read_events(a, bytes, n, NULL);
	else
		usage_feed(a, bytes, n);
}

size_t
answer_strip(struct answer *a, const void *bytes, size_t n, void *out)
{
	struct sink s = { out, 0, bytes, bytes };

	if (n == 0)
		return 0;
	if (a->strip) {
		read_events(a, bytes, n, &s);
		return s.n;
	}
	answer_data(a, bytes, n);
	memcpy(out, bytes, n);
	return n;
}

size_t
answer_held(const struct answer *a)
{
	return a->held.length;
}

size_t
answer_flush(struct answer *a, void *out)
{
	struct sink s = { out, 0, NULL, NULL };
	enum extra extra = end_event(a);

	if (a->stays)
		extra = EXTRA_NOTHING;
	if (extra != EXTRA_EVENT)
		give_held(a, &s);
	if (extra == EXTRA_MEMBER)
		s.n = usage_cut(s.out, s.n);
	hold_free(&a->held);
	return s.n;
}

bool
answer_started(const struct answer *a)
{
	return a->started;
}

uint64_t
answer_events(const struct answer *a)
{
	return a->n_events;
}

/* The id of a JSON response is found while it is being read, too. */
bool
answer_id(const struct answer *a, enum object_id which, const char **id,
    size_t *n)
{
	const struct object_facts *f;

	*id = a->id[which];
	*n = a->id_length[which];
	if (*n == 0 && a->kind == ANSWER_JSON && a->object != NULL) {
		f = object_facts(a->object);
		*id = f->id[which];
		*n = f->id_length[which];
	}
	return *n > 0;
}

bool
answer_failed(const struct answer *a)
{
	return a->failed;
}

void
answer_end(struct answer *a, struct kvr_report *report)
{
	end_event(a);
	hold_free(&a->held);
	usage_report(&a->usage, report);
	if (a->kind == ANSWER_STREAM)
		report->flags |= KVR_REPORT_STREAM;
	if (a->failed)
		report->flags |= KVR_REPORT_NO_EVIDENCE;
}
