/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply_read.c - reads the responses and events of each endpoint.
 *
 *   chat/completions  { choices: [ { index, message, finish_reason } ] }
 *                     delta instead of message in streams
 *   completions       { choices: [ { index, text, finish_reason } ] }
 *   responses         { output: [ ITEM, ... ], status }
 *                     { type: response.output_item.done, item: ITEM }
 *                     { type: response.completed, response: { output } }
 *   messages          { content: [ BLOCK, ... ] }
 *                     { type: content_block_start, index, content_block }
 *                     { type: content_block_delta, index, delta }
 *                     { type: message_stop }
 *
 * The message of a response that is not a stream is kept as it is, as one
 * value. Keys written with escapes are ignored.
 */
#include "reply_parts.h"

#include <stdlib.h>
#include <string.h>

/* A key, and its last value in an object; empty if the key is missing. */
struct wanted {
	const char *key;
	struct view value;
};

struct search {
	struct wanted *wanted;
	size_t n;
};

static bool
member_take(void *context, struct view key, struct view value)
{
	struct search *s = context;
	size_t i;

	for (i = 0; i < s->n; i++)
		if (view_is(key, s->wanted[i].key))
			s->wanted[i].value = value;
	return true;
}

/* Finds the values of several keys; false: not an object, or broken. */
static bool
members_find(struct view object, struct wanted *wanted, size_t n)
{
	struct search s = { wanted, n };

	return view_is_object(object) && view_parts(object, member_take, &s);
}

#define FIND(object, wanted) \
	members_find(object, wanted, sizeof(wanted) / sizeof(*(wanted)))

static bool
is_there(struct view v)
{
	return v.n > 0 && !view_is_null(v);
}

static bool
is_text(struct view v, const char *text)
{
	return view_is_string(v) && view_is(view_inside(v), text);
}

static void
view_keep(struct reply *r, struct hold *h, struct view v)
{
	reply_keep(r, h, v.at, v.n);
}

/* Keeps a string, ignores null; anything else drops the reply. */
static void
keep_text(struct reply *r, struct hold *h, struct view v)
{
	if (!is_there(v))
		return;
	if (view_is_string(v))
		view_keep(r, h, view_inside(v));
	else
		reply_drop(r, REPLY_NONE);
}

/* ---------------------------------------------------------------- parts --- */

static struct reply_part *
part_add(struct reply *r, enum reply_part_kind kind, size_t index)
{
	size_t room = r->parts_room == 0 ? 4 : 2 * r->parts_room;
	struct reply_part *p;

	if (r->n_parts == REPLY_CALLS) {
		reply_drop(r, REPLY_TOO_LONG);
		return NULL;
	}
	if (r->n_parts == r->parts_room) {
		p = realloc(r->parts, room * sizeof(*p));
		if (p == NULL) {
			reply_drop(r, REPLY_NO_MEMORY);
			return NULL;
		}
		r->parts = p;
		r->parts_room = room;
	}
	p = &r->parts[r->n_parts++];
	memset(p, 0, sizeof(*p));
	p->kind = kind;
	p->index = index;
	return p;
}

/* Returns the last part of this index, or NULL. */
static struct reply_part *
part_of(struct reply *r, struct view index)
{
	size_t i, number;

	if (!view_number(index, &number))
		return NULL;
	for (i = r->n_parts; i-- > 0;)
		if (r->parts[i].index == number)
			return &r->parts[i];
	return NULL;
}

/* ----------------------------------------------------------------- chat --- */

/* A later name replaces an earlier one; arguments are joined. */
static void
chat_function(struct reply *r, struct reply_part *part, struct view function)
{
	struct wanted f[] = { { "name", { 0 } }, { "arguments", { 0 } },
	    { "input", { 0 } } };

	if (!is_there(function))
		return;
	if (!FIND(function, f)) {
		reply_drop(r, REPLY_CUT);
		return;
	}
	if (view_is_string(f[0].value) && f[0].value.n > 2)
		part->name.length = 0;
	keep_text(r, &part->name, f[0].value);
	keep_text(r, &part->text, f[1].value);
	keep_text(r, &part->text, f[2].value);
}

static bool
chat_call(void *context, struct view key, struct view call)
{
	struct wanted c[] = { { "index", { 0 } }, { "function", { 0 } },
	    { "custom", { 0 } } };
	struct reply *r = context;
	struct reply_part *part;
	size_t index = r->n_parts;

	(void)key;
	if (!FIND(call, c)) {
		reply_drop(r, REPLY_CUT);
		return false;
	}
	part = part_of(r, c[0].value);
	if (part == NULL) {
		(void)view_number(c[0].value, &index);
		part = part_add(r, PART_CALL, index);
	}
	if (part != NULL)
		chat_function(r, part, is_there(c[1].value) ? c[1].value :
		    c[2].value);
	return r->why == REPLY_WHOLE;
}

