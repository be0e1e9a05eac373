/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body.c - takes a body in pieces and returns the outcome.
 *
 * A body may end within a string, which counts up to the cut. The reader then
 * gets the missing end: the rest of a character or of an escape, and a quote.
 */
#include "body_in.h"

#include <stdlib.h>
#include <string.h>

#include "body_keys.h"
#include "body_string.h"

struct body *
body_new(void)
{
	struct body *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->digest = XXH3_createState();
	if (b->digest == NULL) {
		free(b);
		return NULL;
	}
	b->stopped = true;
	return b;
}

void
body_free(struct body *b)
{
	if (b == NULL)
		return;
	hold_free(&b->json.text);
	hold_free(&b->system);
	hold_free(&b->held);
	hold_free(&b->side);
	hold_free(&b->parts);
	hold_free(&b->lines);
	XXH3_freeState(b->digest);
	free(b);
}

void
body_trim(struct body *b)
{
	hold_trim(&b->json.text);
	hold_trim(&b->system);
	hold_trim(&b->held);
	hold_trim(&b->side);
	hold_trim(&b->parts);
	hold_trim(&b->lines);
}

const char *
body_reader(void)
{
	return string_way();
}

static void
state_forget(struct body *b)
{
	json_reader_begin(&b->json, &body_calls, b);
	b->given = b->fed = b->end = b->beside = 0;
	b->n_last = 0;
	b->order_mark = 0;
	b->stopped = b->closing = b->whole = b->other = b->is_cut = false;
	b->why = BODY_PROMPT;
	b->messages = b->prompts = 0;
	b->answered = b->answer_last = b->is_reasoning = b->led = false;
	b->by_tokens = b->some = b->several = b->media = false;
	b->of_tokens = false;
	memset(b->flags, 0, sizeof(b->flags));
	b->usage = BODY_USAGE_MEMBER;
	b->usage_at = b->usage_cut = 0;
	b->sink = SINK_NONE;
	b->staged = 0;
	b->written = b->digested = b->others = 0;
	memset(b->is_ahead, 0, sizeof(b->is_ahead));
	memset(b->name_length, 0, sizeof(b->name_length));
	memset(b->id_length, 0, sizeof(b->id_length));
	b->lines_left = 0;
	body_trim(b);
	b->system.length = b->held.length = 0;
	body_order_reset(b);
}

static void
begin_with(struct body *b, struct kvr_prompt *p, enum endpoint endpoint,
    enum value what)
{
	b->prompt = p;
	b->endpoint = endpoint;
	state_forget(b);
	b->apart = what != IS_BODY;
	body_outside(b, what);
	if (endpoint == ENDPOINT_OTHER && p != NULL)
		body_stop(b, BODY_NO_PROMPT);
}

void
body_begin(struct body *b, struct kvr_prompt *p, enum endpoint endpoint)
{
	begin_with(b, p, endpoint, IS_BODY);
	if (p != NULL)
		(void)kvr_prompt_begin(p, NULL);
}

void
body_reasoning(struct body *b, bool keep)
{
	b->keeps_reasoning = keep;
}

void
body_ignore(struct body *b, body_line *is_ignored, void *context)
{
	b->is_ignored = is_ignored;
	b->ignoring = context;
}

uint64_t
body_beside(const struct body *b)
{
	return b->beside;
}

/* ------------------------------------------------------------- feeding --- */

static void
last_keep(struct body *b, const unsigned char *bytes, size_t n)
{
	size_t old = b->n_last;

	if (n > LAST_BYTES) {
		bytes += n - LAST_BYTES;
		n = LAST_BYTES;
	}
	if (old > LAST_BYTES - n) {
		memmove(b->last, b->last + old - (LAST_BYTES - n),
		    LAST_BYTES - n);
		old = LAST_BYTES - n;
	}
	memcpy(b->last + old, bytes, n);
	b->n_last = old + n;
}

/*
 * Passes over a byte order mark ahead of the body, as engines do. It may come
 * in pieces. Returns the number of its bytes in this piece.
 */
