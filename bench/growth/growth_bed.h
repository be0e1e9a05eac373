/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth_bed.h - the common base of all curves of growth.h.
 *
 * PROMPTS are windows of one long row of random tokens: the prompt that
 * begins at token i shares no block with the one that begins at token i + 1,
 * so a million different prompts need no memory of their own and no time to
 * generate.
 *
 * TIME of the library is simulated: a microsecond passes with each write, and a
 * whole TTL when something is to become due.
 *
 * NOISE. Every trial does exactly the same, so for each single call the least
 * of all trials counts; a point of a curve is the mean of the middle half of
 * those, or a percentile. The cost of reading the clock is subtracted. Overlaps
 * are compared with what they must be: a bench that measured something else
 * ends with a message.
 */
#ifndef KVROUTE_GROWTH_BED_H
#define KVROUTE_GROWTH_BED_H

#include "progress.h"

#include <kvroute.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GROWTH_BLOCK = 16 }; /* tokens */

/* ---------------------------------------------------------------- a run --- */

/* One run of the tool: trials, format, progress. */
struct growth {
	uint32_t trials;
	bool kv;
	const char *curve; /* the name of the table being printed */
	bool first;        /* no table was printed yet */
	struct progress progress;
	uint64_t steps;    /* done, for the bar: one a trial of a point */
	uint64_t prompts;  /* measured so far */
};

/* After each trial of each point. */
void growth_step(struct growth *g);

/*
 * A table. `columns` is the header, tab separated. The first value of a line
 * is the size; negative ones are printed as a dash.
 */
void growth_table(struct growth *g, const char *curve, const char *columns);
void growth_line(const struct growth *g, const char *columns,
    const double *values);
/* A remark below a table. */
void growth_ratio(const struct growth *g, const char *what, double ratio);

/* --------------------------------------------------------------- series --- */

/* Times of the calls of one kind: the least of all trials of each. */
struct series {
	uint32_t *least;
	size_t n;        /* calls; those not made have no percentile */
};

void series_new(struct series *s, size_t n);
void series_free(struct series *s);
void series_put(struct series *s, size_t i, int64_t ns);
/* The value not exceeded by this share of the calls; -1 without calls. */
double series_rank(const struct series *s, double share);
/*
 * The mean of the middle half: as steady as the median, and finer than one
 * tick of the clock.
 */
double series_middle(const struct series *s);

/* ------------------------------------------------------------------ bed --- */

struct bed {
	struct growth *growth;
	struct kvr *k;
	uint64_t *ids;                /* [workers] */
	struct kvr_prompt *prompt;
	struct kvr_overlap *overlaps; /* [workers] */
	size_t n_overlaps;            /* of the latest match */
	uint64_t matches;
	uint64_t wrong;               /* matches with another overlap */
	uint32_t workers;
	uint32_t *tokens;             /* [n_tokens], random */
	size_t n_tokens;
	int64_t now;
	int64_t ttl_ns;
	int64_t clock_ns;             /* of reading the clock */
};

/* Determines the size of the region. */
struct bed_size {
	uint32_t workers;
	uint64_t blocks;      /* different ones */
	uint64_t holds;       /* (node, worker) pairs, and nodes */
	size_t tokens;        /* of the row */
	uint32_t most_blocks; /* of one prompt */
};

void bed_open(struct bed *b, struct growth *g, const struct bed_size *size);
/* Ends the program if anything was lost or was not found again. */
void bed_close(struct bed *b);
/* Forgets all prompts. */
void bed_clear(struct bed *b);
struct kvr_stats bed_stats(const struct bed *b);
/* Bytes in use for each (block, worker) pair. */
double bed_bytes(const struct bed *b);

/*
 * The steps of a request; each returns the nanoseconds it took. A prompt is
 * `blocks` blocks that begin at token `from` of the row; bed_hash_two appends
 * more from another place.
 */
int64_t bed_hash(struct bed *b, size_t from, uint32_t blocks);
int64_t bed_hash_two(struct bed *b, size_t from, uint32_t blocks,
    size_t then, uint32_t more);
/*
 * The longest overlap should be `want` blocks; bed_close checks. One in 10^5
 * may be less: of 10^5 children of one node two may share 32 bits of a hash.
 */
int64_t bed_match(struct bed *b, uint32_t want);
/* The cost function over all workers, on the overlaps of the latest match. */
int64_t bed_choose(struct bed *b);
int64_t bed_observe(struct bed *b, uint32_t worker);
/* The worker restarted: nothing that it held counts any more. */
int64_t bed_reset(struct bed *b, uint32_t worker);
/* Reclaims one due entry; *left: are there more? */
int64_t bed_expire(struct bed *b, bool *left);
/* All that is recorded becomes due. */
void bed_age(struct bed *b);

/* To time other calls: start = bed_clock(); ...; bed_since(b, start). */
int64_t bed_clock(void);
int64_t bed_since(const struct bed *b, int64_t start);
int64_t bed_tick(struct bed *b); /* the time of the next write */
/* Ends the program unless e is KVR_OK. */
void bed_must(int e, const char *what);

/* --------------------------------------------------------------- curves --- */

/* How many growth_steps a curve takes for each trial. */
enum {
	GROWTH_BLOCKS_STEPS = 7,
	GROWTH_WORKERS_STEPS = 7,
	GROWTH_PROMPT_STEPS = 11,
	GROWTH_SHARED_STEPS = 7,
	GROWTH_CHAT_STEPS = 4,
	GROWTH_FAN_STEPS = 5,
	GROWTH_STAIRS_STEPS = 24,
	GROWTH_PARTED_STEPS = 5
};
void growth_blocks(struct growth *g);
void growth_workers(struct growth *g);
void growth_prompt(struct growth *g);
void growth_shared(struct growth *g);
void growth_chat(struct growth *g);
void growth_fan(struct growth *g);
void growth_stairs(struct growth *g);
void growth_parted(struct growth *g);

#endif
