/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shadow.h - the blocks of engines, one by one, the slow and obvious way.
 *
 * The reference for retain.c, entry.c and lease.c where a worker goes by
 * capacity or feedback. There is no tree, no run, no list: each worker has
 * one flat array of blocks. A block is the text up to its end, with its number
 * of pins, its stamp, and its place in the order of all releases. Eviction
 * searches all of them.
 */
#ifndef TESTS_SHADOW_H
#define TESTS_SHADOW_H

#include <stdbool.h>
#include <stdint.h>

#include "kvroute.h"

enum {
	SHADOW_TEXT = 64,     /* tokens of a prompt, at most; one letter each */
	SHADOW_BLOCKS = 4096, /* of one worker */
	SHADOW_WORKERS = 4,
	SHADOW_LEASES = 8
};

struct shadow_block {
	char text[SHADOW_TEXT];
	uint32_t length;   /* of the text; 0: blocks of an output */
	uint32_t nameless; /* number of blocks of the output */
	uint32_t pins;
	bool listed;       /* confirmed, and not due yet */
	int64_t stamp;
	bool used;         /* stamped since it was pinned */
	uint64_t released; /* place in the order of releases; if not used */
};

struct shadow_worker {
	struct shadow_block block[SHADOW_BLOCKS];
	uint32_t blocks;
	uint32_t retain, eviction;
	bool contradicted; /* reports contradict the capacity */
	uint64_t capacity; /* tokens */
	uint64_t output, ahead;
	double answer;     /* mean tokens of one output */
	uint64_t answers;
	uint32_t life_of;  /* which incarnation */
};

struct shadow_lease {
	bool open, committed;
	uint32_t worker, life_of;
	uint64_t owner;
	uint64_t opened;   /* place in the order of openings */
	char text[SHADOW_TEXT];
	uint32_t length;   /* of the text now, */
	uint32_t asked;    /* and when it was opened */
	uint32_t output, ahead;
};

struct shadow {
	uint32_t block_size;
	int64_t ttl, idle_limit, now;
	uint64_t turn;
	struct shadow_worker worker[SHADOW_WORKERS];
	struct shadow_lease lease[SHADOW_LEASES];
};

void shadow_begin(struct shadow *s, uint32_t block_size, int64_t ttl,
    int64_t idle_limit);
/* Must be called first at each time: reclaims due entries. */
void shadow_expire(struct shadow *s, int64_t now);
void shadow_facts(struct shadow *s, uint32_t worker, uint32_t retain,
    uint64_t capacity, uint32_t eviction);
/* If a worker with KVR_RETAIN_AUTO has a capacity: whether it is believed. */
void shadow_believe(struct shadow *s, uint32_t worker, bool capacity);
void shadow_reset(struct shadow *s, uint32_t worker);
void shadow_observe(struct shadow *s, uint32_t worker, const char *text);
void shadow_reserve(struct shadow *s, uint32_t lease, uint32_t worker,
    const char *text, uint64_t owner);
void shadow_commit(struct shadow *s, uint32_t lease);
/* The text with more at its end. */
void shadow_extend(struct shadow *s, uint32_t lease, const char *text);
void shadow_output(struct shadow *s, uint32_t lease, uint32_t blocks);
/* completion: tokens of the output, 0: not reported */
void shadow_finish(struct shadow *s, uint32_t lease, uint64_t completion);
void shadow_abort(struct shadow *s, uint32_t lease);
/* Returns how many it ended. */
uint32_t shadow_reap(struct shadow *s, uint64_t owner);

/* Leading blocks of the text that are there. */
uint32_t shadow_overlap(const struct shadow *s, uint32_t worker,
    const char *text);
uint64_t shadow_held(const struct shadow *s, uint32_t worker);
uint64_t shadow_active(const struct shadow *s, uint32_t worker);
uint64_t shadow_nameless(const struct shadow *s, uint32_t worker);

/*
 * For a cache that evicts whole leaves the shadow cannot derive which blocks
 * make a leaf. It gets the evicted ones, by index in its array, and checks:
 * the worker was over capacity, and not further than needed; no block was
 * pinned, and none used later than an idle one that stayed.
 */
bool shadow_leaves(struct shadow *s, uint32_t worker, const bool *left);

#endif
