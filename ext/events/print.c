/* SPDX-License-Identifier: BSD-2-Clause */
/* print.c - see print.h. */
#include "print.h"

#include <inttypes.h>

static void
text(FILE *out, const char *what, const struct event_batch *batch,
    struct event_span span)
{
	uint64_t i;
	unsigned char c;

	if (span.n == 0)
		return;
	fprintf(out, " %s ", what);
	for (i = 0; i < span.n; i++) {
		c = (unsigned char)batch->text[span.at + i];
		if (c > ' ' && c < 0x7f && c != '\\')
			putc(c, out);
		else
			fprintf(out, "\\x%02x", c);
	}
}

static void
hashes(FILE *out, const struct event_batch *batch, const struct event *e)
{
	uint64_t i;

	for (i = 0; i < e->hashes.n; i++)
		fprintf(out, " %016" PRIx64, batch->hashes[e->hashes.at + i]);
	if (e->kind != EVENT_STORED && e->kind != EVENT_MOVED)
		return;
	if (e->flags & EVENT_HAS_PARENT)
		fprintf(out, " parent %016" PRIx64, e->parent);
	else if (e->kind == EVENT_STORED)
		fputs(" parent -", out);
}

static void
contents(FILE *out, const struct event_batch *batch, const struct event *e,
    bool tokens)
{
	uint64_t i;

	if (e->block_size > 0)
		fprintf(out, " block_size %" PRIu32, e->block_size);
	if (e->locals.n > 0) {
		fprintf(out, " locals %" PRIu64, e->locals.n);
		for (i = 0; tokens && i < e->locals.n; i++)
			fprintf(out, "%s%016" PRIx64, i == 0 ? ": " : " ",
			    batch->locals[e->locals.at + i]);
	} else if (e->kind == EVENT_STORED) {
		fprintf(out, " tokens %" PRIu64, e->tokens.n);
		for (i = 0; tokens && i < e->tokens.n; i++)
			fprintf(out, "%s%" PRIu32, i == 0 ? ": " : " ",
			    batch->tokens[e->tokens.at + i]);
	}
	if (e->flags & EVENT_EAGLE)
		fputs(" eagle", out);
	if (e->flags & EVENT_OPAQUE)
		fputs(" opaque", out);
}

static void
place(FILE *out, const struct event *e)
{
	if (e->tier != EVENT_TIER_NONE)
		fprintf(out, " tier %s", event_tier_name(e->tier));
	if (e->from_tier != EVENT_TIER_NONE)
		fprintf(out, " from %s", event_tier_name(e->from_tier));
	if (e->flags & EVENT_HAS_POSITION)
		fprintf(out, " position %" PRIu64, e->position);
	if (e->flags & EVENT_HAS_WORKER)
		fprintf(out, " worker %" PRIu64, e->worker);
	if (e->flags & EVENT_HAS_RANK)
		fprintf(out, " rank %" PRIu32, e->rank);
	if (e->flags & EVENT_HAS_GROUP)
		fprintf(out, " group %" PRIu32, e->group);
	if (e->attention != EVENT_ATTENTION_NONE)
		fprintf(out, " attention %s",
		    event_attention_name(e->attention));
	if (e->window > 0)
		fprintf(out, " window %" PRIu64, e->window);
}

void
print_event(FILE *out, const struct event_batch *batch,
    const struct event *event, bool tokens)
{
	fprintf(out, "  %s", event_kind_name(event->kind));
	hashes(out, batch, event);
	contents(out, batch, event, tokens);
	place(out, event);
	text(out, "adapter", batch, event->adapter);
	text(out, "salt", batch, event->salt);
	text(out, "session", batch, event->session);
	putc('\n', out);
}

void
print_dropped(FILE *out, const struct decode_counts *before,
    const struct decode_counts *after)
{
	int i;

	for (i = DROP_NONE + 1; i < DROP_REASONS; i++)
		if (after->dropped[i] > before->dropped[i])
			fprintf(out, "  dropped %s %" PRIu64 "\n",
			    drop_reason_name((enum drop_reason)i),
			    after->dropped[i] - before->dropped[i]);
}