/* Drops a broken list, unless `take` has given a reason before. */
static void
elements_take(struct reply *r, struct view list, view_take *take,
    void *context)
{
	if (!view_parts(list, take, context))
		reply_drop(r, REPLY_CUT);
}

static void
chat_calls(struct reply *r, struct view calls)
{
	if (!is_there(calls) || r->why != REPLY_WHOLE)
		return;
	if (view_is_list(calls))
		elements_take(r, calls, chat_call, r);
	else
		reply_drop(r, REPLY_NONE);
}

static void
chat_delta(struct reply *r, struct view delta)
{
	struct wanted d[] = { { "content", { 0 } }, { "refusal", { 0 } },
	    { "reasoning_content", { 0 } }, { "reasoning", { 0 } },
	    { "tool_calls", { 0 } }, { "function_call", { 0 } } };

	if (!FIND(delta, d)) {
		reply_drop(r, REPLY_CUT);
		return;
	}
	keep_text(r, &r->text, d[0].value);
	keep_text(r, &r->refusal, d[1].value);
	keep_text(r, &r->thought[0], d[2].value);
	keep_text(r, &r->thought[1], d[3].value);
	chat_calls(r, d[4].value);
	if (r->why == REPLY_WHOLE && is_there(d[5].value)) {
		r->has_function_call = true;
		chat_function(r, &r->function_call, d[5].value);
	}
}

/* Reads the only choice of a response, or a piece of it. */
static void
choice_read(struct reply *r, struct view it)
{
	struct wanted c[] = { { "index", { 0 } }, { "finish_reason", { 0 } },
	    { "message", { 0 } }, { "delta", { 0 } }, { "text", { 0 } } };
	size_t index = 0;

	if (!FIND(it, c)) {
		reply_drop(r, REPLY_CUT);
		return;
	}
	if (view_number(c[0].value, &index) && index > 0) {
		reply_drop(r, REPLY_SEVERAL);
		return;
	}
	r->done |= is_there(c[1].value) || r->kind == ANSWER_JSON;
	r->some = true;
	if (r->endpoint == ENDPOINT_COMPLETIONS)
		keep_text(r, &r->text, c[4].value);
	else if (r->kind == ANSWER_STREAM && is_there(c[3].value))
		chat_delta(r, c[3].value);
	else if (r->kind == ANSWER_JSON && is_there(c[2].value))
		view_keep(r, &r->message, c[2].value);
	else if (r->kind == ANSWER_JSON)
		reply_drop(r, REPLY_NONE);
}

struct choices {
	struct reply *r;
	size_t n;
};

static bool
choice_take(void *context, struct view key, struct view it)
{
	struct choices *c = context;

	(void)key;
	if (c->n++ > 0 && c->r->kind == ANSWER_JSON)
		reply_drop(c->r, REPLY_SEVERAL);
	else
		choice_read(c->r, it);
	return c->r->why == REPLY_WHOLE;
}

static void
choices_read(struct reply *r, struct view list)
{
	struct choices c = { r, 0 };

	if (view_is_list(list))
		elements_take(r, list, choice_take, &c);
}

/* ------------------------------------------------------------ responses --- */

static void
item_read(struct reply *r, struct view it)
{
	if (!is_there(it))
		return;
	if (r->message.length > 0)
		reply_keep(r, &r->message, ",", 1);
	view_keep(r, &r->message, it);
	if (r->why == REPLY_WHOLE)
		r->some = true;
}

static bool
item_take(void *context, struct view key, struct view it)
{
	struct reply *r = context;

	(void)key;
	item_read(r, it);
	return r->why == REPLY_WHOLE;
}

/* Takes the output of the response, unless events have brought its items. */
static void
response_read(struct reply *r, struct view object)
{
	struct wanted o[] = { { "output", { 0 } }, { "status", { 0 } },
	    { "error", { 0 } } };

	if (!FIND(object, o)) {
		reply_drop(r, REPLY_CUT);
		return;
	}
	if (is_there(o[2].value))
		reply_drop(r, REPLY_FAILED);
	else if (is_there(o[1].value) && !is_text(o[1].value, "completed") &&
	    !is_text(o[1].value, "incomplete"))
		reply_drop(r, REPLY_NONE);
	if (r->why != REPLY_WHOLE)
		return;
	r->done = true;
	if (!r->some && view_is_list(o[0].value))
		elements_take(r, o[0].value, item_take, r);
}

