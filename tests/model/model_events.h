/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_events.h - events of engines about their blocks, in the model.
 *
 * Each worker's name has a stream, and the stream has one flat table of the
 * engine's names:
 *
 *   name    path        copies
 *   9c1f    A           1        the worker holds a prefix if it is part of
 *   04d2    A B         0        the path of a name that has copies, and no
 *   77ab    A B C       2        other; a name is known while it has copies,
 *                                or one behind it has: so 04d2 still is
 *
 * Nothing is trimmed or repaired: after each event the marks of all records are
 * made anew from the table.
 */
#ifndef TESTS_MODEL_EVENTS_H
#define TESTS_MODEL_EVENTS_H

#include "kvroute_events.h"
#include "model.h"

enum { MODEL_STREAMS = 24 };

struct model_event {
	uint32_t kind, tier;
	uint32_t block_tokens;  /* 0: absent */
	uint32_t from, to;      /* which of the engine's blocks of the path */
	bool contents;          /* tokens or local hashes are given */
	bool other_name;        /* the engine has another name for them */
};

/* All its events are of one path. */
struct model_batch {
	uint64_t seq, digest;
	bool full, past;
	const struct model_path *path;
	uint32_t scope;
	uint32_t each;          /* blocks of the path in one of the engine's */
	uint32_t room;          /* blocks of a prompt that are recorded */
	const struct model_event *event;
	uint32_t n;
};

struct model_result {
	uint32_t outcome;
	bool resets;            /* the worker gets another id first */
	bool empties;           /* unpinned entries are dropped first */
	bool applied;
	uint64_t orphans;
};

struct model_stream_stats {
	uint32_t state;
	bool tracked;           /* blocks are known by their names */
	bool vague;             /* it goes by a capacity, or did */
	uint64_t next, orphans, capacity, blocks;
};

/* The engine's name of the block that ends a prefix. */
uint64_t model_event_name(uint64_t prefix, bool other);

/*
 * There are events, and so many aliases, for block_size tokens each. full: the
 * library may hold less, and know fewer blocks behind that.
 */
void model_events_use(struct model *m, uint64_t aliases, uint32_t block_size,
    bool full);
/* This id is now that of a name, which has events if `wanted`. */
void model_events_worker(struct model *m, uint64_t id, uint32_t name,
    bool wanted);
/* The facts of the worker were set again. */
void model_events_retain(struct model *m, uint32_t name, bool wanted);
/* The worker was removed, and was reset by a caller. */
void model_events_begin(struct model *m, uint32_t name);
void model_events_reset(struct model *m, uint32_t name);
/* The index was emptied. */
void model_events_emptied(struct model *m);

/* Returns the outcome of a batch; nothing changes. */
void model_events_judge(const struct model *m, uint32_t name,
    const struct model_batch *b, struct model_result *r);
/* Follows r->resets of the worker, which is `id` now. */
void model_events_take(struct model *m, uint32_t name, uint64_t id,
    const struct model_batch *b, int64_t time, struct model_result *r);
/*
 * In a full region a block that requests have pinned becomes the youngest
 * whenever room is made, where events name it: so it may be at this time.
 */
void model_events_used(struct model *m, int64_t time);
void model_events_lost(struct model *m, uint32_t name, uint64_t next);
void model_events_off(struct model *m, uint32_t name);

/* Has the engine a name for the block that ends this prefix, with copies? */
bool model_events_has(const struct model *m, uint32_t name, uint64_t prefix);
void model_events_stats(const struct model *m, uint32_t name,
    struct model_stream_stats *out);
/* Is nothing else recorded for it? */
bool model_tracked(const struct model *m, uint64_t worker);
/* Returns the tokens of an engine's block by its events; 0: unknown. */
uint32_t model_event_block(const struct model *m, uint64_t worker);
/* Is the model unable to follow this worker's entries? */
bool model_vague(const struct model *m, uint64_t worker);
bool model_any_vague(const struct model *m);

#endif
