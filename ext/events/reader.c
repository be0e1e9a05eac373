/* SPDX-License-Identifier: BSD-2-Clause */
/* reader.c - see reader.h. */
#include "reader.h"

#include <inttypes.h>
#include <stdlib.h>

#include "print.h"

struct publisher {
	uint64_t id;
	struct stream *stream;
	struct decoder *decoder;
};

struct reader {
	struct reader_options options;
	struct publisher publishers[READER_PUBLISHERS_MAX];
	size_t n;
	uint64_t batches;
	uint64_t unread;      /* for publishers beyond the bound, or memory */
};

/* NULL: no memory, or too many. */
static struct publisher *
publisher_of(struct reader *r, uint64_t id)
{
	struct publisher *p;
	size_t i;

	for (i = 0; i < r->n; i++)
		if (r->publishers[i].id == id)
			return &r->publishers[i];
	if (r->n == READER_PUBLISHERS_MAX)
		return NULL;
	p = &r->publishers[r->n];
	*p = (struct publisher){ id, stream_new(&r->options.stream),
	    decoder_new(&r->options.decode) };
	if (p->stream == NULL || p->decoder == NULL) {
		stream_free(p->stream);
		decoder_free(p->decoder);
		return NULL;
	}
	r->n++;
	return p;
}

struct reader *
reader_new(const struct reader_options *options)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	r->options = *options;
	/* One engine is asked for a replay before its first batch. */
	if (options->stream.replay && publisher_of(r, 0) == NULL) {
		free(r);
		return NULL;
	}
	return r;
}

void
reader_free(struct reader *r)
{
	size_t i;

	if (r == NULL)
		return;
	for (i = 0; i < r->n; i++) {
		stream_free(r->publishers[i].stream);
		decoder_free(r->publishers[i].decoder);
	}
	free(r);
}

static void
name(const struct reader *r, const struct publisher *p)
{
	if (r->options.decode.format == DECODE_DYNAMO)
		fprintf(r->options.out, " publisher %" PRIu64, p->id);
}

static void
print_batch(struct reader *r, struct publisher *p,
    const struct stream_out *from)
{
	static const char *const refusals[] = { "", "malformed", "too large",
	    "no memory" };
	const struct decode_counts before = decoder_counts(p->decoder);
	FILE *out = r->options.out;
	struct decode_counts after;
	struct event_batch batch;
	enum decode_verdict verdict;
	size_t i;

	verdict = decoder_read(p->decoder, from->bytes, from->n, &batch);
	fprintf(out, "batch %" PRIu64, from->seq);
	name(r, p);
	if (verdict != DECODE_GOOD)
		fprintf(out, " %s\n", refusals[-(int)verdict]);
	else
		fprintf(out, " events %zu time %" PRIu64 ".%03" PRIu64 "\n",
		    batch.n, batch.time / 1000, batch.time % 1000);
	for (i = 0; i < batch.n; i++) {
		print_event(out, &batch, &batch.events[i], r->options.tokens);
		if (batch.events[i].kind == EVENT_CLEARED)
			stream_cleared(p->stream);
	}
	after = decoder_counts(p->decoder);
	print_dropped(out, &before, &after);
	r->batches++;
}

static void
print_ready(struct reader *r, struct publisher *p)
{
	FILE *out = r->options.out;
	struct stream_out next;

	while (stream_next(p->stream, &next)) {
		switch (next.what) {
		case STREAM_BATCH:
			print_batch(r, p, &next);
			continue;
		case STREAM_LOST:
			fprintf(out, "lost %" PRIu64 " to %" PRIu64, next.seq,
			    next.last);
			break;
		case STREAM_RESTARTED:
			fputs("restarted", out);
			decoder_restart(p->decoder);
			break;
		}
		name(r, p);
		putc('\n', out);
	}
}

static void
reconnected(struct reader *r)
{
	size_t i;

	for (i = 0; i < r->n; i++) {
		stream_reconnected(r->publishers[i].stream);
		print_ready(r, &r->publishers[i]);
	}
}

static void
apply(struct stream *s, const struct record_step *step)
{
	switch (step->kind) {
	case RECORD_LIVE:
		stream_live(s, step->seq, step->bytes, step->n);
		break;
	case RECORD_ASKED:
		stream_asked(s);
		break;
	case RECORD_REPLAYED:
		stream_replayed(s, step->seq, step->bytes, step->n);
		break;
	default:
		stream_replay_end(s, step->seq != 0);
	}
}

bool
reader_step(struct reader *r, const struct record_step *step)
{
	struct publisher *p;

	if (r->options.record != NULL && !record_put(r->options.record, step))
		return false;
	if (step->kind == RECORD_RECONNECTED) {
		reconnected(r);
		return true;
	}
	p = publisher_of(r, step->publisher);
	if (p == NULL) {
		r->unread++;
		return true;
	}
	apply(p->stream, step);
	print_ready(r, p);
	return true;
}

bool
reader_wants(const struct reader *r, uint64_t *from)
{
	return r->options.stream.replay && r->n > 0 &&
	    stream_wants(r->publishers[0].stream, from);
}

uint64_t
reader_batches(const struct reader *r)
{
	return r->batches;
}

void
reader_end(const struct reader *r)
{
	FILE *out = r->options.out;
	struct stream_state state;
	size_t i;

	for (i = 0; i < r->n; i++) {
		state = stream_state(r->publishers[i].stream);
		fprintf(out, "end %s batches %" PRIu64 " duplicates %" PRIu64
		    " gaps %" PRIu64 " lost %" PRIu64 " restarts %" PRIu64
		    " replays %" PRIu64 " refused %" PRIu64,
		    state.complete ? "complete" : "incomplete",
		    state.counts.batches, state.counts.duplicates,
		    state.counts.gaps, state.counts.lost,
		    state.counts.restarts, state.counts.replays,
		    state.counts.refused);
		name(r, &r->publishers[i]);
		putc('\n', out);
	}
	if (r->unread > 0)
		fprintf(out, "unread %" PRIu64 "\n", r->unread);
}
