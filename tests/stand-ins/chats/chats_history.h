/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_history.h - the messages of one conversation, as the JSON that its next
 * request carries, in the form of chat completions or of /v1/messages.
 *
 *              chat completions               /v1/messages
 *   question   user                           user
 *   answer     assistant, with tool_calls     assistant, with tool_use
 *   results    tool, one for each call        user, with tool_result
 *              without a call: user           without a call: user
 *
 * Clients put back the engine's answer as it came; so does this. A message is
 * never changed once it is there, so each request begins with the messages of
 * the one before it, byte for byte.
 */
#ifndef KVROUTE_CHATS_HISTORY_H
#define KVROUTE_CHATS_HISTORY_H

#include "chats_answer.h"

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialized: empty. */
struct history {
	struct answer_buffer json;  /* messages and the commas between them */
	/* Ids of the calls that have no result yet, each with a zero byte. */
	struct answer_buffer waiting;
	size_t n_waiting;
};

void history_free(struct history *h);
void history_clear(struct history *h);

/* The functions below return false if there is no memory. */

/* A message of JSON, as it is. */
bool history_add(struct history *h, const char *json, size_t length);
bool history_say(struct history *h, const char *role, const char *text,
    size_t length);
bool history_answer(struct history *h, const struct chats_answer *a);
/* Adds the tools' results: the calls of the last answer have a part each. */
bool history_results(struct history *h, enum chats_endpoint endpoint,
    const char *text, size_t length);

/* Appends; also for other JSON. */
bool history_put(struct answer_buffer *b, const char *data, size_t n);

#endif