static size_t
order_mark(struct body *b, const unsigned char *bytes, size_t n)
{
	static const unsigned char mark[] = { 0xef, 0xbb, 0xbf };
	size_t i;

	for (i = 0; i < n && b->fed == b->order_mark &&
	    b->order_mark < sizeof(mark) && bytes[i] == mark[b->order_mark];
	    i++) {
		b->order_mark++;
		b->fed++;
	}
	if (i < n && b->order_mark > 0 && b->order_mark < sizeof(mark))
		body_stop(b, BODY_NOT_JSON);
	return i;
}

static void
piece_feed(struct body *b, const unsigned char *bytes, size_t n)
{
	size_t skipped = order_mark(b, bytes, n);

	if (b->stopped || skipped == n)
		return;
	bytes += skipped;
	n -= skipped;
	b->json.at = b->fed;
	json_reader_data(&b->json, bytes, n);
	if (b->json.stopped != JSON_LIVES)
		body_stop(b, b->json.stopped == JSON_BROKEN ? BODY_NOT_JSON :
		    BODY_NO_MEMORY);
	b->fed += n;
	last_keep(b, bytes, n);
}

void
body_data(struct body *b, const void *data, size_t n)
{
	b->given += n;
	if (!b->stopped && !b->is_cut && n > 0)
		piece_feed(b, data, n);
}

void
body_cut(struct body *b)
{
	b->is_cut = true;
}

/* --------------------------------------------------------------- early --- */

/* Returns the number of bytes missing from the last character. */
static size_t
bytes_lacking(const struct body *b)
{
	size_t i, has;
	unsigned char c;

	for (i = b->n_last, has = 1; i > 0 && has < 4; i--, has++) {
		c = b->last[i - 1];
		if (c < 0x80)
			return 0;
		if (c < 0xc0)
			continue;
		return (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) - has;
	}
	return 0;
}

/*
 * Finds the begin of an escape that may be cut: a backslash at the end, or with
 * 'u' and less than four digits behind it. Returns n_last if there is no such.
 */
static size_t
escape_at(const struct body *b)
{
	size_t i = b->n_last, run = 0;

	while (i > 0 && b->n_last - i < 4 && b->last[i - 1] != '\\')
		i--;
	if (i == 0 || b->last[i - 1] != '\\')
		return b->n_last;
	if (i < b->n_last && b->last[i] != 'u')
		return b->n_last;
	while (run < i && b->last[i - 1 - run] == '\\')
		run++;
	return run % 2 == 1 ? i - 1 : b->n_last;
}

size_t
body_missing(const struct body *b, unsigned char end[8])
{
	size_t n = bytes_lacking(b), at = escape_at(b), has = b->n_last - at;

	if (n > 0) {
		memset(end, 0x80, n);
	} else if (has == 1) {
		end[n++] = '\\';
	} else if (has > 1) {
		for (n = 0; has + n < 6; n++)
			end[n] = '0';
	}
	end[n++] = '"';
	return n;
}

static void
close_early(struct body *b)
{
	unsigned char end[8];

	b->closing = true;
	piece_feed(b, end, body_missing(b, end));
}

/* The text is not in an object or list. A blank ends a number. */
static void
close_outside(struct body *b)
{
	piece_feed(b, (const unsigned char *)" ", 1);
	if (b->stopped)
		b->other = false;
}

/* ----------------------------------------------------------------- end --- */

/* Does the scope have media? */
static bool
has_media_ahead(const struct body *b)
{
	size_t i;

	for (i = AHEAD_EMBEDS; i <= AHEAD_IMAGE; i++)
		if (b->is_ahead[i])
			return true;
	return false;
}

