/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * body_shape.c - gives meaning to the keys and values of a body.
 *
 * Each open object or list is a level with a room: the keys known in it, and
 * the kind of each value. Unknown values are skipped at the top; elsewhere a
 * digest stands for them, since an engine may show them to the model.
 *
 *   {"messages": [{"role": "user", "content": [{"text": "x", "x": 1}]}]}
 *    TOP          LIST                        PARTS
 *    is MESSAGES   MESSAGE         is CONTENT  PART        skipped
 *                   is TEXT                     is TEXT
 *
 *   {"prompt": [[1, 2, 3], ...]}     {"tools": [{"name": ...}, ...]}
 *    TOP       LIST                   TOP      DIGEST, down to the last number
 *
 * A level has a room and the kind of its next value (`value`, with its mark or
 * number). In objects a key sets the kind, in lists it stays. Each call of the
 * reader is one step: the kind of the value decides the meaning of a string, a
 * number or an object.
 *
 * Messages are written like this, whatever the order of their keys:
 *
 *   m  (  p  t What is this?  p  i DIGEST  )  r user
 *   m  (  c  a {"word": "x"}  n look_up  )  r assistant
 *   m  (  p  t forty-two  )  r tool
 *
 * A string instead of a list of parts is written like a list of one. An empty
 * value is not written: body_open is called just ahead of text. The system text
 * of Responses and Messages is written like a message of that role.
 */
#include "body_in.h"

#include <string.h>

#include "body_keys.h"

/* ---------------------------------------------------------------- keys --- */

/* Keeps an id of state that the engine has; other fields have no id. */
static void
kept_id(struct body *b, enum ahead ahead, const void *text, size_t n)
{
	if (ahead == AHEAD_PREVIOUS)
		body_id(b, BODY_PREVIOUS, text, n);
	else if (ahead == AHEAD_CONVERSATION)
		body_id(b, BODY_CONVERSATION, text, n);
}

/* A key at the top, or of metadata, voids an earlier one of the same name. */
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
	case IS_ID:
		b->id_length[l->mark] = 0;
		break;
	case IS_METADATA:
		b->id_length[BODY_METADATA_USER] = 0;
		break;
	case IS_FALSE:
	case IS_MANY:
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

/* Sets the text that makes the body ask for usage, and its place. */
static void
usage_place(struct body *b, enum body_usage how, uint64_t at, uint64_t cut)
{
	b->usage = how;
	b->usage_at = at;
	b->usage_cut = cut;
}

/* Engines take either of two equal keys, so both are left alone. */
static void
usage_key(struct body *b, const struct level *l)
{
	if (l->room == ROOM_TOP && l->value == IS_OPTIONS) {
		b->usage = b->usage == BODY_USAGE_MEMBER ? BODY_USAGE_OPTIONS
		    : BODY_USAGE_NONE;
	} else if (l->room == ROOM_OPTIONS) {
		if (l->value == IS_TRUE && (b->usage == BODY_USAGE_ALONE ||
		    b->usage == BODY_USAGE_FIRST))
			b->usage = BODY_USAGE_TRUE;
		else if (l->value == IS_TRUE)
			b->usage = BODY_USAGE_NONE;
		else if (b->usage == BODY_USAGE_ALONE)
			b->usage = BODY_USAGE_FIRST;
	}
}

/* The value of stream_options, or of include_usage in it, is a scalar. */
static void
usage_scalar(struct body *b, const struct level *l, enum mark mark)
{
	const bool whole = l->value == IS_OPTIONS,
	    none = mark == MARK_NULL || (mark == MARK_FALSE && !whole);

	if (b->usage != (whole ? BODY_USAGE_OPTIONS : BODY_USAGE_TRUE))
		return;
	usage_place(b, none ? b->usage : BODY_USAGE_NONE, b->json.token_at,
	    mark == MARK_NULL ? 4 : 5);
}

/*
 * cache_control moves about in tools as it does in messages. It is skipped in
 * the objects of the top list only; deeper it may be a parameter's name.
 */
static void
digest_key(struct body *b, struct level *l, const void *name, size_t n)
{
	static const char moves[] = "cache_control";
	const bool in_scope = b->level[1].value == IS_AHEAD;

	if (in_scope && b->depth == 3 &&
	    n == sizeof(moves) - 1 && memcmp(name, moves, n) == 0) {
		l->value = IS_SKIPPED;
		return;
	}
	l->value = IS_DIGEST;
	/* The id of a conversation, which may be an object. */
	l->mark = in_scope && b->depth == 2 &&
	    b->level[1].mark == AHEAD_CONVERSATION && n == 2 &&
	    memcmp(name, "id", n) == 0;
	if (l->mark != 0)
		body_id(b, BODY_CONVERSATION, NULL, 0);
	body_digest_key(b, name, n);
}

