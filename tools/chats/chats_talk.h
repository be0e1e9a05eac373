/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_talk.h - what one user says: chats of several turns, one after the
 * other, each request the whole conversation so far.
 *
 * The same seed and the same answers give the same requests, byte for byte.
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
 * The body of the next request: another user's text is said. It is the
 * talk's own until the next call. NULL: no memory.
 */
const char *talk_body(struct talk *t, size_t *length);
/* The answer that came; it is part of the next body. False: no memory. */
bool talk_answered(struct talk *t, const char *text, size_t length);
/* The same with a made-up answer as long as a turn. */
bool talk_invent_answer(struct talk *t);
/* The chat is over, as it is after the last turn: another one begins. */
void talk_abandon(struct talk *t);
/* A pause before the next turn, around the mean that was asked for. */
int64_t talk_pause_ns(struct talk *t);
/* Does the user go away in the middle of the coming request? */
bool talk_leaves(struct talk *t);

#endif
