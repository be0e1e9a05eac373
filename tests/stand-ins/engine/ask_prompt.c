/* SPDX-License-Identifier: BSD-2-Clause */
/* ask_prompt.c - prompts as tokens; see ask.h. */
#include "ask_in.h"

#include "output.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static const char no_text[] = "Input should be a valid string or list";

static void
add_string(struct token_list *t, const char *text)
{
	token_list_text(t, text, strlen(text));
}

/* Adds it as in the body, including zero bytes. */
static void
add_text(struct token_list *t, struct json_object *text)
{
	token_list_text(t, json_object_get_string(text),
	    (size_t)json_object_get_string_len(text));
}

static const char *
as_json(struct json_object *o)
{
	const char *text = json_object_to_json_string_ext(o,
	    JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	return text == NULL ? "" : text;
}

static void
begin_message(struct token_list *t, const char *role)
{
	token_list_add(t, TOKEN_MESSAGE);
	add_string(t, role);
	add_string(t, "\n");
}

static void
end_message(struct token_list *t)
{
	token_list_add(t, TOKEN_END);
	add_string(t, "\n");
}

/* -------------------------------------------------------------- content --- */

static bool
is_image(const char *type)
{
	return strcmp(type, "image_url") == 0 || strcmp(type, "image") == 0 ||
	    strcmp(type, "input_image") == 0;
}

static void
add_image(struct token_list *t, struct json_object *part)
{
	const char *text = as_json(part);
	uint32_t id = XXH32(text, strlen(text), 1);
	int i;

	token_list_add(t, TOKEN_IMAGE);
	for (i = 1; i < IMAGE_TOKENS; i++)
		token_list_add(t, id + (uint32_t)i);
}

/* Arguments are an object, or JSON in a string; others are as they are. */
static void
add_arguments(struct ask *a, struct token_list *t, struct json_object *o)
{
	bool is_text = json_object_is_type(o, json_type_string);
	struct json_object *parsed = !is_text ? json_object_get(o) :
	    json_tokener_parse(json_object_get_string(o));
	char *text = output_json(parsed == NULL && is_text ? o : parsed);

	if (text == NULL)
		ask_wrong(a, 500, "no memory", NULL);
	else if (parsed == NULL && is_text)
		add_text(t, o);
	else
		add_string(t, text);
	free(text);
	json_object_put(parsed);
}

/* The same tokens as those of output.c. */
static void
add_call(struct ask *a, struct token_list *t, struct json_object *name,
    struct json_object *arguments)
{
	add_string(t, OUTPUT_CALL);
	if (name != NULL)
		add_text(t, name);
	add_string(t, "\n");
	add_arguments(a, t, arguments);
	add_string(t, OUTPUT_CALL_END);
}

static const char *
type_of(struct json_object *part)
{
	struct json_object *type = ask_member(part, "type");

	return json_object_is_type(type, json_type_string) ?
	    json_object_get_string(type) : "";
}

static bool
is_reasoning(const char *type)
{
	return strcmp(type, "thinking") == 0 ||
	    strcmp(type, "redacted_thinking") == 0 ||
	    strcmp(type, "reasoning") == 0;
}

static void add_content(struct ask *a, struct token_list *t,
    struct json_object *content);

/* An object: a call, its result, reasoning, or anything else as JSON. */
static void
add_rest(struct ask *a, struct token_list *t, struct json_object *part)
{
	const char *type = type_of(part);

	if (strcmp(type, "tool_use") == 0)
		add_call(a, t, ask_member(part, "name"),
		    ask_member(part, "input"));
	else if (strcmp(type, "tool_result") == 0)
		add_content(a, t, ask_member(part, "content"));
	else if (!is_reasoning(type))
		add_string(t, as_json(part));
}

/* Text, an image, or something else. */
static void
add_part(struct ask *a, struct token_list *t, struct json_object *part)
{
	struct json_object *text = ask_member(part, "text");

	if (json_object_is_type(part, json_type_string))
		add_text(t, part);
	else if (!json_object_is_type(part, json_type_object))
		ask_wrong(a, 400, no_text, "content");
	else if (is_image(type_of(part)))
		add_image(t, part);
	else if (json_object_is_type(text, json_type_string))
		add_text(t, text);
	else
		add_rest(a, t, part);
}

/* Parts may have parts; the depth of JSON is the limit. */
static void
add_content(struct ask *a, struct token_list *t, struct json_object *content)
{
	size_t n, i;

	if (content == NULL)
		return;
	if (json_object_is_type(content, json_type_string)) {
		add_text(t, content);
		return;
	}
	if (!json_object_is_type(content, json_type_array)) {
		ask_wrong(a, 400, no_text, "content");
		return;
	}
	n = json_object_array_length(content);
	for (i = 0; i < n; i++)
		add_part(a, t, json_object_array_get_idx(content, i));
}

/* ------------------------------------------------------------- messages --- */

/* Is this the model's, in /v1/responses: a message, a call, reasoning? */
static bool
is_said(struct json_object *item)
{
	struct json_object *role = ask_member(item, "role");
	const char *type = type_of(item);

	if (role != NULL)
		return json_object_is_type(role, json_type_string) &&
		    strcmp(json_object_get_string(role), "assistant") == 0;
	return strcmp(type, "function_call") == 0 || is_reasoning(type);
}

static void
add_said(struct ask *a, struct token_list *t, struct json_object *item)
{
	if (ask_member(item, "role") != NULL)
		add_content(a, t, ask_member(item, "content"));
	else if (!is_reasoning(type_of(item)))
		add_call(a, t, ask_member(item, "name"),
		    ask_member(item, "arguments"));
}

/* Other items of /v1/responses than messages: results of tools, or any. */
static void
add_item(struct ask *a, struct token_list *t, struct json_object *item)
{
	struct json_object *output = ask_member(item, "output");

	begin_message(t, output == NULL ? "assistant" : "tool");
	if (output != NULL)
		add_content(a, t, output);
	else
		add_string(t, as_json(item));
	end_message(t);
}

static void
add_calls(struct ask *a, struct token_list *t, struct json_object *calls)
{
	size_t n = json_object_is_type(calls, json_type_array) ?
	    json_object_array_length(calls) : 0, i;
	struct json_object *function;

	for (i = 0; i < n; i++) {
		function = ask_member(json_object_array_get_idx(calls, i),
		    "function");
		add_call(a, t, ask_member(function, "name"),
		    ask_member(function, "arguments"));
	}
}

static void
add_message(struct ask *a, struct token_list *t, struct json_object *message)
{
	struct json_object *role = ask_member(message, "role");

	if (a->kind == ASK_RESPONSES && role == NULL &&
	    json_object_is_type(message, json_type_object)) {
		add_item(a, t, message);
		return;
	}
	if (!json_object_is_type(role, json_type_string)) {
		ask_wrong(a, 400, "Field required", "role");
		return;
	}
	begin_message(t, json_object_get_string(role));
	add_content(a, t, ask_member(message, "content"));
	add_calls(a, t, ask_member(message, "tool_calls"));
	end_message(t);
}

static void
add_all(struct ask *a, struct token_list *t, struct json_object *list)
{
	size_t n = json_object_array_length(list), i;
	struct json_object *item;
	bool said = false;

	for (i = 0; i < n && a->status == 0; i++) {
		item = json_object_array_get_idx(list, i);
		if (a->kind == ASK_RESPONSES && is_said(item)) {
			if (!said)
				begin_message(t, "assistant");
			said = true;
			add_said(a, t, item);
			continue;
		}
		if (said)
			end_message(t);
		said = false;
		add_message(a, t, item);
	}
	if (said)
		end_message(t);
}

static void
add_messages(struct ask *a, struct token_list *t, struct json_object *list)
{
	if (ask_list(a, list, "messages"))
		add_all(a, t, list);
}

/* They are needed no more if the answer is not to be kept. */
static void
add_items(struct ask *a, struct token_list *t, struct json_object *o,
    const struct ask_rules *rules)
{
	ask_items(a, o, rules);
	if (a->status == 0)
		add_all(a, t, a->items);
	if (a->store || a->conversation != NULL)
		return;
	json_object_put(a->items);
	a->items = NULL;
}

static void
add_system(struct ask *a, struct token_list *t, struct json_object *content)
{
	if (content == NULL)
		return;
	begin_message(t, "system");
	add_content(a, t, content);
	end_message(t);
}

static void
chat_prompt(struct ask *a, struct json_object *o,
    const struct ask_rules *rules)
{
	struct token_list *t = &a->prompts[0];
	struct json_object *tools = ask_member(o, "tools");

	token_list_add(t, TOKEN_BEGIN);
	if (tools != NULL) {
		begin_message(t, "tools");
		add_string(t, as_json(tools));
		end_message(t);
	}
	if (a->kind == ASK_RESPONSES)
		add_system(a, t, ask_member(o, "instructions"));
	if (a->kind == ASK_MESSAGES)
		add_system(a, t, ask_member(o, "system"));
	if (a->kind == ASK_RESPONSES)
		add_items(a, t, o, rules);
	else
		add_messages(a, t, ask_member(o, "messages"));
	begin_message(t, "assistant");
}

/* ---------------------------------------------------------- completions --- */

static bool
is_ids(struct json_object *o)
{
	return json_object_is_type(o, json_type_array) &&
	    json_object_array_length(o) > 0 &&
	    json_object_is_type(json_object_array_get_idx(o, 0),
	    json_type_int);
}

static void
add_ids(struct ask *a, struct token_list *t, struct json_object *ids)
{
	size_t n = json_object_array_length(ids), i;
	struct json_object *id;
	int64_t value;

	for (i = 0; i < n; i++) {
		id = json_object_array_get_idx(ids, i);
		value = json_object_get_int64(id);
		if (!json_object_is_type(id, json_type_int) || value < 0 ||
		    value > INT32_MAX) {
			ask_wrong(a, 400, "not the id of a token", "prompt");
			return;
		}
		token_list_add(t, (uint32_t)value);
	}
}

static void
add_prompt(struct ask *a, struct token_list *t, struct json_object *prompt)
{
	if (is_ids(prompt)) {
		add_ids(a, t, prompt);
	} else if (json_object_is_type(prompt, json_type_string)) {
		token_list_add(t, TOKEN_BEGIN);
		add_text(t, prompt);
	} else {
		ask_wrong(a, 400, no_text, "prompt");
	}
}

/* ------------------------------------------------------------------ all --- */

static bool
make_prompts(struct ask *a, size_t n)
{
	if (n < 1 || n > ASK_PROMPTS_MAX) {
		ask_wrong(a, 400, "Not a number of prompts to have", NULL);
		return false;
	}
	a->prompts = calloc(n, sizeof(a->prompts[0]));
	a->n_prompts = a->prompts == NULL ? 0 : n;
	if (a->prompts == NULL)
		ask_wrong(a, 500, "no memory", NULL);
	return a->prompts != NULL;
}

/* A string, a list of strings, token ids, a list of lists of them. */
static void
text_prompts(struct ask *a, struct json_object *prompt)
{
	bool several = json_object_is_type(prompt, json_type_array) &&
	    !is_ids(prompt);
	size_t n = several ? json_object_array_length(prompt) : 1, i;

	if (!make_prompts(a, n))
		return;
	for (i = 0; i < n; i++)
		add_prompt(a, &a->prompts[i], several ?
		    json_object_array_get_idx(prompt, i) : prompt);
}

void
ask_prompt(struct ask *a, struct json_object *o, const struct ask_rules *rules)
{
	size_t i;

	if (a->kind == ASK_COMPLETIONS)
		text_prompts(a, ask_member(o, "prompt"));
	else if (a->kind == ASK_EMBEDDINGS)
		text_prompts(a, ask_member(o, "input"));
	else if (make_prompts(a, 1))
		chat_prompt(a, o, rules);
	for (i = 0; i < a->n_prompts; i++)
		if (a->prompts[i].failed)
			ask_wrong(a, 500, "no memory", NULL);
}
