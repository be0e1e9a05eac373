/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_shape.c - gives meaning to the keys and values of a body.
 *
 * Every open object or list is a level, and a level is a room: the keys known
 * there, and the kind of each value. Unknown values are skipped as a whole.
 *
 *   {"messages": [{"role": "user", "content": [{"text": "x", "x": 1}]}]}
 *    TOP          LIST                        PARTS
 *    is MESSAGES   MESSAGE         is CONTENT  PART        skipped
 *                   is TEXT                     is TEXT
 *
 *   {"prompt": [[1, 2, 3], ...]}     {"tools": [{"name": ...}, ...]}
 *    TOP       LIST                   TOP      WHOLE, down to the last number
 *
 * A level knows its room and the kind of its next value (`value`, with its mark
 * or number): in objects a key sets it, in lists it stays. So each call is one
 * step: the kind of value that begins here decides what a string, a number or
 * an object means.
 *
 * A message as it is written, whatever the order of its keys:
 *
 *   m  (  p  t What is this?  p  i DIGEST  )  r user
 *   m  (  c  a {"word": "x"}  n look_up  )  r assistant
 *   m  (  p  t forty-two  )  r tool
 *
 * A string instead of a list of parts is written like a list of one. What is
 * empty is not written: body_open is called ahead of text, and not before.
 */
#include "body_in.h"

#include <string.h>

#include "body_keys.h"

/* ---------------------------------------------------------------- keys --- */

/* The id of what the engine keeps; of others nothing. */
static void
kept_id(struct body *b, enum ahead ahead, const void *text, size_t n)
{
	if (ahead == AHEAD_PREVIOUS)
		body_id(b, BODY_PREVIOUS, text, n);
	else if (ahead == AHEAD_CONVERSATION)
		body_id(b, BODY_CONVERSATION, text, n);
}

/* A key at the top, or of metadata, perhaps repeated: the earlier is void. */
static void
void_top(struct body *b, const struct level *l)
{
	switch (l->value) {
	case IS_MESSAGES:
	case IS_PROMPTS:
		b->messages = b->prompts = 0;
		b->some = b->system.length > 0;
		b->by_tokens = b->several = b->media = b->answered = false;
		b->of_tokens = b->answer_last = false;
		body_rewind(b);
		break;
	case IS_SYSTEM:
		b->system.length = 0;
		b->some = b->messages > 0;
		break;
	case IS_NAME:
		b->name_length[l->mark] = 0;
		break;
	case IS_OPTIONS:
		b->flags[FLAG_USAGE] = false;
		break;
	case IS_ID:
		b->id_length[l->mark] = 0;
		break;
	case IS_METADATA:
		b->id_length[BODY_METADATA_USER] = 0;
		break;
	case IS_FALSE:
		b->flags[l->mark] = false;
		break;
	case IS_AHEAD:
		b->is_ahead[l->mark] = false;
		kept_id(b, l->mark, NULL, 0);
		break;
	default:
		break;
	}
}

/*
 * cache_control moves about in tools as it does in messages. It is skipped in
 * the objects of the top list only; deeper it may be a parameter's name.
 */
static void
whole_key(struct body *b, struct level *l, const void *name, size_t n)
{
	static const char moves[] = "cache_control";

	if (b->sink == SINK_DIGEST && b->depth == 3 &&
	    n == sizeof(moves) - 1 && memcmp(name, moves, n) == 0) {
		l->value = IS_SKIPPED;
		return;
	}
	l->value = IS_WHOLE;
	/* The id of a conversation, which may be an object. */
	l->mark = b->sink == SINK_DIGEST && b->depth == 2 &&
	    b->digesting == AHEAD_CONVERSATION && n == 2 &&
	    memcmp(name, "id", n) == 0;
	if (l->mark != 0)
		body_id(b, BODY_CONVERSATION, NULL, 0);
	body_text(b, MARK_KEY, name, n);
}

