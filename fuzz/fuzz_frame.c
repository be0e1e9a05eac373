/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_frame.c - any bytes as a frame.
 *
 * The first byte is a choice; the rest
 *
 * - is read as a frame: whatever is read from it can be written, and gives the
 *   same records when it is read again;
 * - or is a seed of records, which are written and read;
 * - or says which bytes of a frame with a MAC change: then it is refused.
 */
#include <stdint.h>
#include <string.h>

#include "frame.h"
#include "frames.h"
#include "little.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct frame_writer writer;
static struct frame_reader reader, again;
static unsigned char copy[FRAME_BYTES_MAX];

/* The frame must have exactly this record. */
static void
must_have(const struct frame_rules *rules, const struct frame_record *want)
{
	struct frame_record record;
	const unsigned char *bytes;
	size_t n;

	bytes = frame_finish(&writer, 0, &n);
	MUST(frame_open(&again, rules, bytes, n) == FRAME_GOOD);
	MUST(frame_next(&again, &record) && frames_equal(&record, want));
	MUST(!frame_next(&again, &record));
}

/* Fuzzers seldom guess what a head must have: without its rule and length. */
static void
read_any(const uint8_t *data, size_t size)
{
	const struct frame_rules rules = { .rule = 1 };
	struct frame_record record;

	if (size > sizeof(copy))
		return;
	memcpy(copy, data, size);
	if (size >= FRAME_HEAD) {
		little_put(copy + 8, rules.rule, 8);
		little_put(copy + 40, size, 4);
	}
	frame_writer_init(&writer, &rules, 1);
	if (frame_open(&reader, &rules, copy, size) != FRAME_GOOD)
		return;
	while (frame_next(&reader, &record)) {
		MUST(frame_put(&writer, &record) == FRAME_OK);
		must_have(&rules, &record);
	}
}

static void
write_some(struct rng *rng, const struct frame_rules *rules)
{
	static struct frames_room room;
	struct frame_record record;
	int i;

	frame_writer_init(&writer, rules, rng_next(rng));
	for (i = 0; i < 4; i++) {
		record = frames_draw(rng, rng_between(rng, 1, FRAME_KINDS - 1),
		    40, &room);
		MUST(frame_put(&writer, &record) == FRAME_OK);
		must_have(rules, &record);
	}
	MUST(frame_put(&writer, &record) == FRAME_OK);
}

/* Pairs of bytes: a place and what is added there. */
static void
forge(const struct frame_rules *rules, const uint8_t *data, size_t size)
{
	const unsigned char *bytes;
	size_t i, n;

	bytes = frame_finish(&writer, 0, &n);
	memcpy(copy, bytes, n);
	for (i = 0; i + 3 <= size; i += 3) {
		const size_t at = little_get(data + i, 2) % n;

		copy[at] = (unsigned char)(copy[at] + data[i + 2]);
	}
	MUST((frame_open(&reader, rules, copy, n) == FRAME_GOOD) ==
	    (memcmp(copy, bytes, n) == 0));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame_rules rules = { .rule = 2 };
	struct rng rng = { 0 };

	if (size < 9)
		return 0;
	if (data[0] % 2 == 0) {
		read_any(data + 1, size - 1);
		return 0;
	}
	rng.state = little_get(data + 1, 8);
	if (data[0] % 4 == 3)
		frame_key(&rules, data, size);
	write_some(&rng, &rules);
	if (rules.keyed)
		forge(&rules, data + 9, size - 9);
	return 0;
}
