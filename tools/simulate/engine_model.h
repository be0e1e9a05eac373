/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * engine_model.h - a model of one inference engine.
 *
 * The engine uses continuous batching. In each step, every decoding sequence
 * generates one token, and the sequences in prefill share a chunk of 2048
 * tokens, first come, first served.
 *
 *   submit -> waiting --admitted--> prefill --first token--> decode -> finished
 *              FIFO    memory for     2048 tokens a step      a token a step
 *                      all of it      among all in prefill
 *
 * A step of n sequences that computes t prompt tokens while memory for m
 * tokens is in use takes
 *
 *   15 ms + 0.1 ms * n + 5 us * m / 512 + t / 20,000 s
 *
 * divided by the engine's speed. n excludes sequences that wait for their turn
 * in prefill; m counts the blocks of all admitted sequences, shared blocks
 * once.
 *
 * The constants are those of a dense model of 70B in bf16 on 8 H100 (3.35 TB/s
 * and 989 TFLOP/s each), from its shape (80 layers, width 8192, 8 KV heads of
 * 128), not measured:
 *
 *   15 ms       140 GB of weights at 26.8 TB/s take 5.2 ms; the rest is for
 *               launches and all-reduces
 *   0.1 ms      scheduling and sampling on the CPU; assumed
 *   5 us / 512  a token's KV is 320 KiB; 512 of them take 6 us
 *   20,000 / s  140 GFLOP a token, at 35 % of 7.9 PFLOP/s
 *
 * So prefill and decode delay each other: they share steps. Four settings
 * bring the model closer to an engine; all are off by default:
 *
 *   attention   a prompt token at context c takes 1 + c / attention times as
 *               long. Attention computes 4 * layers * width * c FLOP a token:
 *               2.6 M * c here, which equals the 140 GFLOP at 53,000 (30,000
 *               for a model of 8B with 32 layers of width 4096).
 *   own_reads   m is the sum of the contexts of the n sequences, blocks that
 *               several share counted for each: engines read them once for
 *               each sequence (cascade attention is the exception).
 *   batch       tokens of a step, one for each decoding sequence, the rest for
 *               prefill: vLLM's max_num_batched_tokens. Prefill slows as more
 *               sequences decode.
 *   preempt     see below
 *
 * Memory consists of blocks of a fixed number of tokens. A request is admitted
 * when there is room for all blocks it will need, at most 256 (or `sequences`)
 * at a time, and holds them to its end; there is no preemption. The part of
 * its prompt that is cached is hit and not computed. At least one token is
 * always computed, so of L tokens in blocks of B at most (L - 1) / B blocks
 * hit, rounded down.
 *
 * With `preempt`, as in vLLM, a request is admitted when there is room for its
 * prompt and one token more, and its output takes blocks as it grows. If there
 * is none, the sequence admitted last is preempted until there is: its blocks
 * are released, its output's are lost, and it waits at the head of the queue.
 * Nothing else is admitted before the next step has ended. When it is admitted
 * again, its prompt and its output so far are computed again, except for the
 * cached part, and it continues.
 *
 * An admitted prompt counts as cached at once. Because prefill is first come,
 * first served, a later request that shares its blocks begins after they have
 * been computed.
 *
 * A request can be dropped, if its client has gone. Its computed blocks stay
 * cached; the next request that counts on the others computes them instead.
 *
 * When a request ends, its blocks are released from the end of the output to
 * the beginning of the prompt. Unused blocks stay cached until room is needed;
 * engine_cache.h describes the order of eviction. By default:
 *
 *   released:  A ends        B ends              room for two is needed
 *   idle list: a2 a1 a0 | b3 b2 b1 b0      ->    a0 | b3 b2 b1 b0
 *              ^ evicted first
 *
 * Outputs stay cached too. Traces do not contain their tokens, so they are
 * never hit, but they take room as in a real engine. Sessions of agents have
 * them; these are hit like prompts.
 *
 * A prompt is given as one id for each 512 tokens, equal ids for equal tokens.
 * Blocks of other sizes have other boundaries. Two blocks are the same if they
 * are at the same position and cover parts of the same ids, and the blocks
 * before them are the same:
 *
 *   tokens           0               512               1024
 *   ids              A               | B               | C
 *   blocks of 300    A      | A B       | B      | B C       | C
 *
 * kvroute-engine, which has tokens, gives the names of blocks itself.
 */
#ifndef KVROUTE_ENGINE_MODEL_H
#define KVROUTE_ENGINE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine_cache.h"
#include "engine_window.h"

