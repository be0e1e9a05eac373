/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sessions.h - recorded sessions as a source of requests: a closed loop.
 *
 * The next request of a conversation is sent when the agent has thought after
 * the response before it. Sub-agents run beside each other, and their parent
 * continues when all of them have ended.
 *
 *   main   [r1]--think--[r2]                     [r3]--think--[r4]
 *   agent               '-[r]-think-[r]--------[r]
 *   agent                  '----[r]--[r]
 *
 * A number of sessions is active at a time; the next one begins when one ends.
 * They are taken in random order, each once before any is repeated.
 *
 * Each session has ids of its own, also when it is repeated, except for the
 * complete blocks of tools and system prompt. These are common to all
 * conversations whose two numbers are equal.
 */
#ifndef KVROUTE_SESSIONS_H
#define KVROUTE_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct session;
struct session_talk;
struct trace_request;

#define SESSIONS_NEVER INT64_MAX
enum {
	SESSIONS_ACTIVE_MAX = 100000,
	SESSIONS_COUNT_MAX = 10000000
};

struct sessions_options {
	uint64_t seed;
	uint64_t active;    /* sessions at a time, above 0 */
	uint64_t count;     /* in all; 0: each once */
	int64_t ramp_ns;    /* the first ones begin within it, at random */
	int64_t think_ns;   /* longest pause; SESSIONS_NEVER: as recorded */
};
void sessions_defaults(struct sessions_options *o);

struct sessions;

/* The sessions stay the caller's. NULL: out of memory. */
struct sessions *sessions_new(struct session *const *list, size_t n,
    const struct sessions_options *o);
void sessions_free(struct sessions *s);

/* Time of the next request, SESSIONS_NEVER: none before a response ends. */
int64_t sessions_next(const struct sessions *s);
/*
 * Removes it. out->number is its ticket; out->ids are valid until the next
 * call. -1: out of memory.
 */
int sessions_take(struct sessions *s, struct trace_request *out);
/* Where a request that was taken, and has not ended, is from. */
struct sessions_place {
	size_t play; /* number of the session, in order of their begin */
	size_t talk; /* number of the conversation in it; 0: the main one */
	const struct session_talk *head; /* its tools and system prompt */
};
struct sessions_place sessions_where(const struct sessions *s,
    uint64_t ticket);
/* The response has ended, or was refused. -1: out of memory. */
int sessions_ended(struct sessions *s, uint64_t ticket, int64_t now);
/* Have all sessions ended? */
bool sessions_done(const struct sessions *s);

struct sessions_figures {
	uint64_t sessions;
	uint64_t active;
	uint64_t requests;
	/*
	 * Seconds per session in which an agent waits for a response, summed
	 * over its main agent and its sub-agents.
	 */
	double wait_mean;
	double wait_p90;
	double length_mean; /* seconds from begin to end */
};
/* Totals of sessions that have ended. -1: out of memory. */
int sessions_measure(const struct sessions *s, struct sessions_figures *out);

#endif
