/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_model.h - one inference engine, as far as routing can tell.
 *
 * An engine batches continuously: it works in steps, and in each step every
 * sequence that decodes makes one token while those still in prefill share a
 * chunk of 2048 tokens, first come, first served.
 *
 *   submit -> waiting --admitted--> prefill --first token--> decode -> finished
 *              FIFO    memory for     2048 tokens a step      a token a step
 *                      all of it      among all in prefill
 *
 * A step of n sequences that computes t tokens of prompts while memory for m
 * tokens is in use takes
 *
 *   15 ms + 0.1 ms * n + 5 us * m / 512 + t / 20,000 s
 *
 * divided by the engine's speed. Sequences waiting for their turn in prefill
 * are not among the n; m counts the blocks of every admitted sequence, shared
 * ones once.
 *
 * Memory is paged in blocks of so many tokens. A request is admitted when all
 * blocks it will ever need have room, at most 256 at a time, and holds them to
 * its end: nothing is preempted. What its prompt shares with blocks that are
 * there is hit and not computed; one token at least always is, so of L tokens
 * in blocks of B at most (L - 1) / B blocks hit, rounded down.
 *
 * What is admitted counts as cached at once. Prefill is first come, first
 * served, so whoever comes later and shares those blocks begins after they
 * have been computed.
 *
 * When a request ends its blocks are released, the last of the answer first
 * and the first of the prompt last. What nobody uses stays cached until room
 * is needed; engine_cache.h says what leaves first. Usually:
 *
 *   released:  A ends        B ends              room for two is needed
 *   idle list: a2 a1 a0 | b3 b2 b1 b0      ->    a0 | b3 b2 b1 b0
 *              ^ leaves first
 *
 * Answers stay cached too; no trace tells their tokens, so nothing ever hits
 * them, but they take room as they would.
 *
 * A prompt is told as one id for each 512 tokens, equal ids for equal tokens.
 * Blocks of any other size cut it elsewhere; a block is the same as another if
 * it is at the same place, covers parts of the same ids, and so do all before
 * it:
 *
 *   tokens           0               512               1024
 *   ids              A               | B               | C
 *   blocks of 300    A      | A B       | B      | B C       | C
 */
#ifndef KVROUTE_ENGINE_MODEL_H
#define KVROUTE_ENGINE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine_cache.h"

enum {
	ENGINE_BLOCK = 512,      /* tokens that an id stands for */
	ENGINE_CHUNK = 2048,     /* tokens of prompts that a step computes */
	ENGINE_SEQUENCES = 256,  /* admitted at once */
	ENGINE_OUTPUT_MAX = 1 << 22, /* tokens of an answer */
	ENGINE_STEP_NS = 15000000,
	ENGINE_SEQUENCE_NS = 100000,
	ENGINE_BLOCK_NS = 5000,      /* each ENGINE_BLOCK tokens of memory */
	ENGINE_TOKEN_NS = 50000
};
#define ENGINE_ENDLESS UINT64_MAX /* blocks of a cache that is never full */

struct engine;

/* What kind of engine. */
struct engine_idea {
	uint64_t blocks;               /* that it has memory for */
	uint32_t block_tokens;         /* of each, above 0 */
	enum engine_eviction eviction;
	double speed; /* 1: as above; 2: all in half the time; above 0 */
	uint64_t seed; /* of random eviction */
};
/* NULL: no memory. */
struct engine *engine_new(const struct engine_idea *idea);
void engine_free(struct engine *e);

struct engine_request {
	uint64_t number;     /* yours, for events */
	uint64_t tokens;     /* of the prompt, above 0 */
	uint64_t output;     /* tokens of the answer; 0 counts as 1 */
	const uint64_t *ids; /* one for each ENGINE_BLOCK tokens, the last */
	                     /* for what is left */
};
enum engine_result {
	ENGINE_OK = 0,
	ENGINE_NO_MEMORY = -1, /* of ours; the engine can only be freed */
	ENGINE_TOO_LARGE = -2  /* the request would never fit, or never end */
};
/* It waits; or is admitted, if nobody waits before it and there is room. */
enum engine_result engine_submit(struct engine *e,
    const struct engine_request *r);
/* Tokens of it that would hit, were it admitted now. */
uint64_t engine_cached(const struct engine *e, const struct engine_request *r);

/*
 * Begins a step, if none is under way and there is work; its end, or
 * INT64_MAX: there is no work.
 */
int64_t engine_begin(struct engine *e, int64_t now);
/* The step is over. */
enum engine_result engine_end(struct engine *e);
/*
 * The cache is lost: idle blocks are gone at once. Requests that run go on,
 * and theirs stay: others can hit them, and they are cached when released.
 */
void engine_reset(struct engine *e);

enum engine_kind {
	ENGINE_ADMITTED,
	ENGINE_FIRST_TOKEN,
	ENGINE_GENERATED, /* another ENGINE_BLOCK tokens were begun, all told */
	ENGINE_FINISHED
};
struct engine_event {
	enum engine_kind kind;
	uint64_t request;
	uint64_t tokens; /* ADMITTED: hit; else: generated so far */
};
/* Takes the next thing that happened in submit or end; false: no more. */
bool engine_next(struct engine *e, struct engine_event *out);

/* Blocks are pinned (named, in use), own (in use, no name yet) or idle. */
struct engine_state {
	uint64_t waiting; /* requests */
	uint64_t running;
	uint64_t pinned;
	uint64_t own;
	uint64_t idle;
};
void engine_state(const struct engine *e, struct engine_state *out);
/* Counts everything again; false: something is not conserved. */
bool engine_check(const struct engine *e);

#endif
