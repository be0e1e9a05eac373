/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply_json.h - finds values in a JSON text that lies whole in memory.
 *
 *   {"a": [1, {"b": "x\n"}], "c": null}
 *    key  value              key  value       of an object
 *         ^~~~~~~~~~~~~~~~~ again: values of a list
 *
 * Values are views of the text: nothing is decoded or copied. What is passed
 * over is only checked for its quotes, brackets and commas; what uses a view
 * has it read by a parser.
 */
#ifndef KVROUTE_REPLY_JSON_H
#define KVROUTE_REPLY_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct view {
	const char *at;
	size_t n;
};

/* Within an object or a list. */
struct walk {
	const char *at, *end;
	char close; /* of its end; 0: over */
	bool first;
	bool broken;
};

/* Begins with this value, an object (or list); false: it is not one. */
bool walk_object(struct walk *w, struct view value);
bool walk_list(struct walk *w, struct view value);
/* The next member; false: there is none, or the text is broken. */
bool walk_member(struct walk *w, struct view *key, struct view *value);
bool walk_element(struct walk *w, struct view *value);

/* The one value that the text is; false: it is not one. */
bool view_text(const char *text, size_t n, struct view *value);
bool view_is_string(struct view v);
bool view_is_null(struct view v);
/* Of a string, without its quotes. */
struct view view_inside(struct view v);
/* Is it this? Of a key as walk_member returns it, or of view_inside. */
bool view_is(struct view v, const char *text);
/* A whole number below 2^32; false: it is not. */
bool view_number(struct view v, size_t *number);

#endif
