/* SPDX-License-Identifier: BSD-2-Clause */
/* ask_in.h - shared by the files of ask.h, and by stored.c. */
#ifndef KVROUTE_ASK_IN_H
#define KVROUTE_ASK_IN_H

#include "ask.h"

#include <json-c/json.h>

/* Sets an error; the first one counts. `which` may be NULL. */
void ask_wrong(struct ask *a, int status, const char *what,
    const char *which);
/* NULL: missing, or null, or o is not an object. */
struct json_object *ask_member(struct json_object *o, const char *name);
/* NULL: missing, or not a string, which is an error. */
const char *ask_string(struct ask *a, struct json_object *o,
    const char *name);
/* Is it a list with items? Else it is an error. */
bool ask_list(struct ask *a, struct json_object *list, const char *name);
/* Parses n bytes; errors are those of a body. */
struct json_object *ask_parse(struct ask *a, const char *body, size_t n);
/* Reads the state that a response goes on from, and makes a->items. */
void ask_items(struct ask *a, struct json_object *o,
    const struct ask_rules *rules);
/* Makes the prompts of a body that is an object. */
void ask_prompt(struct ask *a, struct json_object *o,
    const struct ask_rules *rules);

#endif
