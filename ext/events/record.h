/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * record.h - a file of received messages, in their order.
 *
 *   | head: 24 bytes | step: 32 bytes | its bytes | step | bytes | ...
 *
 * Numbers are little endian. The head has the options of the streams; a step is
 * a call of reader.h. So a reader that is fed from the file repeats the first
 * one.
 */
#ifndef KVROUTE_RECORD_H
#define KVROUTE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { RECORD_VERSION = 1 };

enum record_kind {
	RECORD_LIVE = 1,
	RECORD_RECONNECTED = 2,
	RECORD_ASKED = 3,      /* for a replay */
	RECORD_REPLAYED = 4,
	RECORD_END = 5         /* of a replay; seq is 1 if it was whole */
};

struct record_head {
	uint64_t first;        /* number of an engine's first batch */
	uint32_t format;       /* enum decode_format */
	bool replay;
};

struct record_step {
	uint32_t kind;         /* enum record_kind */
	uint64_t publisher, seq;
	const unsigned char *bytes;
	size_t n;
};

/* false: errno has the reason. */
bool record_begin(FILE *out, const struct record_head *head);
bool record_put(FILE *out, const struct record_step *step);

enum record_result {
	RECORD_OK = 0,
	RECORD_EOF,    /* behind a whole step */
	RECORD_CUT,    /* within one, or the system failed */
	RECORD_BAD,    /* no record, of another version, or beyond a bound */
	RECORD_NO_MEMORY
};

/* All 0: nothing read. */
struct record_room {
	unsigned char *bytes;
	size_t room;
};

enum record_result record_open(FILE *in, struct record_head *head);
/* The bytes are in the room until the next call. */
enum record_result record_next(FILE *in, struct record_room *room,
    struct record_step *out);
void record_free(struct record_room *room);

#endif
