/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_lines.c - drops lines at the front of a prompt that do not count.
 *
 * Some clients put a line ahead of the system text that differs in each
 * request. All of the prompt behind it would be unlike any other:
 *
 *   x-anthropic-billing-header: cc_version=2.1.177.01c; cch=36ee5;
 *   You are a coding agent ...
 *
 * A block of the system text of Messages that begins like this one is not
 * counted: engines drop it ahead of their template. Engines show other such
 * lines to the model, so the operator must name them, see body_ignore: requests
 * are then taken to share a prefix that they may not share.
 *
 * To bound the time, only the first lines are looked at: LINES_BYTES of the
 * system text and of the first message, and of the second one if the first is
 * system text. Answers are not looked at: a prompt that an answer extends has
 * all of the answer's lines.
 */
#include "body_in.h"

/* Returns the length of the first line with its end. */
static size_t
line_length(const unsigned char *text, size_t n)
{
	const unsigned char *end = memchr(text, '\n', n);

	return end == NULL ? n : (size_t)(end - text) + 1;
}

static bool
line_is_ignored(const struct body *b, const unsigned char *line, size_t n)
{
	if (n > 0 && line[n - 1] == '\n')
		n--;
	if (n > 0 && line[n - 1] == '\r')
		n--;
	return b->is_ignored(b->ignoring, (const char *)line, n);
}

/* Do engines drop the block, as vLLM does since March 2026? */
static bool
is_dropped(const struct body *b, const unsigned char *text, size_t n)
{
	static const char begin[] = "x-anthropic-billing-header";

	return b->endpoint == ENDPOINT_MESSAGES && b->sink == SINK_SYSTEM &&
	    n >= sizeof(begin) - 1 &&
	    memcmp(text, begin, sizeof(begin) - 1) == 0;
}

/*
 * Joins the lines kept from the first `looked` bytes of a text with the rest. A
 * long text lies in the reader's memory and is joined there. Any other lies in
 * the client's piece and is copied.
 */
static void
lines_join(struct body *b, const unsigned char **text, size_t *n,
    size_t looked)
{
	const struct hold *gathered = &b->json.text;
	const size_t gone = looked - b->lines.length;

	const uintptr_t at = (uintptr_t)*text - (uintptr_t)gathered->data;

	if (gathered->data != NULL && at < gathered->length) {
		memcpy(gathered->data + at + gone, b->lines.data,
		    b->lines.length);
		*text += gone;
		*n -= gone;
		return;
	}
	if (!hold_append(&b->lines, *text + looked, *n - looked))
		body_stop(b, BODY_NO_MEMORY);
	*text = b->lines.data;
	*n = b->lines.length;
}

/* Keeps `at` bytes and all lines behind them that are not ignored. */
static void
lines_keep(struct body *b, const unsigned char **text, size_t *n, size_t at,
    size_t looked)
{
	size_t length;

	b->lines.length = 0;
	if (!hold_append(&b->lines, *text, at))
		body_stop(b, BODY_NO_MEMORY);
	for (; at < looked && !b->stopped; at += length) {
		length = line_length(*text + at, looked - at);
		if (!line_is_ignored(b, *text + at, length) &&
		    !hold_append(&b->lines, *text + at, length))
			body_stop(b, BODY_NO_MEMORY);
	}
	if (!b->stopped)
		lines_join(b, text, n, looked);
}

/* Returns the length of the whole lines. */
static size_t
whole_lines(const unsigned char *text, size_t n)
{
	while (n > 0 && text[n - 1] != '\n')
		n--;
	return n;
}

void
body_lines_begin(struct body *b)
{
	const uint64_t last = b->led ? 2 : 1;

	b->lines_left = b->is_ignored != NULL &&
	    (b->sink == SINK_SYSTEM || b->messages <= last) ? LINES_BYTES : 0;
}

void
body_lines_drop(struct body *b, const unsigned char **text, size_t *n)
{
	size_t looked = *n < b->lines_left ? *n : b->lines_left, at, length;
	bool first = true;

	if (looked < *n)
		looked = whole_lines(*text, looked);
	b->lines_left = looked == *n ? b->lines_left - looked : 0;
	for (at = 0; at < looked; at += length) {
		length = line_length(*text + at, looked - at);
		if (!line_is_ignored(b, *text + at, length)) {
			first = false;
		} else if (first) {
			*text += length;
			*n -= length;
			looked -= length;
			length = 0;
		} else {
			lines_keep(b, text, n, at, looked);
			return;
		}
	}
}

/* Drops a block that engines drop, which they would keep as a bare text. */
void
body_lines_drop_part(struct body *b, const unsigned char **text, size_t *n)
{
	if (is_dropped(b, *text, *n))
		*n = 0;
	else
		body_lines_drop(b, text, n);
}