/* A key that is not in the table. */
static void
other_key(struct body *b, struct level *l, const void *name, size_t n)
{
	l->value = IS_SKIPPED;
	l->mark = l->rank = 0;
	if (!body_is_ordered(l->room))
		return;
	l->value = IS_OTHER;
	body_digest_key(b, name, n);
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
		body_text(b, MARK_KEY, name, n);
		return !b->stopped;
	}
	if (l->room == ROOM_DIGEST_MAP) {
		digest_key(b, l, name, n);
		return !b->stopped;
	}
	k = body_key(l->room, b->endpoint, name, n);
	if (k != NULL) {
		l->value = k->value;
		l->mark = k->mark;
		l->rank = k->rank;
	} else {
		other_key(b, l, name, n);
	}
	if (l->value == IS_OPTIONS || l->room == ROOM_OPTIONS)
		usage_key(b, l);
	if (k == NULL)
		return !b->stopped;
	if (l->room == ROOM_TOP || l->room == ROOM_METADATA)
		void_top(b, l);
	else if (!b->keeps_reasoning &&
	    (l->mark == MARK_THOUGHT || l->mark == MARK_SEALED))
		l->value = IS_SKIPPED;
	return !b->stopped;
}

/* -------------------------------------------------------------- values --- */

/* Ends the text of a value at the top. */
static bool
top_done(struct body *b)
{
	if (b->depth == 1 && !b->apart && b->sink != SINK_NONE)
		body_settle(b);
	return !b->stopped;
}

/* Writes a bare text like the part that it stands for. */
static void
bare_text(struct body *b, const unsigned char *text, size_t n)
{
	body_lines_drop(b, &text, &n);
	if (n == 0)
		return;
	body_open(b);
	body_mark(b, MARK_PART);
	body_text(b, MARK_TEXT, text, n);
}

/* Writes a string as the only part of a list; nothing if it is empty. */
static void
string_content(struct body *b, enum mark mark, const unsigned char *text,
    size_t n)
{
	body_lines_drop(b, &text, &n);
	if (n == 0)
		return;
	body_open(b);
	if (mark != MARK_NONE)
		body_mark(b, mark);
	body_mark(b, MARK_OPEN);
	body_mark(b, MARK_PART);
	body_text(b, MARK_TEXT, text, n);
	body_mark(b, MARK_SHUT);
}

/* System text is written like a first message; without a role if it is cut. */
static void
system_begin(struct body *b)
{
	body_open_sink(b, SINK_SYSTEM);
	body_lines_begin(b);
}

static void
system_done(struct body *b)
{
	if (!b->closing)
		body_text(b, MARK_ROLE, "system", 6);
}

static void
string_system(struct body *b, const unsigned char *text, size_t n)
{
	system_begin(b);
	body_lines_drop(b, &text, &n);
	if (n == 0)
		return;
	body_mark(b, MARK_MESSAGE);
	b->lines_left = 0;
	string_content(b, MARK_NONE, text, n);
	system_done(b);
	b->some = true;
}

static void
message_begin(struct body *b)
{
	b->message_at = (b->sink == SINK_MESSAGES ? b->held.length :
	    b->written) + b->staged;
	body_mark(b, MARK_MESSAGE);
	b->messages++;
	b->others = 0;
	b->led &= b->messages > 1;
	body_lines_begin(b);
	b->some = true;
	b->answer_last = b->is_reasoning = false;
}

static void
role_put(struct body *b, const void *text, size_t n)
{
	body_order_text(b, MARK_ROLE, text, n);
	b->led |= b->messages == 1 &&
	    ((n == 6 && memcmp(text, "system", n) == 0) ||
	    (n == 9 && memcmp(text, "developer", n) == 0));
	if (n != 9 || memcmp(text, "assistant", n) != 0)
		return;
	b->answer_last = true;
	if (b->answered)
		return;
	b->answered = true;
	b->opening = b->message_at;
}

static void
string_message(struct body *b, const unsigned char *text, size_t n)
{
	message_begin(b);
	string_content(b, MARK_NONE, text, n);
	body_text(b, MARK_ROLE, "user", 4);
}

/* Is this the first of several prompts, the only one that is used? */
static bool
is_first(struct body *b)
{
	if (b->prompts++ == 0)
		return true;
	b->several = true;
	return false;
}

