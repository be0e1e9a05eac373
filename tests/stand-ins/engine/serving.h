/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * serving.h - an engine's requests, in simulated time.
 *
 * The engine is that of `kvroute-replay --simulate`: engine_model.h has its
 * steps, its memory and its queue. This module drives it for kvroute-engine,
 * which has tokens and clients that go away:
 *
 *   tokens --named--> submit --> waiting, prefill, decode --> news of progress
 *                                   engine_begin, engine_end
 *
 * A block's name is a hash of all tokens up to its end and of the salt. The
 * blocks of a response are named, too, except its last token's: no engine ever
 * computes that one.
 *
 * Times are nanoseconds of the caller's clock, given to submit and run. A step
 * ends when the clock has passed its end; the next one begins at that end, so
 * a late caller delays nothing.
 */
#ifndef KVROUTE_SERVING_H
#define KVROUTE_SERVING_H

#include "blocks.h"
#include "engine_cache.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct serving;
struct sequence;

struct serving_facts {
	uint64_t blocks;         /* in memory */
	uint32_t block_tokens;
	uint32_t sequences;      /* admitted at a time */
	uint32_t batch;          /* these four: as in engine_model.h */
	uint64_t attention;
	bool own_reads;
	bool preempt;
	enum engine_eviction eviction;
	uint64_t seed;           /* of random eviction */
	double prefill_rate;     /* tokens a second */
	int64_t decode_ns;       /* of a step without load, above 0 */
	int64_t tick_ns;         /* news of one sequence are so far apart */
	bool watched;            /* there are changes, see serving_change */
	bool tells_hits;         /* blocks are stored again when they are hit */
	bool has_copies;         /* so are blocks computed twice */
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
	const char *salt_text, *adapter; /* reason for it, or NULL */
	bool compute_all;   /* never reads the cache */
	void *owner;        /* yours */
};
/* Can it ever have room? */
bool serving_fits(const struct serving *s, size_t n_prompt, size_t n_answer);
/*
 * Adds one that fits; the next step may compute it. The tokens may be freed
 * afterwards. NULL: no memory.
 */
struct sequence *serving_submit(struct serving *s,
    const struct sequence_facts *facts, int64_t now);
/* Frees it, finished or not. NULL: nothing. */
void serving_drop(struct serving *s, struct sequence *q);

/* Time of the next event; INT64_MAX: none. */
int64_t serving_due(const struct serving *s);
/* Runs all events until now. False: no memory, and only free is valid. */
bool serving_run(struct serving *s, int64_t now);

struct sequence_state {
	void *owner;
	uint64_t cached;    /* tokens it hit when it was first admitted */
	uint64_t generated; /* tokens of the response */
	bool finished;
};
/* The next one with an unreported change of state; NULL: no more. */
struct sequence *serving_news(struct serving *s, struct sequence_state *out);

/*
 * A change of blocks, if they are watched, in order: a block is stored after
 * the one before it.
 *
 * A prompt whose blocks are all there has its last one computed again, because
 * a token must be computed. In vLLM this makes a copy: here it is stored again
 * and removed when its sequence ends or is preempted. It takes no room.
 */
struct serving_change {
	bool stored;               /* else removed */
	uint64_t name;
	const struct block *block; /* if stored; until the next call */
};
/* Takes out the next one; false: no more. */
bool serving_change(struct serving *s, struct serving_change *out);
/* Empties the cache, without changes. False: sequences run; nothing is done. */
bool serving_clear(struct serving *s);
/* Counts the tokens in leading cached blocks. UINT64_MAX: no memory. */
uint64_t serving_held(const struct serving *s,
    const struct sequence_facts *facts);

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
