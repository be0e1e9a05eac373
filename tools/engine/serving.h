/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serving.h - what an engine does with its requests, in its own time.
 *
 *   submit -> waiting --room for its tokens--> prefill -> decode -> finished
 *               ^  FIFO, one at a time in prefill            |
 *               +--------------- preempted ------------------+
 *
 * Prefill takes one sequence at a time, in pieces of PREFILL_PIECE tokens that
 * take as long as the rate says. Whoever decodes gets a token each tick. Both
 * go on beside each other.
 *
 * The cache is of whole blocks; engine_cache.h has them, and says which leave.
 * A block's name is a hash of all tokens up to its end and of the salt. What a
 * sequence holds is its leading blocks that have names, pinned in the cache,
 * and then blocks of its own that are not computed or not full yet:
 *
 *   tokens      0 ............ computed ......... prompt ......... end
 *   blocks      [n0] [n1] [n2] [own] [own] [own]
 *                named, pinned   held without a name
 *
 *   named pinned + own <= blocks of the engine, always; idle ones of the
 *   cache leave as these grow
 *
 * On admission leading blocks that the cache has are hit, of a prompt of L
 * tokens at most (L - 1) / block: the last token is always computed. A block
 * gets its name when its last token is computed and can be hit from then on,
 * by others too. Tokens of the answer are computed one tick after they are
 * made, so the last one never is.
 *
 * When a sequence that decodes needs a block and all are held, the one that
 * was admitted last gives back all of its own and waits, before all others.
 * Its blocks are idle then, and leave as they are needed; what it made of its
 * answer is kept and is part of its prompt when it comes back.
 *
 * Times are nanoseconds on whatever clock the caller has; it is told to submit
 * and run.
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
	uint64_t blocks;         /* that there is memory for */
	uint32_t block_tokens;
	uint32_t sequences;      /* admitted at once */
	enum engine_eviction eviction;
	uint64_t seed;           /* of random eviction */
	double prefill_rate;     /* tokens a second */
	int64_t decode_ns;       /* for a token, above 0 */
	int64_t tick_ns;         /* no tick is shorter; it makes more tokens */
};
/* NULL: no memory. */
struct serving *serving_new(const struct serving_facts *facts);
/* All sequences are dropped with it. */
void serving_free(struct serving *s);

struct sequence_facts {
	const uint32_t *tokens; /* of the prompt, then what it will say */
	size_t n_prompt;    /* above 0 */
	size_t n_answer;    /* above 0 */
	uint64_t salt;      /* only equal ones share blocks */
	bool compute_all;   /* never reads the cache */
	void *owner;        /* yours */
};
/* Would it ever have room? */
bool serving_fits(const struct serving *s, size_t n_prompt, size_t n_answer);
/*
 * For one that fits; it may be admitted when serving_run is called next. The
 * tokens are not needed any more. NULL: no memory.
 */
struct sequence *serving_submit(struct serving *s,
    const struct sequence_facts *facts, int64_t now);
/* Finished or not: it is no more. NULL: nothing. */
void serving_drop(struct serving *s, struct sequence *q);

/* When something happens next; INT64_MAX: nothing will. */
int64_t serving_due(const struct serving *s);
/* All that happens until now. */
void serving_run(struct serving *s, int64_t now);

struct sequence_state {
	void *owner;
	uint64_t cached;    /* tokens it hit when it was first admitted */
	uint64_t generated; /* tokens of the answer */
	bool finished;
};
/* The next one whose state is new since it was told; NULL: no more. */
struct sequence *serving_news(struct serving *s, struct sequence_state *out);

struct serving_counts {
	uint64_t running; /* sequences */
	uint64_t waiting;
	uint64_t preempted;
	uint64_t finished;
	uint64_t queried; /* tokens of prompts looked for in the cache */
	uint64_t hit;     /* and found */
	uint64_t prompt_tokens; /* of prefills that are over */
	uint64_t generated;     /* tokens */
	uint64_t blocks;
	uint64_t held;    /* blocks in use */
	uint64_t idle;    /* cached, in nobody's use */
};
void serving_counts(const struct serving *s, struct serving_counts *out);
/* Counts everything again; false: something is not conserved. */
bool serving_check(const struct serving *s);

#endif
