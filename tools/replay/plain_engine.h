/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plain_engine.h - a simple model of how long requests take.
 *
 * A router weighs overlap against load, so a replay needs requests in flight.
 * The model is deliberately simple:
 *
 *   arrival         prefill begins       first token            finished
 *      |--- queue ---|--- prefill ---------|------ decode -------|
 *                     tokens not cached      output tokens
 *                     / prefill rate         / decode rate
 *
 * A worker prefills one request at a time, in order of arrival, at
 * `prefill_rate` tokens per second. The router's prediction counts as cached,
 * but at least one token is computed. Every request then decodes at
 * `decode_rate` tokens per second, however many there are. There is no
 * batching, memory limit or interference. The model distinguishes policies; it
 * does not predict the behaviour of a real engine.
 */
#ifndef KVROUTE_PLAIN_ENGINE_H
#define KVROUTE_PLAIN_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

struct engines;

/* Workers 0 to n - 1; rates in tokens/s, above 0. NULL: out of memory. */
struct engines *engines_new(uint32_t n, uint64_t prefill_rate,
    uint64_t decode_rate);
void engines_free(struct engines *e);

enum engines_kind { ENGINES_FIRST_TOKEN, ENGINES_FINISH };
struct engines_event {
	int64_t at;
	uint64_t lease;
	enum engines_kind kind;
};

/* Nanoseconds until the first token of a request that arrives now. */
int64_t engines_start(struct engines *e, uint32_t worker, int64_t now,
    uint64_t prefill_tokens);
/*
 * Queues two events: the first token at `first`, and the end of decoding.
 * -1: out of memory.
 */
int engines_follow(struct engines *e, uint64_t lease, int64_t first,
    uint64_t output_tokens);
/* Removes the earliest event that is due at `now`. */
bool engines_due(struct engines *e, int64_t now, struct engines_event *out);

#endif
