/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_answer.h - a client's view of a response: text, calls of tools, usage,
 * its end. Calls are read from chat completions and messages.
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

enum { ANSWER_CALLS_MAX = 16 }; /* further ones are a failure */

/* A call of a tool, each text without its quotes. */
struct answer_call {
	struct answer_buffer id;
	struct answer_buffer name;
	struct answer_buffer arguments; /* JSON */
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
	int64_t first_event; /* time of it, and of the first text or call */
	int64_t first_text;
	struct answer_buffer text; /* the assistant's text */
	struct answer_call calls[ANSWER_CALLS_MAX];
	size_t n_calls;
	struct answer_buffer line; /* an incomplete one; or all JSON */
	struct json_tokener *json;
};

/* False: no memory. It is reused. */
bool chats_answer_new(struct chats_answer *a);
void chats_answer_free(struct chats_answer *a);
void chats_answer_begin(struct chats_answer *a, enum chats_endpoint endpoint);
/* Takes any piece, which arrived at `now`; by then a stream is known as one. */
void chats_answer_data(struct chats_answer *a, const char *data, size_t n,
    int64_t now);
/* The end of the response. */
void chats_answer_end(struct chats_answer *a, int64_t now);

#endif
