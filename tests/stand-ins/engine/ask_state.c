/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ask_state.c - the items that a prompt of /v1/responses is made of: those of
 * earlier turns, which the engine has kept, and the input.
 */
#include "ask_in.h"

#include <stdlib.h>
#include <string.h>

/* A string as the message that it stands for; the text is shared. */
static struct json_object *
message_of(struct json_object *text)
{
	struct json_object *o = json_tokener_parse("{\"type\":\"message\","
	    "\"role\":\"user\",\"content\":[{\"type\":\"input_text\"}]}");
	struct json_object *part = o == NULL ? NULL :
	    json_object_array_get_idx(ask_member(o, "content"), 0);

	if (part != NULL && json_object_object_add(part, "text",
	    json_object_get(text)) == 0)
		return o;
	if (part != NULL)
		json_object_put(text);
	json_object_put(o);
	return NULL;
}

static void
add_input(struct ask *a, struct json_object *input)
{
	bool is_text = json_object_is_type(input, json_type_string);
	struct json_object *message = is_text ? message_of(input) : NULL;

	if (is_text) {
		if (message == NULL ||
		    json_object_array_add(a->items, message) != 0) {
			json_object_put(message);
			ask_wrong(a, 500, "no memory", NULL);
		}
	} else if (ask_list(a, input, "input") &&
	    !kept_copy(a->items, input, 0)) {
		ask_wrong(a, 500, "no memory", NULL);
	}
}

/* Adds kept items; returns the id. NULL: not found, and an error is set. */
static char *
add_kept(struct ask *a, const struct ask_rules *rules, enum kept_kind kind,
    const char *id)
{
	const struct kept_thing *t = kept_find(rules->kept, kind, id);
	char text[sizeof(a->error)], *copy;

	if (t == NULL) {
		kept_missing(kind, id, text, sizeof(text));
		ask_wrong(a, 404, text, NULL);
		return NULL;
	}
	copy = strdup(id);
	if (copy == NULL || !kept_copy(a->items, t->items, 0))
		ask_wrong(a, 500, "no memory", NULL);
	return copy;
}

/* An id, or an object with one. */
static const char *
conversation_of(struct ask *a, struct json_object *o)
{
	struct json_object *c = ask_member(o, "conversation");
	const char *id;

	if (!json_object_is_type(c, json_type_object))
		return ask_string(a, o, "conversation");
	id = ask_string(a, c, "id");
	if (id == NULL)
		ask_wrong(a, 400, "Field required", "conversation.id");
	return id;
}

void
ask_items(struct ask *a, struct json_object *o, const struct ask_rules *rules)
{
	const char *previous = ask_string(a, o, "previous_response_id");
	const char *conversation = conversation_of(a, o);

	if (previous != NULL && conversation != NULL)
		ask_wrong(a, 400, "Only one can be given",
		    "previous_response_id, conversation");
	a->items = json_object_new_array();
	if (a->items == NULL)
		ask_wrong(a, 500, "no memory", NULL);
	if (a->status == 0 && previous != NULL)
		a->previous = add_kept(a, rules, KEPT_RESPONSE, previous);
	if (a->status == 0 && conversation != NULL)
		a->conversation = add_kept(a, rules, KEPT_CONVERSATION,
		    conversation);
	if (a->status != 0)
		return;
	a->n_earlier = json_object_array_length(a->items);
	add_input(a, ask_member(o, "input"));
}
