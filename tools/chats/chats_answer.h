/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_answer.h - a client's view of a response: text, usage, its end.
 *
 * Parsed event by event with a JSON library, as clients do, not with the code
 * of a proxy (ext/http): each tests the other.
 */
#ifndef KVROUTE_CHATS_ANSWER_H
#define KVROUTE_CHATS_ANSWER_H

#include "chats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_tokener;

struct answer_buffer {
	char *data;
	size_t length;
	size_t capacity;
};

struct chats_answer {
	enum chats_endpoint endpoint;
	bool stream;
	bool failed;         /* an error among the events; no memory */
	bool malformed;      /* not in the endpoint's format */
	bool ended;          /* complete */
	bool usage;          /* prompt_tokens is known */
	bool cached_known;   /* a number, and not null */
	uint64_t events;
	uint64_t bytes;
	uint64_t usage_events; /* without choices: requested, or not stripped */
	uint64_t prompt_tokens;
	uint64_t cached_tokens;
	int64_t first_event; /* time of it, and of the first text; 0: none */
	int64_t first_text;
	struct answer_buffer text; /* the assistant's text */
	struct answer_buffer line; /* an incomplete one; or all JSON */
	struct json_tokener *json;
};

/* False: no memory. It is reused. */
bool answer_new(struct chats_answer *a);
void answer_free(struct chats_answer *a);
void answer_begin(struct chats_answer *a, enum chats_endpoint endpoint);
/* Any piece; `now` is its arrival. Whether it is a stream is known by then. */
void answer_data(struct chats_answer *a, const char *data, size_t n,
    int64_t now);
/* The end of the response. */
void answer_end(struct chats_answer *a, int64_t now);

#endif
