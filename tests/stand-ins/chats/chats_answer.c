/* SPDX-License-Identifier: BSD-2-Clause */
/* chats_answer.c - see chats_answer.h. */
#include "chats_answer.h"

#include <json-c/json.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX = 64 << 20 }; /* bytes of a line, or of a JSON response */

bool
chats_answer_new(struct chats_answer *a)
{
	memset(a, 0, sizeof(*a));
	a->json = json_tokener_new();
	return a->json != NULL;
}

void
chats_answer_free(struct chats_answer *a)
{
	size_t i;

	for (i = 0; i < ANSWER_CALLS_MAX; i++) {
		free(a->calls[i].id.data);
		free(a->calls[i].name.data);
		free(a->calls[i].arguments.data);
	}
	free(a->text.data);
	free(a->line.data);
	if (a->json != NULL)
		json_tokener_free(a->json);
}

void
chats_answer_begin(struct chats_answer *a, enum chats_endpoint endpoint)
{
	struct chats_answer old = *a;
	size_t i;

	memset(a, 0, sizeof(*a));
	a->text = old.text;
	a->line = old.line;
	a->text.length = a->line.length = 0;
	for (i = 0; i < ANSWER_CALLS_MAX; i++) {
		a->calls[i] = old.calls[i];
		a->calls[i].id.length = a->calls[i].name.length =
		    a->calls[i].arguments.length = 0;
	}
	a->json = old.json;
	a->endpoint = endpoint;
}

static void
append(struct chats_answer *a, struct answer_buffer *b, const char *data,
    size_t n)
{
	size_t capacity = b->capacity == 0 ? 4096 : b->capacity;
	char *grown;

	if (n > ANSWER_MAX - b->length) {
		a->failed = true;
		return;
	}
	while (capacity < b->length + n)
		capacity *= 2;
	if (capacity > b->capacity) {
		grown = realloc(b->data, capacity);
		if (grown == NULL) {
			a->failed = true;
			return;
		}
		b->data = grown;
		b->capacity = capacity;
	}
	memcpy(&b->data[b->length], data, n);
	b->length += n;
}

/* ---------------------------------------------------------- one object --- */

/* The member `key` of an object; of anything else: NULL. */
static struct json_object *
member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (json_object_is_type(object, json_type_object))
		json_object_object_get_ex(object, key, &value);
	return value;
}

static struct json_object *
item(struct json_object *array, size_t i)
{
	return json_object_is_type(array, json_type_array) ?
	    json_object_array_get_idx(array, i) : NULL;
}

/* A number of tokens. False: none. */
static bool
tokens(struct json_object *object, const char *key, uint64_t *out)
{
	struct json_object *n = member(object, key);

	if (!json_object_is_type(n, json_type_int) ||
	    json_object_get_int64(n) < 0)
		return false;
	*out = json_object_get_uint64(n);
	return true;
}

static void
read_usage(struct chats_answer *a, struct json_object *usage)
{
	struct json_object *details = member(usage, "prompt_tokens_details");
	uint64_t written = 0;

	if (a->endpoint == CHATS_MESSAGES) {
		if (!tokens(usage, "input_tokens", &a->prompt_tokens))
			return;
		a->usage = true;
		a->cached_known = tokens(usage, "cache_read_input_tokens",
		    &a->cached_tokens);
		(void)tokens(usage, "cache_creation_input_tokens", &written);
		a->prompt_tokens += a->cached_tokens + written;
		return;
	}
	if (details == NULL)
		details = member(usage, "input_tokens_details");
	if (tokens(usage, "prompt_tokens", &a->prompt_tokens) ||
	    tokens(usage, "input_tokens", &a->prompt_tokens)) {
		a->usage = true;
		a->cached_known = tokens(details, "cached_tokens",
		    &a->cached_tokens);
	}
}

static void
read_text(struct chats_answer *a, struct json_object *text, int64_t now)
{
	size_t n;

	if (!json_object_is_type(text, json_type_string))
		return;
	n = (size_t)json_object_get_string_len(text);
	if (n > 0 && a->first_text == 0)
		a->first_text = now;
	append(a, &a->text, json_object_get_string(text), n);
}

