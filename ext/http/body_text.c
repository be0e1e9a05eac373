/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_text.c - moves text from the body to its sink.
 *
 *   mark, text, digest --put--> stage [ \xFF r user \xFF ( \xFF p ... ]
 *                                 |  full, or the sink changes
 *   text of more than a stage ----+----> prompt | system | held | digest
 *
 * A prompt takes pieces of any length, but each costs a call and a look at its
 * unfinished block: marks and short texts are joined, long texts go directly
 * from where they lie.
 */
#include "body_in.h"

#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------- holds --- */

bool
hold_reserve(struct hold *h, size_t n)
{
	size_t room = h->capacity < 4096 ? 4096 : h->capacity;
	unsigned char *data;

	if (n > SIZE_MAX / 4 || h->length > SIZE_MAX / 4)
		return false;
	if (n <= h->capacity - h->length)
		return true;
	while (room < h->length + n)
		room *= 2;
	data = realloc(h->data, room);
	if (data == NULL)
		return false;
	h->data = data;
	h->capacity = room;
	return true;
}

bool
hold_append(struct hold *h, const void *bytes, size_t n)
{
	if (!hold_reserve(h, n))
		return false;
	if (n > 0)
		memcpy(h->data + h->length, bytes, n);
	h->length += n;
	return true;
}

void
hold_trim(struct hold *h)
{
	if (h->capacity <= HOLD_KEEP)
		return;
	free(h->data);
	h->data = NULL;
	h->length = h->capacity = 0;
}

/* --------------------------------------------------------------- sinks --- */

static void
to_prompt(struct body *b, const void *bytes, size_t n)
{
	if (kvr_prompt_bytes(b->prompt, bytes, n) != KVR_OK)
		body_stop(b, BODY_NO_MEMORY);
	else
		b->written += n;
}

static void
to_hold(struct body *b, struct hold *h, const void *bytes, size_t n)
{
	if (!hold_append(h, bytes, n))
		body_stop(b, BODY_NO_MEMORY);
}

static void
to_sink(struct body *b, const void *bytes, size_t n)
{
	switch (b->sink) {
	case SINK_PROMPT:
		to_prompt(b, bytes, n);
		break;
	case SINK_SYSTEM:
		to_hold(b, &b->system, bytes, n);
		break;
	case SINK_MESSAGES:
		to_hold(b, &b->held, bytes, n);
		break;
	case SINK_DIGEST:
		XXH3_128bits_update(b->digest, bytes, n);
		b->digested += n;
		break;
	case SINK_NONE:
		break;
	}
}

void
body_flush(struct body *b)
{
	size_t n = b->staged;

	b->staged = 0;
	if (n > 0 && !b->stopped)
		to_sink(b, b->stage, n);
}

enum sink
body_sink(const struct body *b)
{
	return b->endpoint == ENDPOINT_RESPONSES ||
	    b->endpoint == ENDPOINT_MESSAGES ? SINK_MESSAGES : SINK_PROMPT;
}

void
body_open_sink(struct body *b, enum sink sink)
{
	body_settle(b);
	b->sink = sink;
}

void
body_open_digest(struct body *b, enum ahead ahead)
{
	body_open_sink(b, SINK_DIGEST);
	b->digesting = ahead;
	XXH3_128bits_reset(b->digest);
}

void
body_settle(struct body *b)
{
	body_flush(b);
	if (b->sink == SINK_DIGEST) {
		b->is_ahead[b->digesting] = true;
		XXH128_canonicalFromHash(&b->ahead[b->digesting],
		    XXH3_128bits_digest(b->digest));
	}
	b->sink = SINK_NONE;
}

void
body_rewind(struct body *b)
{
	b->held.length = 0;
	b->written = 0;
	(void)kvr_prompt_begin(b->prompt, NULL);
}

void
body_release(struct body *b)
{
	if (b->system.length > 0)
		to_prompt(b, b->system.data, b->system.length);
	if (b->held.length > 0 && !b->stopped)
		to_prompt(b, b->held.data, b->held.length);
}

/* ---------------------------------------------------------------- text --- */

void
body_put_on(struct body *b, const void *bytes, size_t n)
{
	body_flush(b);
	if (n <= STAGE_BYTES / 2)
		body_put(b, bytes, n);
	else if (!b->stopped)
		to_sink(b, bytes, n);
}

void
body_media(struct body *b, const void *data, size_t n)
{
	XXH128_canonical_t digest;

	XXH128_canonicalFromHash(&digest, XXH3_128bits(data, n));
	body_text(b, MARK_MEDIA, digest.digest, sizeof(digest.digest));
	b->media = true;
}

/*
 * Names that are too long are cut at the start of a character and end in '#'
 * and their digest.
 */
void
body_name(struct body *b, enum name name, const void *text, size_t n)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *from = text;
	XXH128_canonical_t digest;
	char *to = b->name[name];
	size_t i, at = BODY_NAME_MAX - 1 - 2 * sizeof(digest.digest);

	if (n <= BODY_NAME_MAX) {
		memcpy(to, from, n);
		b->name_length[name] = n;
		return;
	}
	while (at > 0 && (from[at] & 0xc0) == 0x80)
		at--;
	memcpy(to, from, at);
	to[at++] = '#';
	XXH128_canonicalFromHash(&digest, XXH3_128bits(text, n));
	for (i = 0; i < sizeof(digest.digest); i++) {
		to[at++] = hex[digest.digest[i] >> 4];
		to[at++] = hex[digest.digest[i] & 15];
	}
	b->name_length[name] = at;
}
