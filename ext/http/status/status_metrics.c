/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_metrics.c - writes a text for Prometheus, see status.h.
 *
 * kvr_metrics(3) writes the metrics of one index, but the format wants all
 * samples of a metric together. The texts of several indexes have the same
 * metrics in the same order, so they are merged like sorted lists, and each
 * sample gets its upstream as a label:
 *
 *   # TYPE kvroute_leases gauge            # TYPE kvroute_leases gauge
 *   kvroute_leases 3                  -->  kvroute_leases{upstream="a"} 3
 *   # TYPE kvroute_leases gauge            kvroute_leases{upstream="b"} 5
 *   kvroute_leases 5
 *
 * The proxy's own metrics follow. Upstreams without an index have only these.
 */
#include "status_parts.h"

#include <string.h>

struct text {
	const struct status_upstream *up;
	char *memory;
	const char *at, *end; /* the part that is not copied yet */
};

/* The texts to be merged. */
struct merge {
	struct writer *to;
	struct text *text;    /* upstreams with an index come first */
	size_t n, with_index;
};

enum { HEADROOM = 4096, TRIES = 8 };

/* ------------------------------------------------ metrics of the index --- */

/*
 * Reads the text of an index into scratch memory that grows until it fits; the
 * text may grow meanwhile. kvr_metrics waits for the lock by itself.
 */
static bool
text_read(struct writer *to, struct text *t)
{
	size_t room = 0, length = 0;
	int tries, error;

	for (tries = 0; tries < TRIES; tries++) {
		error = kvr_metrics(t->up->kvr, t->memory, room, &length);
		if (error != KVR_OK)
			return false;
		if (length <= room) {
			t->at = t->memory;
			t->end = t->at + length;
			return true;
		}
		writer_free(to, t->memory);
		room = length + HEADROOM;
		t->memory = writer_alloc(to, room);
		if (t->memory == NULL)
			return false;
	}
	return false;
}

static const char *
line_end(const struct text *t)
{
	const char *lf = memchr(t->at, '\n', (size_t)(t->end - t->at));

	return lf == NULL ? t->end : lf + 1;
}

static bool
at_head(const struct text *t)
{
	return t->at < t->end && *t->at == '#';
}

/* Passes the head of a metric, which all texts have; `put` writes it. */
static void
heads_pass(struct writer *to, struct text *t, bool put)
{
	const char *end;

	for (; at_head(t); t->at = end) {
		end = line_end(t);
		if (put)
			writer_put(to, t->at, (size_t)(end - t->at));
	}
}

/* Writes NAME{a="b"} 1 or NAME 1, with the upstream as the first label. */
static void
sample_put(struct writer *to, const struct text *t, const char *end)
{
	struct metrics m = { .to = to };
	const char *p = t->at;
	bool labels;

	while (p < end && *p != '{' && *p != ' ' && *p != '\n')
		p++;
	labels = p < end && *p == '{';
	writer_put(to, t->at, (size_t)(p - t->at));
	metric_label(&m, "upstream", t->up->name, t->up->name_length);
	if (labels)
		p++;
	writer_text(to, labels ? "," : "}");
	writer_put(to, p, (size_t)(end - p));
}

static void
samples_pass(struct writer *to, struct text *t)
{
	const char *end;

	for (; t->at < t->end && !at_head(t); t->at = end) {
		end = line_end(t);
		if (end - t->at > 1)
			sample_put(to, t, end);
	}
}

static void
texts_merge(const struct merge *m)
{
	struct text *text = m->text;
	size_t i, n = m->with_index;

	while (n > 0 && text[0].at < text[0].end) {
		for (i = 0; i < n; i++)
			heads_pass(m->to, &text[i], i == 0);
		for (i = 0; i < n; i++)
			samples_pass(m->to, &text[i]);
	}
}

/* ------------------------------------------------------------- together --- */

static bool
texts_make(struct merge *m, const struct status *s)
{
	size_t i, last = m->n;

	for (i = 0; i < m->n; i++) {
		bool indexed = s->upstream[i].kvr != NULL;
		struct text *t = &m->text[indexed ? m->with_index++ : --last];

		t->up = &s->upstream[i];
		if (indexed && !text_read(m->to, t))
			return false;
	}
	return true;
}

void
status_metrics(const struct status *s, struct writer *to)
{
	struct merge m = { .to = to, .n = s->upstreams };
	struct metrics out = { .to = to, .prefix = s->proxy };
	size_t i;

	m.text = writer_alloc(to, (m.n + 1) * sizeof(*m.text));
	if (m.text == NULL)
		return;
	memset(m.text, 0, (m.n + 1) * sizeof(*m.text));
	if (texts_make(&m, s)) {
		texts_merge(&m);
		counters_metrics(&out, s);
		times_metrics(&out, s);
		loads_metrics(&out, s);
		health_metrics(&out, s);
		tenants_metrics(&out, s);
		queue_metrics(&out, s);
	} else {
		to->failed = true;
	}
	for (i = 0; i < m.n; i++)
		writer_free(to, m.text[i].memory);
	writer_free(to, m.text);
}