static size_t
length_of(struct json_object *array)
{
	return json_object_is_type(array, json_type_array) ?
	    json_object_array_length(array) : 0;
}

/* ------------------------------------------------------- calls of tools --- */

static void
append_string(struct chats_answer *a, struct answer_buffer *b,
    struct json_object *text)
{
	if (json_object_is_type(text, json_type_string))
		append(a, b, json_object_get_string(text),
		    (size_t)json_object_get_string_len(text));
}

/* NULL: too many. */
static struct answer_call *
call_at(struct chats_answer *a, size_t i, int64_t now)
{
	if (i >= ANSWER_CALLS_MAX) {
		a->failed = true;
		return NULL;
	}
	if (a->first_text == 0)
		a->first_text = now;
	if (a->n_calls <= i)
		a->n_calls = i + 1;
	return &a->calls[i];
}

/* Whole calls, or parts of some; those of streams have an index. */
static void
read_tool_calls(struct chats_answer *a, struct json_object *list, int64_t now)
{
	size_t n = length_of(list), i;
	struct json_object *one, *function;
	struct answer_call *call;
	uint64_t at;

	for (i = 0; i < n; i++) {
		one = item(list, i);
		at = i;
		(void)tokens(one, "index", &at);
		call = call_at(a, (size_t)at, now);
		if (call == NULL)
			return;
		function = member(one, "function");
		append_string(a, &call->id, member(one, "id"));
		append_string(a, &call->name, member(function, "name"));
		append_string(a, &call->arguments,
		    member(function, "arguments"));
	}
}

/* A block of /v1/messages, or its beginning; of others: nothing. */
static void
read_tool_use(struct chats_answer *a, struct json_object *block, int64_t now)
{
	struct json_object *input = member(block, "input");
	const char *type = json_object_get_string(member(block, "type"));
	struct answer_call *call;
	const char *text;

	if (type == NULL || strcmp(type, "tool_use") != 0)
		return;
	call = call_at(a, a->n_calls, now);
	if (call == NULL)
		return;
	append_string(a, &call->id, member(block, "id"));
	append_string(a, &call->name, member(block, "name"));
	if (!json_object_is_type(input, json_type_object) ||
	    json_object_object_length(input) == 0)
		return; /* in a stream it is in the next events */
	text = json_object_to_json_string_ext(input,
	    JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text == NULL)
		a->failed = true;
	else
		append(a, &call->arguments, text, strlen(text));
}

/* All texts and calls of a list of parts. */
static void
read_parts(struct chats_answer *a, struct json_object *parts, int64_t now)
{
	size_t n = length_of(parts), i;

	for (i = 0; i < n; i++) {
		read_text(a, member(item(parts, i), "text"), now);
		read_tool_use(a, item(parts, i), now);
	}
}

/* ----------------------------------------------------- a whole response --- */

static void
read_whole(struct chats_answer *a, struct json_object *o, int64_t now)
{
	struct json_object *choice = item(member(o, "choices"), 0);
	struct json_object *said = NULL;

	switch (a->endpoint) {
	case CHATS_CHAT:
		said = member(member(choice, "message"), "content");
		read_tool_calls(a, member(member(choice, "message"),
		    "tool_calls"), now);
		break;
	case CHATS_COMPLETIONS:
		said = member(choice, "text");
		break;
	case CHATS_MESSAGES:
		said = member(o, "content");
		read_parts(a, said, now);
		break;
	case CHATS_RESPONSES:
		said = member(item(member(o, "output"), 0), "content");
		read_parts(a, said, now);
		break;
	case CHATS_ENDPOINTS:
		break;
	}
	read_text(a, said, now);
	a->malformed = said == NULL && a->n_calls == 0;
	read_usage(a, member(o, "usage"));
	a->ended = true;
}

/* --------------------------------------------------------------- events --- */

