/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serving.h - schedules an engine's requests, in simulated time.
 *
 *   submit -> waiting --room for its tokens--> prefill -> decode -> finished
 *               ^  FIFO, one at a time in prefill            |
 *               +--------------- preempted ------------------+
 *
 * Prefill takes one sequence at a time, in pieces of PREFILL_PIECE tokens at
 * the prefill rate. Each decoding sequence gets a token per tick. Both run
 * concurrently.
 *
 * The cache has whole blocks; engine_cache.h stores and evicts them. A block's
 * name is a hash of all tokens up to its end and of the salt. A sequence holds
 * its leading named blocks, pinned in the cache, and then its own blocks, which
 * are not computed or not full yet:
 *
 *   tokens      0 ............ computed ......... prompt ......... end
 *   blocks      [n0] [n1] [n2] [own] [own] [own]
 *                named, pinned   held without a name
 *
 *   named pinned + own <= blocks of the engine, always; idle ones of the
 *   cache leave as these grow
 *
 * On admission a sequence hits the leading blocks in the cache, of a prompt of
 * L tokens at most (L - 1) / block: the last token is always computed. A block
 * gets its name when its last token is computed; from then on all sequences can
 * hit it. Response tokens are computed one tick after they are made, so the
 * last one never is.
 *
 * When a decoding sequence needs a block and all are held, the one admitted
 * last is preempted: it releases all its blocks and waits, before all others.
 * Its blocks are idle then and are evicted as needed; its generated tokens are
 * kept and become part of its prompt.
 *
 * Times are nanoseconds of the caller's clock, given to submit and run.
 */
#ifndef KVROUTE_SERVING_H
#define KVROUTE_SERVING_H

#include "engine_cache.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PREFILL_PIECE = 2048 };

struct serving;
struct sequence;

struct serving_facts {
	uint64_t blocks;         /* in memory */
	uint32_t block_tokens;
	uint32_t sequences;      /* admitted at a time */
	enum engine_eviction eviction;
	uint64_t seed;           /* of random eviction */
	double prefill_rate;     /* tokens a second */
	int64_t decode_ns;       /* for a token, above 0 */
	int64_t tick_ns;         /* no tick is shorter; it makes more tokens */
};
/* NULL: no memory. */
struct serving *serving_new(const struct serving_facts *facts);
/* Drops all sequences, too. */
void serving_free(struct serving *s);

struct sequence_facts {
	const uint32_t *tokens; /* of the prompt, then of the response */
	size_t n_prompt;    /* above 0 */
	size_t n_answer;    /* above 0 */
	uint64_t salt;      /* sequences share blocks only if equal */
	bool compute_all;   /* never reads the cache */
	void *owner;        /* yours */
};
/* Can it ever have room? */
bool serving_fits(const struct serving *s, size_t n_prompt, size_t n_answer);
/*
 * Adds one that fits; the next serving_run may admit it. The tokens may be
 * freed afterwards. NULL: no memory.
 */
struct sequence *serving_submit(struct serving *s,
    const struct sequence_facts *facts, int64_t now);
/* Frees it, finished or not. NULL: nothing. */
void serving_drop(struct serving *s, struct sequence *q);

/* Time of the next event; INT64_MAX: none. */
int64_t serving_due(const struct serving *s);
/* Runs all events until now. */
void serving_run(struct serving *s, int64_t now);

struct sequence_state {
	void *owner;
	uint64_t cached;    /* tokens it hit when it was first admitted */
	uint64_t generated; /* tokens of the response */
	bool finished;
};
/* The next one with an unreported change of state; NULL: no more. */
struct sequence *serving_news(struct serving *s, struct sequence_state *out);

struct serving_counts {
	uint64_t running; /* sequences */
	uint64_t waiting;
	uint64_t preempted;
	uint64_t finished;
	uint64_t queried; /* prompt tokens looked up in the cache */
	uint64_t hit;     /* of them found */
	uint64_t prompt_tokens; /* of finished prefills */
	uint64_t generated;     /* tokens */
	uint64_t blocks;
	uint64_t held;    /* blocks in use */
	uint64_t idle;    /* cached, not in use */
};
void serving_counts(const struct serving *s, struct serving_counts *out);
/* Recounts everything; false: the counts are inconsistent. */
bool serving_check(const struct serving *s);

#endif
