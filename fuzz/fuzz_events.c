/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_events.c - any bytes as a message of an engine.
 *
 * The first byte chooses the format, whether all groups count, and which
 * allocation fails; the rest is the message. What is read from it refers to
 * nothing outside its batch, and a second reading by a new decoder gives the
 * same. A message for which there was no memory leaves nothing behind.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "decode.h"
#include "must.h"
#include "print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
sound(const struct event_batch *b)
{
	const struct event *e;
	size_t i;

	for (i = 0; i < b->n; i++) {
		e = &b->events[i];
		MUST(e->size == sizeof(*e));
		MUST(e->kind >= EVENT_STORED && e->kind <= EVENT_LOST);
		MUST(e->tokens.n == 0 || e->locals.n == 0);
		MUST(e->locals.n <= e->hashes.n);
		MUST(e->tokens.n <= e->hashes.n * e->block_size +
		    (e->flags & EVENT_EAGLE ? 1 : 0));
		MUST(e->hashes.n > 0 || (e->kind != EVENT_STORED &&
		    e->kind != EVENT_REMOVED && e->kind != EVENT_MOVED));
	}
}

/* Printing reads all that events refer to. */
static char *
shown(struct decoder *d, const struct event_batch *b, size_t *n)
{
	const struct decode_counts none = { 0 }, counts = decoder_counts(d);
	char *text = NULL;
	FILE *out = open_memstream(&text, n);
	size_t i;

	MUST(out != NULL);
	for (i = 0; i < b->n; i++)
		print_event(out, b, &b->events[i], true);
	print_dropped(out, &none, &counts);
	fclose(out);
	return text;
}

static char *
read_once(const struct decode_options *options, const uint8_t *data,
    size_t size, unsigned fail, size_t *n)
{
	struct decoder *d = decoder_new(options);
	enum decode_verdict verdict;
	struct event_batch batch;
	char *text;

	MUST(d != NULL);
	alloc_fail_at(fail);
	verdict = decoder_read(d, data, size, &batch);
	alloc_reset();
	if (verdict != DECODE_GOOD) {
		MUST(batch.n == 0 && decoder_counts(d).events == 0);
		MUST(verdict != DECODE_NO_MEMORY || fail > 0);
		verdict = decoder_read(d, data, size, &batch);
		MUST(verdict != DECODE_NO_MEMORY);
	}
	sound(&batch);
	text = shown(d, &batch, n);
	decoder_free(d);
	return text;
}

/* What an envelope has before it is decoded is what it has then. */
static void
numbers(const uint8_t *data, size_t size)
{
	const struct decode_options options = { .format = DECODE_DYNAMO };
	uint64_t publisher, sequence;
	struct event_batch batch;
	struct decoder *d;

	if (!decode_dynamo_numbers(data, size, &publisher, &sequence))
		return;
	d = decoder_new(&options);
	MUST(d != NULL);
	if (decoder_read(d, data, size, &batch) == DECODE_GOOD)
		MUST(batch.publisher == publisher && batch.sequence ==
		    sequence);
	decoder_free(d);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct decode_options options = { .format = DECODE_ENGINE };
	char *first, *second;
	size_t n, m;

	if (size == 0)
		return 0;
	options.format = (enum decode_format)(data[0] % DECODE_FORMATS);
	options.all_groups = data[0] / 4 % 2;
	first = read_once(&options, data + 1, size - 1, 0, &n);
	second = read_once(&options, data + 1, size - 1, data[0] / 8 % 8, &m);
	MUST(n == m && memcmp(first, second, n) == 0);
	free(first);
	free(second);
	numbers(data + 1, size - 1);
	return 0;
}
