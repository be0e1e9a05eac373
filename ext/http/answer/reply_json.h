/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reply_json.h - finds values in a JSON text that lies whole in memory.
 *
 *   {"a": [1, {"b": "x\n"}], "c": null}
 *    key  value              key  value       parts of an object
 *         ^~~~~~~~~~~~~~~~~ again: parts of a list
 *
 * Values are views of the text: nothing is decoded or copied. A raw reader, see
 * json_reader.h, checks the text. A key with an escape is empty.
 */
#ifndef KVROUTE_REPLY_JSON_H
#define KVROUTE_REPLY_JSON_H

#include <stdbool.h>
#include <stddef.h>

struct view {
	const char *at;
	size_t n;
};

/*
 * Takes a part; returns false if the rest is not wanted. The key of an element
 * of a list is empty.
 */
typedef bool view_take(void *context, struct view key, struct view value);

/*
 * Passes the members of an object, or the elements of a list, to `take`. False:
 * the value is neither, is broken, or was not wanted to its end.
 */
bool view_parts(struct view v, view_take *take, void *context);

/* Returns the text without the blanks around it. */
struct view view_trim(const char *text, size_t n);
/* Is the view exactly one value? */
bool view_is_whole(struct view v);
bool view_is_object(struct view v);
bool view_is_list(struct view v);
bool view_is_string(struct view v);
bool view_is_null(struct view v);
/* Returns a string without its quotes. */
struct view view_inside(struct view v);
/* Is a key, or the inside of a string, this text? */
bool view_is(struct view v, const char *text);
/* Reads a whole number below 2^32; false: it is not one. */
bool view_number(struct view v, size_t *number);

#endif
