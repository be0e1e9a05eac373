/* SPDX-License-Identifier: BSD-2-Clause */
/* ask.c - see ask.h. ask_prompt.c assembles prompts, ask_state.c items. */
#include "ask_in.h"

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* ------------------------------------------------------- single members --- */

static bool
flag(struct ask *a, struct json_object *o, const char *name)
{
	struct json_object *value = ask_member(o, name);

	if (value == NULL)
		return false;
	if (!json_object_is_type(value, json_type_boolean))
		ask_wrong(a, 400, "Input should be a valid boolean", name);
	return json_object_get_boolean(value) != 0;
}

/* 0: missing. */
static uint32_t
count(struct ask *a, struct json_object *o, const char *name, uint32_t most)
{
	struct json_object *value = ask_member(o, name);
	int64_t n;

	if (value == NULL)
		return 0;
	n = json_object_get_int64(value);
	if (!json_object_is_type(value, json_type_int) || n < 1 || n > most) {
		ask_wrong(a, 400, "Input should be a valid integer", name);
		return 0;
	}
	return (uint32_t)n;
}

static void
read_model(struct ask *a, struct json_object *o, const struct ask_rules *rules)
{
	const char *name = ask_string(a, o, "model");
	bool known = name == NULL || rules->any_model;
	size_t i;

	for (i = 0; i < rules->n_models && !known; i++)
		known = strcmp(name, rules->models[i]) == 0;
	if (!known)
		ask_wrong(a, 404, "The model does not exist", name);
	a->model = strdup(name == NULL ? rules->models[0] : name);
	if (a->model == NULL)
		ask_wrong(a, 500, "no memory", NULL);
}

static void
read_salt(struct ask *a, struct json_object *o)
{
	const char *salt = ask_string(a, o, "cache_salt");

	if (a->model != NULL)
		a->salt = XXH3_64bits(a->model, strlen(a->model));
	if (salt == NULL)
		return;
	a->salt = XXH3_64bits_withSeed(salt, strlen(salt), a->salt);
	a->salt_text = strdup(salt);
	if (a->salt_text == NULL)
		ask_wrong(a, 500, "no memory", NULL);
}

static void
read_length(struct ask *a, struct json_object *o)
{
	static const char *const names[] = {
		"max_completion_tokens", "max_output_tokens", "max_tokens"
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (a->max_tokens == 0)
			a->max_tokens = count(a, o, names[i], ASK_ANSWER_MAX);
	a->choices = count(a, o, "n", 128);
	if (a->choices == 0 || a->kind > ASK_COMPLETIONS)
		a->choices = 1;
}

/* "none", or {"type":"none"} */
static bool
refuses_tools(struct json_object *choice)
{
	struct json_object *type = ask_member(choice, "type");
	const char *text = json_object_get_string(type != NULL ? type :
	    choice);

	return text != NULL && strcmp(text, "none") == 0;
}

static void
add_tool(struct ask *a, struct json_object *tool)
{
	struct json_object *function = ask_member(tool, "function");
	struct json_object *name = ask_member(function != NULL ? function :
	    tool, "name");

	if (!json_object_is_type(name, json_type_string))
		return;
	a->tools[a->n_tools] = strdup(json_object_get_string(name));
	if (a->tools[a->n_tools] == NULL)
		ask_wrong(a, 500, "no memory", NULL);
	else
		a->n_tools++;
}

/* Tools without a name cannot be called. */
static void
read_tools(struct ask *a, struct json_object *o)
{
	struct json_object *tools = ask_member(o, "tools");
	size_t n, i;

	if (!json_object_is_type(tools, json_type_array) ||
	    refuses_tools(ask_member(o, "tool_choice")))
		return;
	n = json_object_array_length(tools);
	a->tools = calloc(n + 1, sizeof(a->tools[0]));
	if (a->tools == NULL)
		ask_wrong(a, 500, "no memory", NULL);
	for (i = 0; i < n && a->status == 0; i++)
		add_tool(a, json_object_array_get_idx(tools, i));
}

static void
read_all(struct ask *a, struct json_object *o, const struct ask_rules *rules)
{
	struct json_object *options = ask_member(o, "stream_options");

	if (!json_object_is_type(o, json_type_object)) {
		ask_wrong(a, 400, "Input should be a valid object", NULL);
		return;
	}
	read_model(a, o, rules);
	read_salt(a, o);
	read_length(a, o);
	a->stream = flag(a, o, "stream") && a->kind != ASK_EMBEDDINGS;
	a->include_usage = flag(a, options, "include_usage");
	a->continuous_usage = a->include_usage &&
	    flag(a, options, "continuous_usage_stats");
	a->compute_all = ask_member(o, "prompt_logprobs") != NULL;
	if (a->kind != ASK_COMPLETIONS && a->kind != ASK_EMBEDDINGS)
		read_tools(a, o);
	a->store = a->kind == ASK_RESPONSES &&
	    (ask_member(o, "store") == NULL || flag(a, o, "store"));
	if (a->status == 0)
		ask_prompt(a, o, rules);
}

void
ask_read(struct ask *a, int kind, const struct ask_rules *rules,
    const char *body, size_t n)
{
	struct json_object *o;

	memset(a, 0, sizeof(*a));
	a->kind = kind;
	o = ask_parse(a, body, n);
	if (a->status == 0)
		read_all(a, o, rules);
	json_object_put(o);
}

void
ask_free(struct ask *a)
{
	while (a->n_prompts > 0)
		token_list_free(&a->prompts[--a->n_prompts]);
	free(a->prompts);
	a->prompts = NULL;
	while (a->n_tools > 0)
		free(a->tools[--a->n_tools]);
	free(a->tools);
	a->tools = NULL;
	free(a->model);
	free(a->salt_text);
	free(a->previous);
	free(a->conversation);
	a->model = a->salt_text = a->previous = a->conversation = NULL;
	json_object_put(a->items);
	a->items = NULL;
}
