/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_history.c - see chats_history.h.
 *
 * Messages are kept as text, because a request repeats all of them: a library's
 * objects would be written again for each turn.
 */
#include "chats_history.h"

#include <json-c/json.h>

#include <stdlib.h>
#include <string.h>

enum { JSON_FLAGS = JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE };

void
history_free(struct history *h)
{
	free(h->json.data);
	free(h->waiting.data);
	memset(h, 0, sizeof(*h));
}

static void
forget_calls(struct history *h)
{
	h->waiting.length = 0;
	h->n_waiting = 0;
}

void
history_clear(struct history *h)
{
	h->json.length = 0;
	forget_calls(h);
}

bool
history_put(struct answer_buffer *b, const char *data, size_t n)
{
	size_t capacity = b->capacity == 0 ? 1024 : b->capacity;
	char *grown;

	while (capacity < b->length + n)
		capacity *= 2;
	if (capacity > b->capacity) {
		grown = realloc(b->data, capacity);
		if (grown == NULL)
			return false;
		b->data = grown;
		b->capacity = capacity;
	}
	if (n > 0)
		memcpy(&b->data[b->length], data, n);
	b->length += n;
	return true;
}

bool
history_add(struct history *h, const char *json, size_t length)
{
	return (h->json.length == 0 || history_put(&h->json, ",", 1)) &&
	    history_put(&h->json, json, length);
}

/* ------------------------------------------------------------- messages --- */

