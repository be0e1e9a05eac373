/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_in.h - the model's internals, for model.c and model_look.c.
 */
#ifndef TESTS_MODEL_IN_H
#define TESTS_MODEL_IN_H

#include "model_events.h"

#include <stdlib.h>
#include <string.h>

void model_no_memory(void);

#define HASH_NONFATAL_OOM 1
#define uthash_nonfatal_oom(element) model_no_memory()
#include <uthash.h>

struct record_key {
	uint64_t worker;
	uint64_t prefix;
};

struct record {
	struct record_key key;
	uint64_t parent;    /* the prefix one block shorter; 0: none */
	struct record_key name;    /* worker and the library's sequence hash */
	uint32_t depth;     /* blocks before this one */
	uint32_t pins;
	int64_t stamp;
	bool confirmed;     /* the stamp counts */
	bool met;           /* by the walk over the library's entries */
	bool named;         /* part of the path of a name with copies */
	UT_hash_handle hh;
	UT_hash_handle by_name;
};

struct lease {
	uint64_t number;
	uint64_t owner;
	uint64_t worker;
	uint64_t prefill;
	int64_t opened;
	uint64_t *prefix;   /* [recorded] */
	uint32_t recorded;
	uint32_t private;
	uint32_t output;
	bool committed;
	bool unrecorded;
	UT_hash_handle hh;
};

struct worker {
	uint64_t id;
	uint64_t requests, prefill, output, private;
	uint64_t pinned;    /* records with pins */
	struct kvr_load outside[KVR_LOAD_SOURCES];
	struct stream *stream; /* NULL: there are no events */
	UT_hash_handle hh;
};

/* An engine's name of a block. */
struct named {
	uint64_t hash;
	uint64_t parent;    /* the name of the block before; 0: none */
	uint64_t *prefix;   /* [blocks]: its path */
	uint32_t blocks;
	uint32_t scope;
	uint32_t copies;    /* or, of full reports, a bit for each tier */
	bool known;         /* it has copies, or one behind it has */
	UT_hash_handle hh;
};

/* A block that was ever on record. */
struct seen_block {
	uint64_t sequence;  /* the library's name */
	uint64_t before;    /* of the block before; 0: none */
	uint64_t prefix;
	uint32_t depth;
	UT_hash_handle hh;
};

enum stream_copies { SAID_NOTHING, SAID_EACH, SAID_TIERS };

struct stream {
	uint32_t state;
	bool wanted;        /* the worker's blocks are to be known */
	bool tracked;       /* and are */
	bool vague;
	enum stream_copies copies;
	uint64_t next, first, last;
	uint64_t orphans;
	/* counts, in the engine's blocks */
	uint32_t block_tokens;
	bool uncounted;
	uint64_t held[2], most[2], evicted[2];
	struct named *names;
};

struct model {
	int64_t ttl;
	int64_t clock;      /* -1: none yet */
	uint64_t clock_back;
	struct record *records;
	struct record *names;
	struct lease *leases;
	struct worker *workers;
	struct seen_block *seen;
	bool events, full;
	uint64_t aliases;
	uint32_t block_size;
	struct stream streams[MODEL_STREAMS];
};

void *model_take(size_t n);
struct worker *model_worker_find(const struct model *m, uint64_t id);
struct record *model_find(const struct model *m, uint64_t worker,
    uint64_t prefix);
bool model_live(const struct model *m, const struct record *r, int64_t time);
void model_drop(struct model *m, struct record *r);
/* Confirms the i-th block of a path. */
void model_stamp(struct model *m, uint64_t worker,
    const struct model_path *path, uint32_t i, int64_t time);
void model_events_free(struct model *m);
/* A block is on record, by whatever worker. */
void model_events_seen(struct model *m, const struct model_path *path,
    uint32_t i);
/* The prefix that ends at a depth on the way up from a block; 0: none. */
uint64_t model_events_above(const struct model *m, uint64_t sequence,
    uint32_t depth);

#endif
