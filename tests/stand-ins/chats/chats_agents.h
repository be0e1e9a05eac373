/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_agents.h - the requests of sessions of agents: the loop of sessions.h
 * over sessions of session_gen.h, with real texts and the engine's answers.
 *
 *   session_gen --lengths--> sessions --a request is due--> body --> engine
 *                               ^                                       |
 *                               '------- answer, into the history ------'
 *
 * A session belongs to a family of agents. Tools and system prompt are those of
 * its family, and all sub-agents of a family share theirs. The first message is
 * a task; after each answer come the results of its calls, or without a call a
 * user's message. A prompt that has grown beyond the limit is replaced by
 * tools, system prompt and a summary.
 *
 * A token of a generated length is 4 bytes of text. Texts depend on the seed,
 * the session and the turn alone: the same seed and the same answers give the
 * same requests, whenever they are sent.
 */
#ifndef KVROUTE_CHATS_AGENTS_H
#define KVROUTE_CHATS_AGENTS_H

#include "chats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct chats_answer;
struct agents;

#define AGENTS_NEVER INT64_MAX
enum { AGENTS_ID_BYTES = 24 };

/* The options must outlive it. NULL: no memory. */
struct agents *agents_new(const struct chats_options *o);
void agents_free(struct agents *a);

/* Requests of all sessions; and the most that are in flight at a time. */
uint64_t agents_requests(const struct agents *a);
uint64_t agents_most(const struct chats_options *o);

/* Nanoseconds from the start; AGENTS_NEVER: none before an answer. */
int64_t agents_next(const struct agents *a);

struct agents_request {
	uint64_t ticket;
	const char *body; /* until the next request with this ticket; */
	size_t length;    /* a zero byte follows */
	char session[AGENTS_ID_BYTES]; /* the same in its sub-agents */
};
/* Takes the next one. False: no memory. */
bool agents_take(struct agents *a, struct agents_request *out);
/*
 * The response has ended `now` nanoseconds from the start. Answer NULL: it
 * failed, and the conversation goes on without it. False: no memory.
 */
bool agents_ended(struct agents *a, uint64_t ticket,
    const struct chats_answer *answer, int64_t now);
/* Have all sessions ended? */
bool agents_done(const struct agents *a);

#endif
