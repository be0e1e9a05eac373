/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader.h - prints a stream: messages go through stream.h and decode.h, for
 * each publisher apart, and may be recorded as it comes.
 */
#ifndef KVROUTE_READER_H
#define KVROUTE_READER_H

#include "decode.h"
#include "record.h"
#include "stream.h"

enum { READER_PUBLISHERS_MAX = 256 };

struct reader_options {
	struct decode_options decode;
	struct stream_options stream;
	bool tokens;      /* print them */
	FILE *out;
	FILE *record;     /* NULL: none */
};

struct reader;

/* NULL: no memory. */
struct reader *reader_new(const struct reader_options *options);
void reader_free(struct reader *r);
/*
 * Something was received. false: it could not be recorded, and errno has the
 * reason. A message that is malformed, or for which there is no memory, is
 * printed or counted as such and no failure.
 */
bool reader_step(struct reader *r, const struct record_step *step);
/* Is a replay to be asked for, of an engine? */
bool reader_wants(const struct reader *r, uint64_t *from);
/* Batches that were printed. */
uint64_t reader_batches(const struct reader *r);
/* The last lines: how each stream stands. */
void reader_end(const struct reader *r);

#endif