static void
facts_make(const struct body *b, struct body_facts *facts)
{
	const bool *flag = b->flags;
	size_t i;

	memset(facts, 0, sizeof(*facts));
	facts->model = b->name[NAME_MODEL];
	facts->model_length = b->name_length[NAME_MODEL];
	for (i = 0; i < BODY_IDS; i++) {
		facts->id[i] = b->id[i];
		facts->id_length[i] = b->id_length[i];
	}
	facts->end = b->whole ? b->end : 0;
	facts->messages = b->messages;
	facts->bytes = b->written;
	facts->opening = !b->answered ? b->written : b->opening +
	    (body_sink(b) == SINK_MESSAGES ? b->system.length : 0);
	facts->ahead = b->digested;
	facts->cut = !b->whole;
	facts->stream = flag[FLAG_STREAM];
	facts->usage = b->usage;
	facts->usage_at = b->usage_at;
	facts->usage_cut = b->usage_cut;
	facts->several = b->several;
	facts->many = flag[FLAG_MANY] || flag[FLAG_BEST];
	facts->media = b->media || has_media_ahead(b);
	facts->prompt_logprobs = flag[FLAG_PROMPT_LOGPROBS] ||
	    (flag[FLAG_ECHO] && flag[FLAG_LOGPROBS]);
	facts->stored = b->is_ahead[AHEAD_PREVIOUS] ||
	    b->is_ahead[AHEAD_CONVERSATION] || b->is_ahead[AHEAD_STORED_PROMPT];
	facts->unstored = flag[FLAG_UNSTORED];
	facts->extends = b->whole && b->some && !b->several && !b->of_tokens &&
	    !b->answer_last && !flag[FLAG_ECHO] && !facts->stored;
}

static enum body_outcome
outcome_of(const struct body *b)
{
	if (b->why == BODY_NO_MEMORY || b->why == BODY_TOO_DEEP)
		return b->why;
	if (b->endpoint == ENDPOINT_OTHER)
		return BODY_NO_PROMPT;
	if (b->given == 0)
		return BODY_EMPTY;
	if (b->some)
		return BODY_PROMPT;
	return b->whole || b->other || b->is_cut ? BODY_NO_PROMPT :
	    BODY_NOT_JSON;
}

enum body_outcome
body_end(struct body *b, struct body_facts *facts)
{
	if (b->stopped)
		b->whole = b->other = false;
	else if (b->fed > 0 && !b->whole && b->depth == 0)
		close_outside(b);
	else if (b->fed > 0 && !b->whole)
		close_early(b);
	b->stopped = false;
	body_close_digests(b);
	if (b->is_reasoning)
		body_drop_item(b);
	body_settle(b);
	if (b->prompt == NULL)
		b->written = b->system.length + b->held.length;
	else
		body_release(b);
	b->stopped = true;
	facts_make(b, facts);
	return outcome_of(b);
}

enum body_outcome
body_prompt(struct body *b, struct kvr_prompt *p)
{
	if (outcome_of(b) != BODY_PROMPT)
		return outcome_of(b);
	b->prompt = p;
	(void)kvr_prompt_begin(p, NULL);
	b->written = 0;
	b->stopped = false;
	body_release(b);
	b->stopped = true;
	return outcome_of(b);
}

/* ------------------------------------------------------ messages apart --- */

void
body_message_begin(struct body *b, struct kvr_prompt *p,
    enum endpoint endpoint)
{
	begin_with(b, p, endpoint, endpoint == ENDPOINT_COMPLETIONS ? IS_MORE :
	    IS_MESSAGES);
}

enum body_outcome
body_message_end(struct body *b, uint64_t *bytes)
{
	enum body_outcome why = BODY_NOT_JSON;

	*bytes = 0;
	body_settle(b);
	if (b->stopped)
		why = b->why;
	else if (b->other && !b->is_cut)
		why = b->held.length > 0 ? BODY_PROMPT : BODY_NO_PROMPT;
	if (why == BODY_PROMPT) {
		body_release(b);
		why = b->why;
		*bytes = b->written;
	}
	b->stopped = true;
	return why;
}

int
body_scope(const struct body *b, const struct kvr *k, struct kvr_scope *scope)
{
	unsigned char text[AHEADS * (1 + sizeof(XXH128_canonical_t))];
	size_t i, n = 0;
	int e = KVR_OK;

	for (i = 0; i < AHEADS; i++) {
		if (!b->is_ahead[i])
			continue;
		text[n++] = (unsigned char)i;
		memcpy(text + n, b->ahead[i].digest, sizeof(b->ahead[i]));
		n += sizeof(b->ahead[i]);
	}
	if (n > 0)
		e = kvr_scope_set(k, scope, KVR_SCOPE_ADAPTER, text, n);
	if (e == KVR_OK && b->name_length[NAME_SALT] > 0)
		e = kvr_scope_set(k, scope, KVR_SCOPE_SALT, b->name[NAME_SALT],
		    b->name_length[NAME_SALT]);
	return e;
}
