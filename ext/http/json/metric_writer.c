/* SPDX-License-Identifier: BSD-2-Clause */
/* metric_writer.c - see metric_writer.h. */
#include "metric_writer.h"

#include <string.h>

static const uint64_t second = 1000000000;

static void
name_put(struct metrics *m, const struct metric *name)
{
	writer_text(m->to, "kvroute_");
	writer_text(m->to, m->prefix);
	writer_text(m->to, "_");
	if (name->group != NULL) {
		writer_text(m->to, name->group);
		writer_text(m->to, "_");
	}
	writer_text(m->to, name->name);
	if (name->suffix != NULL)
		writer_text(m->to, name->suffix);
}

static void
head_put(struct metrics *m, const struct metric *name, const char *type,
    const char *help)
{
	if (help != NULL) {
		writer_text(m->to, "# HELP ");
		name_put(m, name);
		writer_text(m->to, " ");
		writer_text(m->to, help);
		writer_text(m->to, "\n");
	}
	writer_text(m->to, "# TYPE ");
	name_put(m, name);
	writer_text(m->to, " ");
	writer_text(m->to, type);
	writer_text(m->to, "\n");
}

static bool
is_total(const struct metric *name)
{
	static const char end[] = "_total";
	const char *last = name->suffix != NULL ? name->suffix : name->name;
	const size_t n = strlen(last);

	return n >= sizeof(end) - 1 &&
	    strcmp(last + n - (sizeof(end) - 1), end) == 0;
}

void
metric_head(struct metrics *m, const struct metric *name, const char *help)
{
	head_put(m, name, is_total(name) ? "counter" : "gauge", help);
}

void
metric_head_histogram(struct metrics *m, const struct metric *name,
    const char *help)
{
	head_put(m, name, "histogram", help);
}

/* Writes the decimals of part / one: so many, or all if places is 0. */
static void
decimals_put(struct writer *w, uint64_t part, uint64_t one, unsigned places)
{
	unsigned i;
	char digit;

	for (i = 0; places == 0 ? part > 0 : i < places; i++) {
		one /= 10;
		digit = (char)('0' + part / one);
		part %= one;
		writer_put(w, &digit, 1);
	}
}

static void
seconds_put(struct writer *w, uint64_t ns, unsigned places)
{
	writer_number(w, ns / second);
	if (places == 0 && ns % second == 0)
		return;
	writer_text(w, ".");
	decimals_put(w, ns % second, second, places);
}

/* --------------------------------------------------------------- labels --- */

void
metric_begin(struct metrics *m, const struct metric *name)
{
	name_put(m, name);
	m->labelled = false;
}

static void
label_begin(struct metrics *m, const char *label)
{
	writer_text(m->to, m->labelled ? "," : "{");
	writer_text(m->to, label);
	writer_text(m->to, "=\"");
	m->labelled = true;
}

void
metric_label(struct metrics *m, const char *label, const char *text, size_t n)
{
	const bool utf8 = text_is_utf8(text, n);
	unsigned char c;
	size_t i;

	label_begin(m, label);
	for (i = 0; i < n; i++) {
		c = (unsigned char)text[i];
		if (c == '"' || c == '\\')
			writer_put(m->to, "\\", 1);
		writer_put(m->to, c < ' ' || c == 0x7f ||
		    (c >= 0x80 && !utf8) ? "?" : &text[i], 1);
	}
	writer_text(m->to, "\"");
}

void
metric_label_text(struct metrics *m, const char *label, const char *text)
{
	metric_label(m, label, text, strlen(text));
}

void
metric_label_whole(struct metrics *m, const char *label, uint64_t n)
{
	label_begin(m, label);
	writer_number(m->to, n);
	writer_text(m->to, "\"");
}

void
metric_label_seconds(struct metrics *m, const char *label, uint64_t ns)
{
	label_begin(m, label);
	seconds_put(m->to, ns, 0);
	writer_text(m->to, "\"");
}

/* --------------------------------------------------------------- values --- */

static void
value_begin(struct metrics *m)
{
	writer_text(m->to, m->labelled ? "} " : " ");
}

void
metric_whole(struct metrics *m, uint64_t n)
{
	value_begin(m);
	writer_number(m->to, n);
	writer_text(m->to, "\n");
}

void
metric_seconds(struct metrics *m, uint64_t ns, unsigned places)
{
	value_begin(m);
	seconds_put(m->to, ns, places);
	writer_text(m->to, "\n");
}

void
metric_real(struct metrics *m, double value)
{
	const double size = value < 0 ? -value : value;
	const uint64_t n = (uint64_t)(size * 1000 + 0.5);

	value_begin(m);
	if (value < 0)
		writer_text(m->to, "-");
	writer_number(m->to, n / 1000);
	writer_text(m->to, ".");
	decimals_put(m->to, n % 1000, 1000, 3);
	writer_text(m->to, "\n");
}
