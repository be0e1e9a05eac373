/* SPDX-License-Identifier: BSD-2-Clause */
/* record.c - see record.h. */
#include "record.h"

#include <stdlib.h>
#include <string.h>

#include "decode.h"

enum { HEAD = 24, STEP = 32, CHUNK = 1 << 16 };

static const unsigned char magic[4] = { 'K', 'V', 'R', 'E' };

static void
put(unsigned char *to, uint64_t value, size_t n)
{
	for (; n-- > 0; value >>= 8)
		*to++ = (unsigned char)value;
}

static uint64_t
get(const unsigned char *from, size_t n)
{
	uint64_t value = 0;

	while (n-- > 0)
		value = value << 8 | from[n];
	return value;
}

bool
record_begin(FILE *out, const struct record_head *head)
{
	unsigned char bytes[HEAD] = { 0 };

	memcpy(bytes, magic, sizeof(magic));
	put(bytes + 4, RECORD_VERSION, 4);
	put(bytes + 8, head->first, 8);
	put(bytes + 16, head->format, 4);
	put(bytes + 20, head->replay, 4);
	return fwrite(bytes, 1, HEAD, out) == HEAD;
}

bool
record_put(FILE *out, const struct record_step *step)
{
	unsigned char bytes[STEP] = { 0 };

	put(bytes, step->kind, 4);
	put(bytes + 8, step->publisher, 8);
	put(bytes + 16, step->seq, 8);
	put(bytes + 24, step->n, 8);
	return fwrite(bytes, 1, STEP, out) == STEP &&
	    fwrite(step->bytes, 1, step->n, out) == step->n;
}

enum record_result
record_open(FILE *in, struct record_head *head)
{
	unsigned char bytes[HEAD];

	if (fread(bytes, 1, HEAD, in) != HEAD ||
	    memcmp(bytes, magic, sizeof(magic)) != 0 ||
	    get(bytes + 4, 4) != RECORD_VERSION ||
	    get(bytes + 16, 4) >= DECODE_FORMATS || get(bytes + 20, 4) > 1)
		return RECORD_BAD;
	head->first = get(bytes + 8, 8);
	head->format = (uint32_t)get(bytes + 16, 4);
	head->replay = get(bytes + 20, 4) != 0;
	return RECORD_OK;
}

/*
 * Room grows with the bytes that are there, not with the lengths in the file.
 */
static enum record_result
fill(FILE *in, struct record_room *room, size_t n)
{
	unsigned char *bytes;
	size_t at, take;

	for (at = 0; at < n; at += take) {
		take = n - at < CHUNK ? n - at : CHUNK;
		if (room->room < at + take) {
			bytes = realloc(room->bytes, 2 * (at + take));
			if (bytes == NULL)
				return RECORD_NO_MEMORY;
			room->bytes = bytes;
			room->room = 2 * (at + take);
		}
		if (fread(room->bytes + at, 1, take, in) != take)
			return RECORD_CUT;
	}
	return RECORD_OK;
}

enum record_result
record_next(FILE *in, struct record_room *room, struct record_step *out)
{
	unsigned char bytes[STEP];
	const size_t got = fread(bytes, 1, STEP, in);
	enum record_result result;
	uint64_t n;

	if (got < STEP)
		return got == 0 && feof(in) ? RECORD_EOF : RECORD_CUT;
	n = get(bytes + 24, 8);
	out->kind = (uint32_t)get(bytes, 4);
	if (out->kind < RECORD_LIVE || out->kind > RECORD_END ||
	    n > DECODE_BYTES_MAX)
		return RECORD_BAD;
	out->publisher = get(bytes + 8, 8);
	out->seq = get(bytes + 16, 8);
	result = fill(in, room, (size_t)n);
	out->bytes = room->bytes;
	out->n = (size_t)n;
	return result;
}

void
record_free(struct record_room *room)
{
	free(room->bytes);
	*room = (struct record_room){ 0 };
}
