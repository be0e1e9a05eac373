/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_talk.h - the requests of one user: chats of several turns, one after
 * another; each request has the whole conversation so far.
 *
 * The same seed and the same responses give the same requests, byte for byte.
 */
#ifndef KVROUTE_CHATS_TALK_H
#define KVROUTE_CHATS_TALK_H

#include "chats.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct talk_systems;
struct talk;

/* The system prompts that all users share. NULL: no memory. */
struct talk_systems *talk_systems_new(const struct chats_options *o);
void talk_systems_free(struct talk_systems *s);

/* The options and the system prompts must outlive the talk. */
struct talk *talk_new(const struct chats_options *o,
    const struct talk_systems *s, uint32_t user);
void talk_free(struct talk *t);

/*
 * The body of the next request, with another user message. The talk owns it,
 * until the next call. NULL: no memory.
 */
const char *talk_body(struct talk *t, size_t *length);
/* Adds the response to the next body. False: no memory. */
bool talk_answered(struct talk *t, const char *text, size_t length);
/* The same with a generated response as long as a turn. */
bool talk_invent_answer(struct talk *t);
/* Ends the chat, as after its last turn; another one begins. */
void talk_abandon(struct talk *t);
/* A pause before the next turn, around the configured mean. */
int64_t talk_pause_ns(struct talk *t);
/* Does the user abort the next request? */
bool talk_leaves(struct talk *t);

#endif