static bool
on_key(void *context, const unsigned char *name, size_t n)
{
	struct body *b = context;
	struct level *l = &b->level[b->depth];
	const struct key *k;

	if (l->room == ROOM_SKIP)
		return !b->stopped;
	if (l->room == ROOM_WHOLE_MAP) {
		whole_key(b, l, name, n);
		return !b->stopped;
	}
	k = body_key(l->room, b->endpoint, name, n);
	l->value = k == NULL ? IS_SKIPPED : k->value;
	l->mark = k == NULL ? 0 : k->mark;
	l->rank = k == NULL ? 0 : k->rank;
	if (l->room == ROOM_TOP || l->room == ROOM_METADATA)
		void_top(b, l);
	else if (!b->keeps_reasoning &&
	    (l->mark == MARK_THOUGHT || l->mark == MARK_SEALED))
		l->value = IS_SKIPPED;
	return !b->stopped;
}

/* -------------------------------------------------------------- values --- */

/* Ends what a value at the top has begun. */
static bool
top_done(struct body *b)
{
	if (b->depth == 1 && !b->apart && b->sink != SINK_NONE)
		body_settle(b);
	return !b->stopped;
}

/* Writes a bare text like the part that it stands for. */
static void
bare_text(struct body *b, const void *text, size_t n)
{
	if (n == 0)
		return;
	body_open(b);
	body_mark(b, MARK_PART);
	body_text(b, MARK_TEXT, text, n);
}

static void
string_content(struct body *b, enum mark mark, const void *text, size_t n)
{
	if (n == 0)
		return;
	body_open(b);
	if (mark != MARK_NONE)
		body_mark(b, mark);
	body_mark(b, MARK_OPEN);
	bare_text(b, text, n);
	body_mark(b, MARK_SHUT);
}

static void
message_begin(struct body *b)
{
	b->message_at = (b->sink == SINK_MESSAGES ? b->held.length :
	    b->written) + b->staged;
	body_mark(b, MARK_MESSAGE);
	b->messages++;
	b->some = true;
	b->answer_last = b->is_reasoning = false;
}

static void
role_put(struct body *b, const void *text, size_t n)
{
	body_order_text(b, MARK_ROLE, text, n);
	if (n != 9 || memcmp(text, "assistant", n) != 0)
		return;
	b->answer_last = true;
	if (b->answered)
		return;
	b->answered = true;
	b->opening = b->message_at;
}

static void
string_message(struct body *b, const void *text, size_t n)
{
	message_begin(b);
	string_content(b, MARK_NONE, text, n);
	body_text(b, MARK_ROLE, "user", 4);
}

/* Of several prompts the first one is used. */
static bool
is_first(struct body *b)
{
	if (b->prompts++ == 0)
		return true;
	b->several = true;
	return false;
}

static void
string_prompt(struct body *b, const void *text, size_t n)
{
	if (!is_first(b) || n == 0)
		return;
	body_text(b, MARK_PROMPT, text, n);
	b->some = true;
}

/* More of the text that a completion has begun. */
static void
string_more(struct body *b, const void *text, size_t n)
{
	body_open_sink(b, SINK_MESSAGES);
	body_put(b, text, n);
	b->other = true;
}

static void
media_put(struct body *b, const void *data, size_t n)
{
	XXH128_canonical_t digest;

	if (n == 0)
		return;
	body_open(b);
	XXH128_canonicalFromHash(&digest, XXH3_128bits(data, n));
	body_text(b, MARK_MEDIA, digest.digest, sizeof(digest.digest));
	b->media = true;
}

