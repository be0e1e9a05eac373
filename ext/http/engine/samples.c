/* SPDX-License-Identifier: BSD-2-Clause */
/* samples.c - see samples.h. */
#include "samples.h"

#include <string.h>

enum place {
	NAME = 0,   /* in the name of the metric */
	GAP,        /* behind that name */
	LABELS,     /* before the name of a label */
	LABEL,      /* in the name of a label */
	QUOTE,      /* before the quote of its value */
	VALUE,      /* in the value */
	ESCAPE,     /* behind a backslash in the value */
	AFTER,      /* behind the value */
	BLANK,      /* before the number */
	NUMBER,     /* in the number, and up to the end of the line */
	REST        /* in a line that does not count */
};

bool
samples_is(const char *text, size_t n, const char *word)
{
	return n == strlen(word) && memcmp(text, word, n) == 0;
}

static void
name_add(struct samples *s, char c)
{
	if (s->n_name < sizeof(s->name))
		s->name[s->n_name] = c;
	s->n_name++;
}

static void
value_add(struct samples *s, char c)
{
	if (s->n_value < sizeof(s->value))
		s->value[s->n_value] = c;
	s->n_value++;
}

/* The name of the metric ends before a brace or before the number. */
static void
name_end(struct samples *s, char c)
{
	const bool labels = c == '{';

	if (s->n_name > sizeof(s->name) || !s->calls->name(s->context,
	    s->name, s->n_name, labels)) {
		s->place = REST;
	} else if (labels) {
		s->place = LABELS;
	} else {
		s->n_value = 0;
		value_add(s, c);
		s->place = NUMBER;
	}
}

static void
name_byte(struct samples *s, char c)
{
	if (c == '#' && s->n_name == 0)
		s->place = REST;
	else if (samples_is_blank(c))
		s->place = GAP;
	else if (c == '{' || s->place == GAP)
		name_end(s, c);
	else
		name_add(s, c);
}

static void
label_byte(struct samples *s, char c)
{
	if (samples_is_blank(c) || (s->place == LABELS && c == ','))
		return;
	if (s->place == LABELS && c == '}') {
		s->place = BLANK;
	} else if (s->place == LABEL && c == '=') {
		s->place = QUOTE;
	} else {
		if (s->place == LABELS)
			s->n_name = 0;
		name_add(s, c);
		s->place = LABEL;
	}
}

static void
value_byte(struct samples *s, char c)
{
	if (s->place == VALUE && c == '"') {
		if (s->n_name <= sizeof(s->name))
			s->calls->label(s->context, s->name, s->n_name,
			    s->value, s->n_value);
		s->place = AFTER;
		return;
	}
	if (s->place == VALUE && c == '\\') {
		s->place = ESCAPE;
		return;
	}
	value_add(s, s->place == ESCAPE && c == 'n' ? '\n' : c);
	s->place = VALUE;
}

static void
other_byte(struct samples *s, char c)
{
	if (s->place == NUMBER) {
		value_add(s, c);
	} else if (samples_is_blank(c)) {
		return;
	} else if (s->place == QUOTE) {
		s->n_value = 0;
		s->place = c == '"' ? VALUE : REST;
	} else if (s->place == AFTER) {
		s->place = c == ',' ? LABELS : c == '}' ? BLANK : REST;
	} else {
		s->n_value = 0;
		value_add(s, c);
		s->place = NUMBER;
	}
}

static void
line_byte(struct samples *s, char c)
{
	switch ((enum place)s->place) {
	case NAME:
	case GAP:
		name_byte(s, c);
		break;
	case LABELS:
	case LABEL:
		label_byte(s, c);
		break;
	case VALUE:
	case ESCAPE:
		value_byte(s, c);
		break;
	default:
		other_byte(s, c);
	}
}

static void
line_end(struct samples *s)
{
	if (s->place == NUMBER && s->n_line < s->most)
		s->calls->number(s->context, s->value, s->n_value <
		    sizeof(s->value) ? s->n_value : sizeof(s->value));
	s->place = NAME;
	s->n_name = s->n_line = 0;
}

void
samples_begin(struct samples *s, const struct samples_calls *calls,
    void *context, size_t most)
{
	memset(s, 0, sizeof(*s));
	s->calls = calls;
	s->context = context;
	s->most = most;
}

void
samples_data(struct samples *s, const char *bytes, size_t n)
{
	const char *at = bytes, *const end = at + n;

	for (; at < end; at++) {
		if (s->place == REST) {
			at = memchr(at, '\n', (size_t)(end - at));
			if (at == NULL)
				return;
		}
		if (*at == '\n') {
			line_end(s);
		} else {
			s->n_line++;
			line_byte(s, *at);
		}
	}
}