enum {
	ENGINE_BLOCK = 512,      /* tokens per id */
	ENGINE_CHUNK = 2048,     /* prompt tokens per step */
	ENGINE_SEQUENCES = 256,  /* admitted at once */
	ENGINE_OUTPUT_MAX = 1 << 22, /* tokens of an output */
	ENGINE_STEP_NS = 15000000,
	ENGINE_SEQUENCE_NS = 100000,
	ENGINE_BLOCK_NS = 5000,      /* each ENGINE_BLOCK tokens of memory */
	ENGINE_TOKEN_NS = 50000
};
#define ENGINE_ENDLESS UINT64_MAX /* blocks of an unlimited cache */

struct engine;

/* Parameters of an engine. */
struct engine_idea {
	uint64_t blocks;               /* memory */
	uint32_t block_tokens;         /* tokens per block, above 0 */
	enum engine_eviction eviction;
	double speed; /* 1: as above; 2: twice as fast; above 0 */
	double prefill; /* tokens a second at speed 1; 0: 20,000 */
	uint64_t seed; /* of random eviction */
	uint32_t sequences; /* admitted at once; 0: ENGINE_SEQUENCES */
	uint32_t batch;     /* tokens of a step; 0: ENGINE_CHUNK for prefill */
	uint64_t attention; /* context at which a token costs twice; 0: none */
	bool own_reads;
	bool preempt;
	bool each_token; /* ENGINE_GENERATED: every one but the first */
	bool watched;    /* there are engine_changes, ... */
	bool watched_all; /* ... also of outputs without ids */
	struct engine_window_idea window; /* of layers that have one */
};
/* NULL: out of memory. */
struct engine *engine_new(const struct engine_idea *idea);
void engine_free(struct engine *e);

struct engine_request {
	uint64_t number;     /* the caller's, for events */
	uint64_t tokens;     /* of the prompt, above 0 */
	uint64_t output;     /* tokens; 0 counts as 1 */
	const uint64_t *ids; /* one per ENGINE_BLOCK tokens, rounded up */
	uint64_t known;      /* tokens of the output that ids cover as well */
	const uint64_t *names; /* of the blocks of prompt and known output that
	                          are complete; NULL: made from ids */
	bool compute_all;    /* hits nothing */
};
enum engine_result {
	ENGINE_OK = 0,
	ENGINE_NO_MEMORY = -1, /* malloc failed; only engine_free is valid */
	ENGINE_TOO_LARGE = -2  /* can never fit, or its output is too long */
};
/* Queues the request, or admits it if the queue is empty and it fits. */
enum engine_result engine_submit(struct engine *e,
    const struct engine_request *r);
/* Waiting or running: drops it, without an event. */
void engine_drop(struct engine *e, uint64_t number);
/* Tokens that would hit if the request were admitted now. */
uint64_t engine_cached(const struct engine *e, const struct engine_request *r);

/*
 * Begins a step if none is under way and there is work. Returns the time of
 * its end; INT64_MAX: there is no work.
 */
int64_t engine_begin(struct engine *e, int64_t now);
/* Nanoseconds of the step under way that its prompt tokens take. */
int64_t engine_computing(const struct engine *e);
/* Ends the step. */
enum engine_result engine_end(struct engine *e);
/*
 * Loses the cache: all idle blocks are evicted. Running requests continue;
 * their blocks can still be hit and are cached when released.
 */
void engine_reset(struct engine *e);
/* Steps that begin from now on take `factor` times as long; above 0. */
void engine_slow(struct engine *e, double factor);
/* The engine dies: requests, cache, the step and events are gone. */
void engine_kill(struct engine *e);

enum engine_kind {
	ENGINE_ADMITTED,
	ENGINE_FIRST_TOKEN,
	ENGINE_GENERATED, /* prompt and output began another ENGINE_BLOCK;
	                     or each_token */
	ENGINE_FINISHED,
	ENGINE_PREEMPTED,
	ENGINE_RESUMED    /* admitted again */
};
struct engine_event {
	enum engine_kind kind;
	uint64_t request;
	uint64_t tokens; /* ADMITTED, RESUMED: hit; else: generated so far */
};
/* Removes the next event of submit or end; false: none. */
bool engine_next(struct engine *e, struct engine_event *out);

/*
 * Names of blocks that came into the cache and left it, in order, a prefix
 * before its continuation; since the last call of engine_noted. False: some are
 * missing: out of memory. Blocks of layers with windows are beside the others.
 * With watched_all, blocks of outputs without ids are there too, each time from
 * the last one.
 */
bool engine_changes(const struct engine *e,
    const struct cache_change **changes, size_t *n);
void engine_noted(struct engine *e);

/* Blocks are pinned (named, in use), own (in use, no name yet) or idle. */
struct engine_state {
	uint64_t waiting; /* requests */
	uint64_t running;
	uint64_t pinned;
	uint64_t own;
	uint64_t idle;
};
void engine_state(const struct engine *e, struct engine_state *out);
/* Recounts everything; false: inconsistent. */
bool engine_check(const struct engine *e);

#endif