static void
string_prompt(struct body *b, const unsigned char *text, size_t n)
{
	if (!is_first(b))
		return;
	body_lines_begin(b);
	body_lines_drop(b, &text, &n);
	if (n == 0)
		return;
	body_text(b, MARK_PROMPT, text, n);
	b->some = true;
}

/* Writes text that follows the prompt of a completion. */
static void
string_more(struct body *b, const void *text, size_t n)
{
	body_open_sink(b, SINK_MESSAGES);
	body_put(b, text, n);
	b->other = true;
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
		if (n > 0)
			body_media(b, body_string_hash(b, text, n));
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
		body_digest_string(b, text, n);
		break;
	case IS_TRUE:
	case IS_THERE:
	case IS_OPTIONS:
		if (l->mark == FLAG_OPTIONS || l->mark == FLAG_USAGE)
			b->usage = BODY_USAGE_NONE;
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
		body_text(b, MARK_STRING, text, n);
		break;
	case IS_DIGEST:
		if (l->mark != 0 && !b->closing)
			body_id(b, BODY_CONVERSATION, text, n);
		body_digest_string(b, text, n);
		break;
	case IS_CONTENT:
		string_content(b, l->mark, text, n);
		break;
	case IS_PART:
		bare_text(b, text, n);
		break;
	case IS_SYSTEM:
		string_system(b, text, n);
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

/* Is the string left out of the prompt's text? */
static bool
is_beside(const struct level *l)
{
	return l->value == IS_SKIPPED || l->value == IS_MEDIA ||
	    l->value == IS_OTHER || l->value == IS_AHEAD ||
	    l->value == IS_DIGEST;
}

static bool
string_take(struct body *b, const unsigned char *text, size_t n)
{
	const struct level *l = &b->level[b->depth];

	if (text != NULL && is_beside(l))
		b->beside += n;
	if (l->value == IS_SKIPPED)
		return !b->stopped;
	if (l->value == IS_OTHER) {
		body_digest_string(b, text, n);
	} else if (l->value == IS_TEXT) {
		if (l->mark == MARK_TEXT)
			body_lines_drop_part(b, &text, &n);
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

/* A number in the list of prompts: the list is one prompt of ids. */
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

/* Does a value of an unexpected kind count, by a digest? */
static bool
is_shown(const struct level *l)
{
	return body_is_ordered(l->room) || l->value == IS_PART;
}

/* UINT64_MAX stands for a number that is not whole. */
static bool
is_many(uint64_t number)
{
	return number > 1 && number < UINT64_MAX;
}

/* Takes a number, true, false or null. */
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
	case IS_DIGEST:
	case IS_OTHER:
		body_digest_scalar(b, mark, text, n);
		break;
	case IS_WHOLE:
		body_text(b, mark, text, n);
		break;
	case IS_TRUE:
		if (l->mark == FLAG_USAGE)
			usage_scalar(b, l, mark);
		b->flags[l->mark] = mark == MARK_TRUE ||
		    (mark == MARK_NUMBER && !(n == 1 && *text == '0'));
		break;
	case IS_MANY:
		b->flags[l->mark] = mark == MARK_NUMBER &&
		    is_many(body_whole_number(text, n));
		break;
	case IS_FALSE:
		b->flags[l->mark] = mark == MARK_FALSE;
		break;
	case IS_OPTIONS:
		usage_scalar(b, l, mark);
		break;
	case IS_THERE:
		b->flags[l->mark] = mark != MARK_NULL && mark != MARK_FALSE;
		break;
	case IS_TOKEN:
		body_token(b, text, n);
		break;
	case IS_PROMPT:
		if (mark == MARK_NUMBER)
			bare_token(b, text, n);
		break;
	case IS_SKIPPED:
		break;
	default:
		if (is_shown(l))
			body_digest_scalar(b, mark, text, n);
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
	to->is_system = false;
	to->n_open = 0;
}

/* Adds a mark ahead of the first text of a level. */
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
enter_digest(struct body *b, struct level *to, bool is_map)
{
	level_enter(to, is_map ? ROOM_DIGEST_MAP : ROOM_DIGEST_LIST,
	    IS_DIGEST);
	body_digest_open(b, to, is_map);
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

/* An unexpected object or list counts by a digest, or is skipped. */
static void
enter_other(struct body *b, const struct level *l, struct level *to,
    bool is_map)
{
	if (is_shown(l))
		enter_digest(b, to, is_map);
	else
		level_enter(to, ROOM_SKIP, IS_SKIPPED);
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
		b->media = true;
		level_enter(to, ROOM_MEDIA, IS_SKIPPED);
		break;
	case IS_CALL:
		enter_call(to, l->mark == MARK_OPEN);
		break;
	case IS_FUNCTION:
		level_enter(to, ROOM_FUNCTION, IS_SKIPPED);
		break;
	case IS_OPTIONS:
		if (b->usage == BODY_USAGE_OPTIONS)
			usage_place(b, BODY_USAGE_ALONE, b->json.token_at + 1,
			    0);
		level_enter(to, ROOM_OPTIONS, IS_SKIPPED);
		break;
	case IS_METADATA:
		level_enter(to, ROOM_METADATA, IS_SKIPPED);
		break;
	default:
		enter_other(b, l, to, true);
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
		b->usage = BODY_USAGE_NONE;
		break;
	default:
		break;
	}
	if (of == IS_SKIPPED) {
		enter_other(b, l, to, false);
		return;
	}
	level_enter(to, ROOM_LIST, of);
	if (of == IS_CALL) {
		level_opens(to, MARK_OPEN);
		to->shut = MARK_SHUT;
	}
}

/* Enters a value that may be an object or a list; false: it may not. */
static bool
enter_either(struct body *b, const struct level *l, struct level *to,
    bool is_map)
{
	switch (l->value) {
	case IS_SKIPPED:
		level_enter(to, ROOM_SKIP, IS_SKIPPED);
		return true;
	case IS_AHEAD:
	case IS_DIGEST:
	case IS_OTHER:
		enter_digest(b, to, is_map);
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
		system_begin(b);
		enter_content(to, MARK_MESSAGE, is_map);
		to->is_system = true;
		return true;
	case IS_CONTENT:
		enter_content(to, l->mark, is_map);
		return true;
	case IS_TRUE:
	case IS_THERE:
		if (l->mark == FLAG_USAGE)
			b->usage = BODY_USAGE_NONE;
		b->flags[l->mark] = true;
		level_enter(to, ROOM_SKIP, IS_SKIPPED);
		return true;
	default:
		return false;
	}
}

/* Does the current value have a place in its object? */
static bool
is_ranked(const struct level *l)
{
	return body_is_ordered(l->room) && l->value != IS_SKIPPED &&
	    l->value != IS_OTHER;
}

/* Limits the depth of ordered objects, so that bytes are copied less often. */
static void
count_ordered(struct body *b, const struct level *l, struct level *to)
{
	to->ordered = l->ordered;
	if (!body_is_ordered(to->room))
		return;
	if (++to->ordered > ORDERED_MAX)
		enter_digest(b, to, true);
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
	if (is_ranked(l))
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

/* Ends the current object or list, with its marks and its values. */
static void
close_level(struct body *b)
{
	const struct level *l = &b->level[b->depth];

	if (body_is_ordered(l->room)) {
		body_digest_others(b);
		body_order_done(b);
	}
	if (b->opened >= b->depth) {
		if (l->shut != MARK_NONE)
			body_mark(b, l->shut);
		if (l->is_system)
			system_done(b);
		b->opened = b->depth - 1;
	}
	if (l->room == ROOM_MESSAGE && b->is_reasoning)
		body_drop_item(b);
	b->depth--;
	if (l->room == ROOM_DIGEST_MAP || l->room == ROOM_DIGEST_LIST)
		body_digest_close(b, l);
	if (is_ranked(l - 1))
		body_order_value_done(b);
}

/* The begun part of a value in the scope counts. */
void
body_close_digests(struct body *b)
{
	while (b->depth > 1 && b->level[1].value == IS_AHEAD)
		close_level(b);
}

/* -------------------------------------------------------------- strings --- */

static bool
in_pieces(void *context)
{
	struct body *b = context;
	const struct level *l = &b->level[b->depth];

	if (!is_beside(l) || (l->value == IS_DIGEST && l->mark != 0) ||
	    (l->value == IS_AHEAD && (l->mark == AHEAD_PREVIOUS ||
	    l->mark == AHEAD_CONVERSATION)))
		return false;
	XXH3_128bits_reset(b->digest);
	return true;
}

static void
piece_take(void *context, const unsigned char *bytes, size_t n)
{
	struct body *b = context;

	b->beside += n;
	if (b->level[b->depth].value != IS_SKIPPED)
		XXH3_128bits_update(b->digest, bytes, n);
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
	.elements = body_tokens, .in_pieces = in_pieces, .piece = piece_take
};

void
body_outside(struct body *b, unsigned value)
{
	b->depth = 0;
	b->level[0].ordered = 0;
	level_enter(&b->level[0], ROOM_OUTSIDE, value);
}
