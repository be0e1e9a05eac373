/* SPDX-License-Identifier: BSD-2-Clause */
/* decode.c - see decode.h. */
#include "decode_in.h"

#include <stdlib.h>
#include <string.h>

/* In milliseconds of the epoch, 300 years: more is no time. */
#define TIME_MAX UINT64_C(10000000000000)

struct decoder *
decoder_new(const struct decode_options *options)
{
	struct decoder *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->options = *options;
	if (!msgpack_zone_init(&d->zone, MSGPACK_ZONE_CHUNK_SIZE)) {
		free(d);
		return NULL;
	}
	return d;
}

void
decoder_free(struct decoder *d)
{
	if (d == NULL)
		return;
	msgpack_zone_destroy(&d->zone);
	batch_free(&d->batch);
	partial_free(&d->partial);
	free(d);
}

void
decoder_restart(struct decoder *d)
{
	d->drop = (struct drop){ 0 };
	partial_free(&d->partial);
	d->n_ids = 0;
}

static enum decode_verdict
read_format(struct decoder *d, const void *bytes, size_t n)
{
	static enum decode_verdict (*const formats[DECODE_FORMATS])(
	    struct decoder *, const unsigned char *, size_t) = {
		[DECODE_ENGINE] = decode_engine,
		[DECODE_DYNAMO] = decode_dynamo,
		[DECODE_TRTLLM] = decode_trtllm
	};

	if (n > DECODE_BYTES_MAX)
		return DECODE_TOO_LARGE;
	if (n == 0 || (unsigned)d->options.format >= DECODE_FORMATS)
		return DECODE_MALFORMED;
	return formats[d->options.format](d, bytes, n);
}

/*
 * The facts and counts of a message that is refused are taken back. All partial
 * blocks are forgotten: the content of the cache is not known any more.
 */
enum decode_verdict
decoder_read(struct decoder *d, const void *bytes, size_t n,
    struct event_batch *out)
{
	const struct decode_counts counts = d->counts;
	const struct drop drop = d->drop;
	enum decode_verdict verdict;
	struct event_ids ids[DECODE_RANKS_MAX];
	const size_t n_ids = d->n_ids;

	memcpy(ids, d->ids, sizeof(ids));
	batch_clear(&d->batch);
	verdict = read_format(d, bytes, n);
	msgpack_zone_clear(&d->zone);
	if (d->batch.time > TIME_MAX)
		d->batch.time = 0;
	if (verdict == DECODE_GOOD) {
		d->counts.batches++;
	} else {
		batch_clear(&d->batch);
		d->counts = counts;
		d->counts.refused++;
		d->drop = drop;
		partial_free(&d->partial);
		memcpy(d->ids, ids, sizeof(ids));
		d->n_ids = n_ids;
	}
	batch_show(&d->batch, out);
	out->sliding = d->drop.sliding;
	return verdict;
}

struct decode_counts
decoder_counts(const struct decoder *d)
{
	return d->counts;
}