static void
response_event(struct reply *r, struct view type, struct view object,
    struct view it)
{
	if (is_text(type, "response.output_item.done"))
		item_read(r, it);
	else if (is_text(type, "response.completed") ||
	    is_text(type, "response.incomplete"))
		response_read(r, object);
}

/* ------------------------------------------------------------- messages --- */

static void
block_start(struct reply *r, struct view index, struct view block)
{
	struct wanted b[] = { { "text", { 0 } }, { "thinking", { 0 } },
	    { "name", { 0 } }, { "input", { 0 } }, { "type", { 0 } } };
	enum reply_part_kind kind = PART_RAW;
	struct reply_part *part;
	size_t number;

	if (!FIND(block, b) || !view_number(index, &number)) {
		reply_drop(r, REPLY_CUT);
		return;
	}
	if (is_text(b[4].value, "text"))
		kind = PART_TEXT;
	else if (is_text(b[4].value, "thinking"))
		kind = PART_THINKING;
	else if (view_is_string(b[2].value) && is_there(b[3].value))
		kind = PART_INPUT;
	part = part_add(r, kind, number);
	if (part == NULL)
		return;
	r->some = true;
	if (kind == PART_TEXT || kind == PART_THINKING)
		keep_text(r, &part->text, b[kind == PART_THINKING].value);
	else if (kind == PART_INPUT)
		view_keep(r, &part->name, view_inside(b[2].value));
	if (kind >= PART_INPUT)
		view_keep(r, &part->raw, kind == PART_RAW ? block : b[3].value);
}

static void
block_delta(struct reply *r, struct view index, struct view delta)
{
	struct wanted d[] = { { "text", { 0 } }, { "thinking", { 0 } },
	    { "partial_json", { 0 } } };
	struct reply_part *part = part_of(r, index);

	if (part == NULL || !FIND(delta, d)) {
		reply_drop(r, REPLY_CUT);
		return;
	}
	if (part->kind == PART_TEXT)
		keep_text(r, &part->text, d[0].value);
	else if (part->kind == PART_THINKING)
		keep_text(r, &part->text, d[1].value);
	else if (part->kind == PART_INPUT)
		keep_text(r, &part->text, d[2].value);
}

static void
message_event(struct reply *r, struct view object, struct view type)
{
	struct wanted e[] = { { "index", { 0 } }, { "content_block", { 0 } },
	    { "delta", { 0 } } };

	if (is_text(type, "message_stop")) {
		r->done = r->some = true;
		return;
	}
	if (!is_text(type, "content_block_start") &&
	    !is_text(type, "content_block_delta"))
		return;
	(void)FIND(object, e);
	if (is_there(e[1].value))
		block_start(r, e[0].value, e[1].value);
	else
		block_delta(r, e[0].value, e[2].value);
}

/* Keeps the content of the message; reply_write.c adds the role. */
static void
message_read(struct reply *r, struct view content)
{
	r->done = true;
	if (!is_there(content))
		return;
	r->some = true;
	view_keep(r, &r->message, content);
}

/* ------------------------------------------------------------------ all --- */

static void
read_object(struct reply *r, struct view object)
{
	const bool stream = r->kind == ANSWER_STREAM;
	struct wanted o[] = { { "error", { 0 } }, { "type", { 0 } },
	    { "choices", { 0 } }, { "response", { 0 } }, { "item", { 0 } },
	    { "content", { 0 } } };

	if (!FIND(object, o)) {
		reply_drop(r, REPLY_CUT);
		return;
	}
	if (is_there(o[0].value) || is_text(o[1].value, "error") ||
	    is_text(o[1].value, "response.failed")) {
		reply_drop(r, REPLY_FAILED);
		return;
	}
	if (r->endpoint == ENDPOINT_RESPONSES && stream)
		response_event(r, o[1].value, o[3].value, o[4].value);
	else if (r->endpoint == ENDPOINT_RESPONSES)
		response_read(r, object);
	else if (r->endpoint == ENDPOINT_MESSAGES && stream)
		message_event(r, object, o[1].value);
	else if (r->endpoint == ENDPOINT_MESSAGES)
		message_read(r, o[5].value);
	else
		choices_read(r, o[2].value);
}

void
reply_read(struct reply *r, const char *text, size_t n)
{
	if (r->kind == ANSWER_STREAM && (n == 0 || r->over))
		return;
	if (r->kind == ANSWER_STREAM && n >= 6 &&
	    memcmp(text, "[DONE]", 6) == 0)
		r->done = r->over = true;
	else
		read_object(r, view_trim(text, n));
}
