/* SPDX-License-Identifier: BSD-2-Clause */
/* ask_members.c - members of a body, and its errors. */
#include "ask_in.h"

#include <stdio.h>

enum { DEPTH_MAX = 128 };

void
ask_wrong(struct ask *a, int status, const char *what, const char *which)
{
	if (a->status != 0)
		return;
	a->status = status;
	snprintf(a->error, sizeof(a->error), "%s%s%s", what,
	    which == NULL ? "" : ": ", which == NULL ? "" : which);
}

struct json_object *
ask_member(struct json_object *o, const char *name)
{
	struct json_object *value = NULL;

	if (json_object_is_type(o, json_type_object))
		json_object_object_get_ex(o, name, &value);
	return value;
}

const char *
ask_string(struct ask *a, struct json_object *o, const char *name)
{
	struct json_object *value = ask_member(o, name);

	if (value == NULL)
		return NULL;
	if (!json_object_is_type(value, json_type_string)) {
		ask_wrong(a, 400, "Input should be a valid string", name);
		return NULL;
	}
	return json_object_get_string(value);
}

bool
ask_list(struct ask *a, struct json_object *list, const char *name)
{
	if (!json_object_is_type(list, json_type_array))
		ask_wrong(a, 400, "Input should be a valid list", name);
	else if (json_object_array_length(list) == 0)
		ask_wrong(a, 400, "List should have at least 1 item", name);
	return a->status == 0;
}

struct json_object *
ask_parse(struct ask *a, const char *body, size_t n)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);
	struct json_object *o = NULL;
	enum json_tokener_error error = json_tokener_error_size;

	if (tokener == NULL) {
		ask_wrong(a, 500, "no memory", NULL);
		return NULL;
	}
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT |
	    JSON_TOKENER_VALIDATE_UTF8);
	if (n < INT32_MAX) {
		o = json_tokener_parse_ex(tokener, body, (int)n);
		error = json_tokener_get_error(tokener);
	}
	if (error != json_tokener_success)
		ask_wrong(a, 400, "JSON decode error",
		    error == json_tokener_continue ? "it is cut" :
		    json_tokener_error_desc(error));
	json_tokener_free(tokener);
	return o;
}
