/* SPDX-License-Identifier: BSD-2-Clause */
/* trace_line.c - see trace_line.h. */
#include "trace_line.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	ID_BYTES = 2048,        /* of the prompt, that one id stands for */
	IDS_MAX = 1 << 14,      /* for a reader */
	ID_DIGITS = 17,
	LINE_REST = 400 + KVR_NAME_MAX
};

static int64_t
wall_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint64_t
sequence_at(const struct kvr_prompt *p, size_t block)
{
	uint64_t local, sequence;

	return kvr_prompt_hash(p, block, &local, &sequence) == KVR_OK ?
	    sequence : 0;
}

/* Pseudorandom by prompt, equal within a family. */
static bool
is_drawn(const struct kvr_prompt *p, uint64_t blocks, uint64_t most,
    uint32_t sample)
{
	if (blocks > most)
		blocks = most;
	return sequence_at(p, blocks > 0 ? blocks - 1 : 0) % TRACE_ALL <
	    sample;
}

void
trace_line_keep(struct trace_line *t, const struct kvr_prompt *p,
    const struct kvr_decision *d, uint64_t opening, uint32_t block_size,
    uint32_t sample)
{
	const size_t blocks = d->prompt_blocks;
	size_t step = ID_BYTES / block_size, i, at;

	if (blocks == 0 || t->ids != NULL ||
	    !is_drawn(p, opening / block_size, blocks, sample))
		return;
	step += step == 0;
	t->n_ids = (blocks + step - 1) / step;
	t->n_ids = t->n_ids < IDS_MAX ? t->n_ids : IDS_MAX;
	t->ids = malloc(t->n_ids * sizeof(*t->ids));
	if (t->ids == NULL)
		return;
	for (i = 0; i < t->n_ids; i++) {
		at = (i + 1) * step;
		t->ids[i] = sequence_at(p, (at < blocks ? at : blocks) - 1);
	}
	t->arrived_ms = wall_ms();
}

/* ---------------------------------------------------------------- write --- */

struct line {
	char *at, *end;
};

static void
line_number(struct line *to, const char *before, uint64_t n)
{
	to->at += snprintf(to->at, (size_t)(to->end - to->at), "%s%" PRIu64,
	    before, n);
}

static void
line_text(struct line *to, const char *text)
{
	to->at += snprintf(to->at, (size_t)(to->end - to->at), "%s", text);
}

/* A name may hold any bytes; returns its length. */
static size_t
name_print(char *to, const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		to[i] = name[i] < ' ' || name[i] > '~' || name[i] == '"' ||
		    name[i] == '\\' ? '?' : name[i];
	return n;
}

static void
line_print(struct line *to, const struct trace_line *t,
    const struct kvr_decision *d, const struct kvr_report *report)
{
	size_t i;

	line_number(to, "{\"timestamp\": ", (uint64_t)t->arrived_ms);
	line_number(to, ", \"input_length\": ", d->prompt_tokens);
	line_number(to, ", \"output_length\": ", report->completion_tokens);
	/* 53 bits: exact in every JSON reader. */
	for (i = 0; i < t->n_ids; i++)
		line_number(to, i == 0 ? ", \"hash_ids\": [" : ",",
		    t->ids[i] >> 11);
	line_text(to, "]");
	if (report->kind != KVR_REPORT_NONE)
		line_number(to, ", \"prompt_tokens\": ",
		    report->prompt_tokens);
	if (report->kind == KVR_REPORT_VALUE)
		line_number(to, ", \"cached_tokens\": ",
		    report->cached_tokens);
	line_text(to, ", \"worker\": \"");
}

char *
trace_line_write(struct trace_line *t, const struct kvr_decision *d,
    const struct kvr_report *report, const char *name, size_t name_len,
    int64_t rank, size_t *n)
{
	const size_t room = t->n_ids * ID_DIGITS + LINE_REST;
	char *text = t->ids == NULL ? NULL : malloc(room);
	struct line to;
	int64_t ms;

	if (text == NULL)
		return NULL;
	to = (struct line){ text, text + room };
	line_print(&to, t, d, report);
	to.at += name_print(to.at, name, name_len);
	if (rank >= 0)
		line_number(&to, "@", (uint64_t)rank);
	ms = wall_ms() - t->arrived_ms;
	line_number(&to, "\", \"ms\": ", ms < 0 ? 0 : (uint64_t)ms);
	line_text(&to, "}\n");
	*n = (size_t)(to.at - text);
	trace_line_leave(t);
	return text;
}

void
trace_line_leave(struct trace_line *t)
{
	free(t->ids);
	t->ids = NULL;
}