/* Values that must be strings: names, addresses or data of images. */
static void
string_rest(struct body *b, const struct level *l, const void *text, size_t n)
{
	switch (l->value) {
	case IS_TYPE:
		b->is_reasoning = !b->keeps_reasoning && n == 9 &&
		    memcmp(text, "reasoning", n) == 0;
		break;
	case IS_MORE:
		string_more(b, text, n);
		break;
	case IS_MEDIA:
		media_put(b, text, n);
		break;
	case IS_NAME:
		if (!b->closing)
			body_name(b, l->mark, text, n);
		break;
	case IS_ID:
		if (!b->closing)
			body_id(b, l->mark, text, n);
		break;
	case IS_AHEAD:
		if (!b->closing)
			kept_id(b, l->mark, text, n);
		body_open_digest(b, l->mark);
		body_text(b, MARK_STRING, text, n);
		break;
	case IS_TRUE:
	case IS_THERE:
	case IS_OPTIONS:
		b->flags[l->mark] = true;
		break;
	default:
		break;
	}
}

static void
string_value(struct body *b, const struct level *l, const void *text, size_t n)
{
	switch (l->value) {
	case IS_BODY:
		b->other = true;
		break;
	case IS_WHOLE:
		if (l->mark != 0 && !b->closing)
			body_id(b, BODY_CONVERSATION, text, n);
		body_text(b, MARK_STRING, text, n);
		break;
	case IS_CONTENT:
		string_content(b, l->mark, text, n);
		break;
	case IS_PART:
		bare_text(b, text, n);
		break;
	case IS_SYSTEM:
		body_open_sink(b, SINK_SYSTEM);
		string_content(b, MARK_SYSTEM, text, n);
		b->some |= n > 0;
		break;
	case IS_MESSAGES:
		if (b->endpoint != ENDPOINT_RESPONSES)
			break;
		body_open_sink(b, body_sink(b));
		string_message(b, text, n);
		break;
	case IS_MESSAGE:
		string_message(b, text, n);
		break;
	case IS_PROMPTS:
		body_open_sink(b, body_sink(b));
		string_prompt(b, text, n);
		break;
	case IS_PROMPT:
		string_prompt(b, text, n);
		break;
	default:
		string_rest(b, l, text, n);
	}
}

static bool
string_take(struct body *b, const unsigned char *text, size_t n)
{
	const struct level *l = &b->level[b->depth];

	if (l->value == IS_SKIPPED)
		return !b->stopped;
	if (l->value == IS_TEXT) {
		if (n > 0 && l->mark == MARK_ROLE)
			role_put(b, text, n);
		else if (n > 0)
			body_order_text(b, l->mark, text, n);
	} else if (body_is_ordered(l->room)) {
		body_order_value(b);
		string_value(b, l, text, n);
		body_order_value_done(b);
	} else {
		string_value(b, l, text, n);
	}
	return top_done(b);
}

/* A list of prompts: the first one, or one too many. */
static void
bare_token(struct body *b, const char *digits, size_t n)
{
	if (!b->by_tokens) {
		if (!is_first(b))
			return;
		b->by_tokens = b->of_tokens = true;
		body_mark(b, MARK_TOKENS);
	}
	body_token(b, digits, n);
}

/* A number, true, false or null. */
static bool
scalar_put(struct body *b, enum mark mark, const char *text, size_t n)
{
	const struct level *l = &b->level[b->depth];

	if (b->closing)
		return false;
	switch (l->value) {
	case IS_BODY:
		b->other = true;
		break;
	case IS_AHEAD:
		if (mark == MARK_NULL)
			break;
		body_open_digest(b, l->mark);
		/* fallthrough */
	case IS_WHOLE:
		body_text(b, mark, text, n);
		break;
	case IS_TRUE:
		b->flags[l->mark] = mark == MARK_TRUE ||
		    (mark == MARK_NUMBER && !(n == 1 && *text == '0'));
		break;
	case IS_FALSE:
		b->flags[l->mark] = mark == MARK_FALSE;
		break;
	case IS_THERE:
	case IS_OPTIONS:
		b->flags[l->mark] = mark != MARK_NULL && mark != MARK_FALSE;
		break;
	case IS_TOKEN:
		body_token(b, text, n);
		break;
	case IS_PROMPT:
		if (mark == MARK_NUMBER)
			bare_token(b, text, n);
		break;
	default:
		break;
	}
	return top_done(b);
}