static void
read_choice(struct chats_answer *a, struct json_object *o, int64_t now)
{
	struct json_object *choices = member(o, "choices");
	struct json_object *choice = item(choices, 0);

	if (member(o, "usage") != NULL) {
		if (choices != NULL && choice == NULL)
			a->usage_events++;
		read_usage(a, member(o, "usage"));
	}
	if (a->endpoint == CHATS_COMPLETIONS) {
		read_text(a, member(choice, "text"), now);
		return;
	}
	read_text(a, member(member(choice, "delta"), "content"), now);
	read_tool_calls(a, member(member(choice, "delta"), "tool_calls"), now);
}

static void
read_typed(struct chats_answer *a, struct json_object *o, int64_t now)
{
	const char *type = json_object_get_string(member(o, "type"));
	struct json_object *delta = member(o, "delta");

	if (type == NULL) {
		a->malformed = true;
		return;
	}
	if (strcmp(type, "response.output_text.delta") == 0)
		read_text(a, delta, now);
	else if (strcmp(type, "content_block_delta") == 0) {
		read_text(a, member(delta, "text"), now);
		if (a->n_calls > 0)
			append_string(a, &a->calls[a->n_calls - 1].arguments,
			    member(delta, "partial_json"));
	} else if (strcmp(type, "content_block_start") == 0)
		read_tool_use(a, member(o, "content_block"), now);
	else if (strcmp(type, "message_start") == 0)
		read_usage(a, member(member(o, "message"), "usage"));
	else if (strcmp(type, "message_delta") == 0)
		read_usage(a, member(o, "usage"));
	else if (strcmp(type, "message_stop") == 0)
		a->ended = true;
	else if (strcmp(type, "response.completed") == 0 ||
	    strcmp(type, "response.incomplete") == 0) {
		read_usage(a, member(member(o, "response"), "usage"));
		a->ended = true;
	}
}

static struct json_object *
parse(struct chats_answer *a, const char *text, size_t n)
{
	struct json_object *o;

	json_tokener_reset(a->json);
	if (n == 0 || n > INT_MAX)
		return NULL;
	o = json_tokener_parse_ex(a->json, text, (int)n);
	if (json_object_is_type(o, json_type_object))
		return o;
	json_object_put(o);
	return NULL;
}

/* The value of `data:`. */
static void
read_event(struct chats_answer *a, const char *text, size_t n, int64_t now)
{
	struct json_object *o;

	a->events++;
	if (a->first_event == 0)
		a->first_event = now;
	if (n == 6 && memcmp(text, "[DONE]", 6) == 0) {
		a->ended = true;
		return;
	}
	o = parse(a, text, n);
	if (o == NULL)
		a->malformed = true;
	else if (member(o, "error") != NULL)
		a->failed = true;
	else if (a->endpoint == CHATS_CHAT || a->endpoint == CHATS_COMPLETIONS)
		read_choice(a, o, now);
	else
		read_typed(a, o, now);
	json_object_put(o);
}

static void
read_line(struct chats_answer *a, const char *line, size_t n, int64_t now)
{
	if (n > 0 && line[n - 1] == '\r')
		n--;
	if (n < 5 || memcmp(line, "data:", 5) != 0)
		return;
	line += 5;
	n -= 5;
	if (n > 0 && line[0] == ' ')
		line++, n--;
	read_event(a, line, n, now);
}

void
chats_answer_data(struct chats_answer *a, const char *data, size_t n,
    int64_t now)
{
	const char *end;
	size_t part;

	a->bytes += n;
	if (!a->stream) {
		append(a, &a->line, data, n);
		return;
	}
	while (n > 0) {
		end = memchr(data, '\n', n);
		part = end == NULL ? n : (size_t)(end - data) + 1;
		if (end == NULL || a->line.length > 0)
			append(a, &a->line, data, part);
		if (end != NULL && a->line.length > 0) {
			read_line(a, a->line.data, a->line.length - 1, now);
			a->line.length = 0;
		} else if (end != NULL)
			read_line(a, data, part - 1, now);
		data += part;
		n -= part;
	}
}

void
chats_answer_end(struct chats_answer *a, int64_t now)
{
	struct json_object *o;

	if (a->stream)
		return;
	o = parse(a, a->line.data, a->line.length);
	if (o == NULL)
		a->malformed = true;
	else
		read_whole(a, o, now);
	json_object_put(o);
}
