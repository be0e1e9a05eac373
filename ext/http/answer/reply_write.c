/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply_write.c - composes the message, as the client will send it back:
 *
 *   chat/completions  [{"role":"assistant","content":"...","tool_calls":[{
 *                     "function":{"arguments":"...","name":"..."}}]}]
 *   completions       "..."
 *   responses         [ITEM,ITEM]
 *   messages          [{"role":"assistant","content":[{"text":"..."},
 *                     {"input":{...},"name":"..."}]}]
 *
 * Long members come first, in the order in which body.c writes them on at once.
 * The input of a tool (messages) came as JSON within strings. The pieces have
 * been joined, and are decoded once.
 */
#include "reply_parts.h"

#include <string.h>

#include "body_string.h"

/*
 * The bytes do not count towards `most`: each part is freed as soon as it has
 * been written. Without memory the parts stay, since callers go through them.
 */
static void
put_bytes(struct reply *r, const void *bytes, size_t n)
{
	if (r->why == REPLY_WHOLE && !hold_append(&r->message, bytes, n))
		r->why = REPLY_NO_MEMORY;
}

static void
put_text(struct reply *r, const char *text)
{
	put_bytes(r, text, strlen(text));
}

/* Writes the bytes of h and frees it. */
static void
put_hold(struct reply *r, struct hold *h)
{
	if (r->why != REPLY_WHOLE)
		return;
	put_bytes(r, h->data, h->length);
	hold_free(h);
}

/* Writes a member with a string; nothing if it is empty. */
static void
put_member(struct reply *r, const char *key, struct hold *h)
{
	if (r->why != REPLY_WHOLE || h->length == 0)
		return;
	put_text(r, ",\"");
	put_text(r, key);
	put_text(r, "\":\"");
	put_hold(r, h);
	put_text(r, "\"");
}

/* ----------------------------------------------------------------- chat --- */

static void
put_function(struct reply *r, struct reply_part *part)
{
	put_text(r, "{\"type\":\"function\"");
	put_member(r, "arguments", &part->text);
	put_member(r, "name", &part->name);
	put_text(r, "}");
}

/* Returns the next index: calls are written in the order that clients keep. */
static size_t
next_part(const struct reply *r, size_t last, bool first)
{
	size_t i, next = SIZE_MAX;

	for (i = 0; i < r->n_parts; i++)
		if ((first || r->parts[i].index > last) &&
		    r->parts[i].index < next)
			next = r->parts[i].index;
	return next;
}

static void
put_calls(struct reply *r)
{
	size_t i, index = next_part(r, 0, true);
	bool first = true;

	put_text(r, ",\"tool_calls\":[");
	for (; r->why == REPLY_WHOLE && index != SIZE_MAX;
	    index = next_part(r, index, false))
		for (i = 0; r->why == REPLY_WHOLE && i < r->n_parts; i++) {
			if (r->parts[i].index != index)
				continue;
			put_text(r, first ? "{\"function\":" :
			    ",{\"function\":");
			put_function(r, &r->parts[i]);
			put_text(r, "}");
			first = false;
		}
	put_text(r, "]");
}

static void
write_chat(struct reply *r)
{
	put_text(r, "[{\"role\":\"assistant\"");
	put_member(r, "content", &r->text);
	if (r->n_parts > 0)
		put_calls(r);
	if (r->has_function_call) {
		put_text(r, ",\"function_call\":");
		put_function(r, &r->function_call);
	}
	put_member(r, "reasoning_content", &r->thought[0]);
	put_member(r, "reasoning", &r->thought[1]);
	put_member(r, "refusal", &r->refusal);
	put_text(r, "}]");
}

/* ------------------------------------------------------------- messages --- */

/* Decodes a string that holds one JSON value, writes it and frees h. */
static void
put_decoded(struct reply *r, struct hold *h)
{
	enum string_stop why = STRING_BAD;
	struct hold *m = &r->message;
	size_t written;

	if (r->why != REPLY_WHOLE)
		return;
	if (!hold_append(h, "\"", 1) ||
	    !hold_reserve(m, h->length + 2 * STRING_SLACK)) {
		r->why = REPLY_NO_MEMORY;
		return;
	}
	(void)string_decode(h->data, h->length, m->data + m->length,
	    m->capacity - m->length, &written, &why);
	/* More than one value could end the object around it. */
	if (why != STRING_QUOTE || !view_is_whole(view_trim(
	    (char *)m->data + m->length, written))) {
		r->why = REPLY_CUT;
		return;
	}
	m->length += written;
	hold_free(h);
}

static void
put_block(struct reply *r, struct reply_part *part)
{
	if (part->kind == PART_RAW) {
		put_hold(r, &part->raw);
		return;
	}
	put_text(r, "{\"type\":0");
	put_member(r, part->kind == PART_THINKING ? "thinking" : "text",
	    &part->text);
	put_text(r, "}");
}

static void
put_input(struct reply *r, struct reply_part *part)
{
	put_text(r, "{\"input\":");
	if (part->text.length > 0)
		put_decoded(r, &part->text);
	else
		put_hold(r, &part->raw);
	put_member(r, "name", &part->name);
	put_text(r, "}");
}

static void
write_blocks(struct reply *r)
{
	size_t i;

	put_text(r, "[{\"role\":\"assistant\",\"content\":[");
	for (i = 0; r->why == REPLY_WHOLE && i < r->n_parts; i++) {
		if (i > 0)
			put_text(r, ",");
		if (r->parts[i].kind == PART_INPUT)
			put_input(r, &r->parts[i]);
		else
			put_block(r, &r->parts[i]);
	}
	put_text(r, "]}]");
}

/* ------------------------------------------------------------------ all --- */

/* Completes a message that came as one value. */
static void
write_value(struct reply *r, const char *before, const char *after)
{
	struct hold value = r->message;

	memset(&r->message, 0, sizeof(r->message));
	put_text(r, before);
	put_bytes(r, value.data, value.length);
	put_text(r, after);
	hold_free(&value);
}

static void
write_message(struct reply *r)
{
	if (r->endpoint == ENDPOINT_COMPLETIONS) {
		put_text(r, "\"");
		put_hold(r, &r->text);
		put_text(r, "\"");
	} else if (r->endpoint == ENDPOINT_RESPONSES ||
	    (r->endpoint == ENDPOINT_CHAT && r->kind == ANSWER_JSON)) {
		write_value(r, "[", "]");
	} else if (r->endpoint == ENDPOINT_CHAT) {
		write_chat(r);
	} else if (r->kind == ANSWER_JSON) {
		write_value(r, "[{\"role\":\"assistant\",\"content\":", "}]");
	} else {
		write_blocks(r);
	}
}

void
reply_write(struct reply *r)
{
	enum reply_outcome why;

	write_message(r);
	why = r->why;
	if (why == REPLY_WHOLE)
		return;
	reply_forget(r);
	r->why = why;
}
