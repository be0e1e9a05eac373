/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * plain_engine.h - how long requests take on engines that a replay does not
 * have.
 *
 * A router weighs overlap against load, so a replay needs load: requests have
 * to be running somewhere for a while. The model is deliberately plain:
 *
 *   arrival         prefill begins       first token            finished
 *      |--- queue ---|--- prefill ---------|------ decode -------|
 *                     tokens not cached      output tokens
 *                     / prefill rate         / decode rate
 *
 * A worker prefills one request at a time, in the order of arrival, at
 * `prefill_rate` tokens a second; cached is what the router predicted, at
 * least one token is always computed. Then every request decodes at
 * `decode_rate` tokens a second, however many there are. No batching, no
 * memory limit, no interference: it tells policies apart, it does not
 * predict what a real engine will do.
 */
#ifndef KVROUTE_ENGINES_H
#define KVROUTE_ENGINES_H

#include <stdbool.h>
#include <stdint.h>

struct engines;

/* For workers 0 to n - 1; rates in tokens a second, above 0. NULL: no memory */
struct engines *engines_new(uint32_t n, uint64_t prefill_rate,
    uint64_t decode_rate);
void engines_free(struct engines *e);

enum engines_kind { ENGINES_FIRST_TOKEN, ENGINES_FINISH };
struct engines_event {
	int64_t at;
	uint64_t lease;
	enum engines_kind kind;
};

/* Nanoseconds until the first token, of a request that begins now. */
int64_t engines_start(struct engines *e, uint32_t worker, int64_t now,
    uint64_t prefill_tokens);
/*
 * Two events to come: the first token at `first`, the end when the output
 * has been decoded. 0, or -1: no memory.
 */
int engines_follow(struct engines *e, uint64_t lease, int64_t first,
    uint64_t output_tokens);
/* Takes the earliest event that is due at `now`. */
bool engines_due(struct engines *e, int64_t now, struct engines_event *out);

#endif
