/* SPDX-License-Identifier: BSD-2-Clause */
/* ask_in.h - shared by ask.c and ask_prompt.c. */
#ifndef KVROUTE_ASK_IN_H
#define KVROUTE_ASK_IN_H

#include "ask.h"

#include <json-c/json.h>

/* Sets an error; the first one counts. `which` may be NULL. */
void ask_wrong(struct ask *a, int status, const char *what,
    const char *which);
/* NULL: missing, or null, or o is not an object. */
struct json_object *ask_member(struct json_object *o, const char *name);
/* Makes the prompts of a body that is an object. */
void ask_prompt(struct ask *a, struct json_object *o,
    const struct ask_rules *rules);

#endif