static bool
number_take(struct body *b, const char *digits, size_t n)
{
	if (b->level[b->depth].value == IS_TOKEN && !b->closing) {
		body_token(b, digits, n);
		return !b->stopped;
	}
	return scalar_put(b, MARK_NUMBER, digits, n);
}

/* ---------------------------------------------------- objects and lists --- */

static void
level_enter(struct level *to, enum room room, enum value value)
{
	to->room = (unsigned char)room;
	to->value = (unsigned char)value;
	to->mark = 0;
	to->rank = 0;
	to->shut = MARK_NONE;
	to->n_open = 0;
}

/* A mark ahead of the first text of this level. */
static void
level_opens(struct level *to, enum mark mark)
{
	to->open[to->n_open++] = (unsigned char)mark;
}

static void
enter_whole(struct body *b, struct level *to, bool is_map)
{
	body_mark(b, is_map ? MARK_MAP : MARK_LIST);
	level_enter(to, is_map ? ROOM_WHOLE_MAP : ROOM_WHOLE_LIST, IS_WHOLE);
	to->shut = is_map ? MARK_MAP_END : MARK_LIST_END;
}

static void
enter_content(struct level *to, enum mark mark, bool is_map)
{
	level_enter(to, is_map ? ROOM_PART : ROOM_LIST, IS_PART);
	if (mark != MARK_NONE)
		level_opens(to, mark);
	level_opens(to, MARK_OPEN);
	if (is_map)
		level_opens(to, MARK_PART);
	to->shut = MARK_SHUT;
}

static void
enter_call(struct level *to, bool is_only)
{
	level_enter(to, ROOM_CALL, IS_SKIPPED);
	if (is_only)
		level_opens(to, MARK_OPEN);
	level_opens(to, MARK_CALL);
	if (is_only)
		to->shut = MARK_SHUT;
}

static void
enter_map(struct body *b, const struct level *l, struct level *to)
{
	switch (l->value) {
	case IS_BODY:
		level_enter(to, ROOM_TOP, IS_SKIPPED);
		break;
	case IS_MESSAGE:
		message_begin(b);
		level_enter(to, ROOM_MESSAGE, IS_SKIPPED);
		break;
	case IS_PART:
		level_enter(to, ROOM_PART, IS_SKIPPED);
		level_opens(to, MARK_PART);
		break;
	case IS_MEDIA:
		level_enter(to, ROOM_MEDIA, IS_SKIPPED);
		break;
	case IS_CALL:
		enter_call(to, l->mark == MARK_OPEN);
		break;
	case IS_FUNCTION:
		level_enter(to, ROOM_FUNCTION, IS_SKIPPED);
		break;
	case IS_OPTIONS:
		b->flags[FLAG_OPTIONS] = true;
		level_enter(to, ROOM_OPTIONS, IS_SKIPPED);
		break;
	case IS_METADATA:
		level_enter(to, ROOM_METADATA, IS_SKIPPED);
		break;
	default:
		level_enter(to, ROOM_SKIP, IS_SKIPPED);
	}
}

static void
enter_list(struct body *b, const struct level *l, struct level *to)
{
	enum value of = IS_SKIPPED;

	switch (l->value) {
	case IS_MESSAGES:
		body_open_sink(b, body_sink(b));
		of = IS_MESSAGE;
		break;
	case IS_CALLS:
		of = IS_CALL;
		break;
	case IS_PROMPTS:
		body_open_sink(b, body_sink(b));
		of = IS_PROMPT;
		break;
	case IS_PROMPT:
		if (!is_first(b))
			break;
		body_mark(b, MARK_TOKENS);
		b->of_tokens = true;
		of = IS_TOKEN;
		break;
	case IS_OPTIONS:
		b->flags[FLAG_OPTIONS] = true;
		break;
	default:
		break;
	}
	level_enter(to, of == IS_SKIPPED ? ROOM_SKIP : ROOM_LIST, of);
	if (of == IS_CALL) {
		level_opens(to, MARK_OPEN);
		to->shut = MARK_SHUT;
	}
}