/* Takes `value`, also when it fails, also when it is NULL: no memory. */
static bool
put(struct json_object *object, const char *key, struct json_object *value)
{
	if (value != NULL && json_object_object_add(object, key, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static bool
put_item(struct json_object *array, struct json_object *value)
{
	if (value != NULL && json_object_array_add(array, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static bool
put_text(struct json_object *object, const char *key, const char *text,
    size_t length)
{
	return put(object, key, json_object_new_string_len(length == 0 ? "" :
	    text, (int)length));
}

static bool
put_buffer(struct json_object *object, const char *key,
    const struct answer_buffer *b)
{
	return put_text(object, key, b->data, b->length);
}

/* Adds the message if it is `complete`, and frees it in any case. */
static bool
add_message(struct history *h, struct json_object *message, bool complete)
{
	const char *text = NULL;
	size_t length = 0;
	bool added;

	if (complete)
		text = json_object_to_json_string_length(message, JSON_FLAGS,
		    &length);
	added = text != NULL && history_add(h, text, length);
	json_object_put(message);
	return added;
}

bool
history_say(struct history *h, const char *role, const char *text,
    size_t length)
{
	struct json_object *m = json_object_new_object();

	return add_message(h, m, m != NULL &&
	    put(m, "role", json_object_new_string(role)) &&
	    put_text(m, "content", text, length));
}

/* -------------------------------------------------------------- answers --- */

static bool
put_tool_call(struct json_object *list, const struct answer_call *call)
{
	struct json_object *one = json_object_new_object();
	struct json_object *function = json_object_new_object();
	bool made = one != NULL && function != NULL &&
	    put_buffer(one, "id", &call->id) &&
	    put(one, "type", json_object_new_string("function")) &&
	    put_buffer(function, "name", &call->name) &&
	    put_buffer(function, "arguments", &call->arguments);

	/* `one` owns it from here on. */
	made = made && put(one, "function", json_object_get(function));
	json_object_put(function);
	if (made)
		return put_item(list, one);
	json_object_put(one);
	return false;
}

/* Without a text, the content is null. */
static bool
put_chat_answer(struct json_object *m, const struct chats_answer *a)
{
	struct json_object *calls;
	size_t i;

	if (a->text.length == 0 && a->n_calls > 0) {
		if (json_object_object_add(m, "content", NULL) != 0)
			return false;
	} else if (!put_buffer(m, "content", &a->text))
		return false;
	if (a->n_calls == 0)
		return true;
	calls = json_object_new_array();
	if (!put(m, "tool_calls", calls))
		return false;
	for (i = 0; i < a->n_calls; i++)
		if (!put_tool_call(calls, &a->calls[i]))
			return false;
	return true;
}

/* Arguments that are no JSON become an empty object. */
static struct json_object *
input_of(const struct answer_call *call)
{
	struct json_tokener *json = json_tokener_new();
	struct json_object *input = NULL;

	if (json == NULL)
		return NULL;
	if (call->arguments.length > 0)
		input = json_tokener_parse_ex(json, call->arguments.data,
		    (int)call->arguments.length);
	json_tokener_free(json);
	if (json_object_is_type(input, json_type_object))
		return input;
	json_object_put(input);
	return json_object_new_object();
}

static bool
put_block(struct json_object *list, const struct answer_call *call,
    const struct answer_buffer *text)
{
	struct json_object *one = json_object_new_object();
	bool made = one != NULL && put(one, "type",
	    json_object_new_string(call == NULL ? "text" : "tool_use"));

	if (made && call == NULL)
		made = put_buffer(one, "text", text);
	else if (made)
		made = put_buffer(one, "id", &call->id) &&
		    put_buffer(one, "name", &call->name) &&
		    put(one, "input", input_of(call));
	if (made)
		return put_item(list, one);
	json_object_put(one);
	return false;
}

static bool
put_blocks(struct json_object *m, const struct chats_answer *a)
{
	struct json_object *list = json_object_new_array();
	size_t i;

	if (!put(m, "content", list))
		return false;
	if ((a->text.length > 0 || a->n_calls == 0) &&
	    !put_block(list, NULL, &a->text))
		return false;
	for (i = 0; i < a->n_calls; i++)
		if (!put_block(list, &a->calls[i], NULL))
			return false;
	return true;
}

/* Keeps the ids until the results are there. */
static bool
expect_results(struct history *h, const struct chats_answer *a)
{
	size_t i;

	forget_calls(h);
	for (i = 0; i < a->n_calls; i++)
		if (!history_put(&h->waiting, a->calls[i].id.data,
		    a->calls[i].id.length) || !history_put(&h->waiting, "", 1))
			return false;
	h->n_waiting = a->n_calls;
	return true;
}

bool
history_answer(struct history *h, const struct chats_answer *a)
{
	struct json_object *m = json_object_new_object();
	bool made = m != NULL &&
	    put(m, "role", json_object_new_string("assistant")) &&
	    (a->endpoint == CHATS_MESSAGES ? put_blocks(m, a) :
	    put_chat_answer(m, a));

	return add_message(h, m, made) && expect_results(h, a);
}

/* -------------------------------------------------------------- results --- */

static bool
add_tool_message(struct history *h, const char *id, const char *text,
    size_t length)
{
	struct json_object *m = json_object_new_object();

	return add_message(h, m, m != NULL &&
	    put(m, "role", json_object_new_string("tool")) &&
	    put(m, "tool_call_id", json_object_new_string(id)) &&
	    put_text(m, "content", text, length));
}

static bool
put_tool_result(struct json_object *list, const char *id, const char *text,
    size_t length)
{
	struct json_object *one = json_object_new_object();

	if (one != NULL &&
	    put(one, "type", json_object_new_string("tool_result")) &&
	    put(one, "tool_use_id", json_object_new_string(id)) &&
	    put_text(one, "content", text, length))
		return put_item(list, one);
	json_object_put(one);
	return false;
}

/* The end of part i of n; not within a character, so not before part i - 1. */
static size_t
part_end(const char *text, size_t length, size_t i, size_t n)
{
	size_t end = i + 1 == n ? length : length / n * (i + 1);

	while (end < length && ((unsigned char)text[end] & 0xc0) == 0x80)
		end++;
	return end;
}

static bool
add_parts(struct history *h, struct json_object *list, const char *text,
    size_t length)
{
	const char *id = h->waiting.data;
	size_t from = 0, end, i;
	bool added;

	for (i = 0; i < h->n_waiting; i++) {
		end = part_end(text, length, i, h->n_waiting);
		added = list == NULL ?
		    add_tool_message(h, id, &text[from], end - from) :
		    put_tool_result(list, id, &text[from], end - from);
		if (!added)
			return false;
		from = end;
		id += strlen(id) + 1;
	}
	forget_calls(h);
	return true;
}

bool
history_results(struct history *h, enum chats_endpoint endpoint,
    const char *text, size_t length)
{
	struct json_object *m, *list;

	if (h->n_waiting == 0)
		return history_say(h, "user", text, length);
	if (endpoint != CHATS_MESSAGES)
		return add_parts(h, NULL, text, length);
	m = json_object_new_object();
	list = json_object_new_array();
	if (m == NULL || !put(m, "role", json_object_new_string("user"))) {
		json_object_put(list);
		return add_message(h, m, false);
	}
	return add_message(h, m, put(m, "content", list) &&
	    add_parts(h, list, text, length));
}
