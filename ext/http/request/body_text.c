/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_text.c - moves text from the body to its sink.
 *
 *   mark, text, digest --put--> stage [ \xFF r user \xFF ( \xFF p ... ]
 *                                 |  full, or the sink changes
 *   text of more than a stage ----+----> prompt | system | held
 *
 * A prompt takes pieces of any length, but each costs a call and a look at its
 * unfinished block. So marks and short texts are joined; long texts go to the
 * sink from where they lie.
 */
#include "body_in.h"

#include <string.h>

/* --------------------------------------------------------------- sinks --- */

void
body_stop(struct body *b, enum body_outcome why)
{
	if (!b->stopped)
		b->why = why;
	b->stopped = true;
}

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
	case SINK_NONE:
		break;
	}
}

/* Writes to the sink, or aside, see body_order.c. */
static void
write_on(struct body *b, const void *bytes, size_t n)
{
	if (n == 0 || b->stopped)
		return;
	if (b->aside)
		to_hold(b, &b->side, bytes, n);
	else
		to_sink(b, bytes, n);
}

void
body_flush(struct body *b)
{
	size_t n = b->staged, ahead = b->aside ? b->aside_at : 0;

	b->staged = b->aside_at = 0;
	if (ahead > 0 && !b->stopped)
		to_sink(b, b->stage, ahead);
	write_on(b, b->stage + ahead, n - ahead);
}

enum sink
body_sink(const struct body *b)
{
	return b->prompt == NULL || b->apart ||
	    b->endpoint == ENDPOINT_RESPONSES ||
	    b->endpoint == ENDPOINT_MESSAGES ? SINK_MESSAGES : SINK_PROMPT;
}

void
body_open_sink(struct body *b, enum sink sink)
{
	body_settle(b);
	b->sink = sink;
}

void
body_settle(struct body *b)
{
	body_flush(b);
	b->sink = SINK_NONE;
}

void
body_rewind(struct body *b)
{
	b->held.length = 0;
	b->written = 0;
	if (b->prompt != NULL)
		(void)kvr_prompt_begin(b->prompt, NULL);
}

void
body_drop_item(struct body *b)
{
	body_flush(b);
	if (b->sink == SINK_MESSAGES && !b->stopped)
		b->held.length = (size_t)b->message_at;
	b->messages--;
	b->some = b->messages > 0 || b->system.length > 0;
	b->is_reasoning = false;
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
	else
		write_on(b, bytes, n);
}

/*
 * A name that is too long is cut ahead of a character; '#' and a digest of the
 * name follow.
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

/* A long id is dropped: its first part might be the id of something else. */
void
body_id(struct body *b, enum body_id id, const void *text, size_t n)
{
	b->id_length[id] = n <= BODY_ID_MAX ? n : 0;
	if (b->id_length[id] > 0)
		memcpy(b->id[id], text, n);
}