/* May be an object or a list. */
static bool
enter_either(struct body *b, const struct level *l, struct level *to,
    bool is_map)
{
	switch (l->value) {
	case IS_SKIPPED:
		level_enter(to, ROOM_SKIP, IS_SKIPPED);
		return true;
	case IS_AHEAD:
		body_open_digest(b, l->mark);
		enter_whole(b, to, is_map);
		return true;
	case IS_TEXT:
		body_open(b);
		body_mark(b, l->mark);
		enter_whole(b, to, is_map);
		return true;
	case IS_WHOLE:
		enter_whole(b, to, is_map);
		return true;
	case IS_SYSTEM:
		body_open_sink(b, SINK_SYSTEM);
		enter_content(to, MARK_SYSTEM, is_map);
		return true;
	case IS_CONTENT:
		enter_content(to, l->mark, is_map);
		return true;
	case IS_TRUE:
	case IS_THERE:
		b->flags[l->mark] = true;
		level_enter(to, ROOM_SKIP, IS_SKIPPED);
		return true;
	default:
		return false;
	}
}

/* Bounds how often a byte that is aside is copied. */
static void
count_ordered(struct body *b, const struct level *l, struct level *to)
{
	to->ordered = l->ordered;
	if (!body_is_ordered(to->room))
		return;
	if (++to->ordered > ORDERED_MAX)
		level_enter(to, ROOM_SKIP, IS_SKIPPED);
	else
		body_order_begin(b, to);
}

static bool
open_level(struct body *b, bool is_map)
{
	const struct level *l = &b->level[b->depth];
	struct level *to = &b->level[b->depth + 1];

	if (b->depth == BODY_DEPTH) {
		body_stop(b, BODY_TOO_DEEP);
		return false;
	}
	if (body_is_ordered(l->room) && l->value != IS_SKIPPED)
		body_order_value(b);
	if (!enter_either(b, l, to, is_map)) {
		if (is_map)
			enter_map(b, l, to);
		else
			enter_list(b, l, to);
	}
	count_ordered(b, l, to);
	b->depth++;
	if (to->value == IS_WHOLE)
		b->opened = b->depth;
	return !b->stopped;
}

static bool
on_value(void *context, enum json_kind kind, const void *text, size_t n)
{
	switch (kind) {
	case JSON_STRING:
		return string_take(context, text, n);
	case JSON_NUMBER:
		return number_take(context, text, n);
	case JSON_BOOLEAN:
		return scalar_put(context, n == 1 ? MARK_TRUE : MARK_FALSE,
		    "", 0);
	case JSON_NULL:
		return scalar_put(context, MARK_NULL, "", 0);
	default:
		return open_level(context, kind == JSON_MAP);
	}
}

/* The object or list at hand, with its marks and its values. */
static void
close_level(struct body *b)
{
	const struct level *l = &b->level[b->depth];

	if (body_is_ordered(l->room))
		body_order_done(b);
	if (b->opened >= b->depth) {
		if (l->shut != MARK_NONE)
			body_mark(b, l->shut);
		b->opened = b->depth - 1;
	}
	if (l->room == ROOM_MESSAGE && b->is_reasoning)
		body_drop_item(b);
	b->depth--;
	l--;
	if (body_is_ordered(l->room) && l->value != IS_SKIPPED)
		body_order_value_done(b);
}

static bool
on_end(void *context, uint64_t at)
{
	struct body *b = context;
	const struct level *l = &b->level[b->depth];

	close_level(b);
	if (b->depth == 0 && l->room != ROOM_TOP) {
		b->other = true;
	} else if (b->depth == 0) {
		b->whole = true;
		b->end = at;
	}
	return top_done(b);
}

const struct json_calls body_calls = {
	.key = on_key, .value = on_value, .end = on_end,
	.elements = body_tokens
};

void
body_outside(struct body *b, unsigned value)
{
	b->depth = 0;
	b->level[0].ordered = 0;
	level_enter(&b->level[0], ROOM_OUTSIDE, value);
}
