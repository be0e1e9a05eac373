/* SPDX-License-Identifier: BSD-2-Clause */
/* answers.c - see answers.h. */
#include "answers.h"

#include <stdlib.h>
#include <string.h>

static void *
memory(size_t n)
{
	void *p = malloc(n + (n == 0));

	if (p == NULL)
		abort();
	return p;
}

char *
answers_text(const char *text, const char *line_end)
{
	char *copy = memory(2 * strlen(text) + 1), *p = copy;

	for (; *text != '\0'; text++) {
		if (*text == '\n')
			p = stpcpy(p, line_end);
		else
			*p++ = *text == '\'' ? '"' : *text;
	}
	*p = '\0';
	return copy;
}

/* Exactly n bytes of room; then the output is appended. */
static void
give(struct answer *a, const char *piece, size_t n, bool end,
    struct answers_result *r)
{
	const size_t room = answer_held(a) + n;
	char *out = memory(room), *in = memory(n);
	size_t written;

	if (n > 0)
		memcpy(in, piece, n);
	written = end ? answer_flush(a, out) : answer_strip(a, in, n, out);
	if (written > room)
		abort();
	if (written > 0)
		memcpy(r->out + r->n, out, written);
	r->n += written;
	if (answer_held(a) > r->most_held)
		r->most_held = answer_held(a);
	free(out);
	free(in);
}

static void
give_unstripped(struct answer *a, const char *piece, size_t n)
{
	char *in = memory(n);

	memcpy(in, piece, n);
	answer_data(a, in, n);
	free(in);
}

static void
ids_read(const struct answer *a, struct answers_result *r)
{
	const char *id;
	size_t i;

	for (i = 0; i < OBJECT_IDS; i++) {
		if (answer_id(a, (enum object_id)i, &id, &r->id_length[i]))
			memcpy(r->id[i], id, r->id_length[i]);
	}
}

struct answers_result
answers_read(struct answer *a, enum answer_kind kind, bool strip,
    const char *text, size_t n, struct cut cut)
{
	struct answers_result r = { .out = memory(n) };
	size_t at, piece = cut.first;

	r.report.size = sizeof(r.report);
	answer_begin(a, kind, strip);
	for (at = 0; at < n; at += piece, piece = cut.then) {
		if (piece == 0 || piece > n - at)
			piece = n - at;
		if (strip)
			give(a, text + at, piece, false, &r);
		else
			give_unstripped(a, text + at, piece);
		if (answer_started(a) && r.started_at == 0)
			r.started_at = at + piece;
	}
	if (strip)
		give(a, NULL, 0, true, &r);
	answer_end(a, &r.report);
	r.started = answer_started(a);
	r.failed = answer_failed(a);
	ids_read(a, &r);
	return r;
}
