/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_writer.h - JSON into a writer.
 *
 *   struct json j;                          {
 *   json_begin(&j, writer);
 *   json_map(&j, NULL);
 *   json_whole(&j, "leases", 3);              "leases": 3,
 *   json_list(&j, "workers");                 "workers": [
 *   json_text(&j, NULL, "a");                   "a"
 *   json_list_end(&j);                        ]
 *   json_map_end(&j);
 *   json_end(&j);                           }\n
 *
 * In an object each value has a key; in an array the key is NULL. A missing key
 * or a text that is incomplete at its end fails the writer, as a failed write
 * does. Nothing is allocated.
 */
#ifndef KVROUTE_JSON_WRITER_H
#define KVROUTE_JSON_WRITER_H

#include "text_writer.h"

enum { JSON_NESTED = 32 }; /* objects and arrays within each other */

struct json {
	struct writer *to;
	unsigned depth;
	bool some;     /* a value precedes at this level */
	bool complete;
	bool is_map[JSON_NESTED + 1];
};

void json_begin(struct json *j, struct writer *to);
/* The text is complete: writes the newline. */
void json_end(struct json *j);

void json_map(struct json *j, const char *key);
void json_map_end(struct json *j);
void json_list(struct json *j, const char *key);
void json_list_end(struct json *j);
void json_null(struct json *j, const char *key);
void json_bool(struct json *j, const char *key, bool value);
void json_whole(struct json *j, const char *key, uint64_t value);
/* Writes six decimals; null for a number from 1e18 on, infinite or NaN. */
void json_real(struct json *j, const char *key, double value);
void json_text(struct json *j, const char *key, const char *text);
/* Takes any bytes; if they are not UTF-8, '?' replaces all but ASCII. */
void json_bytes(struct json *j, const char *key, const void *bytes, size_t n);

#endif
