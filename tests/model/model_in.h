/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_in.h - the model's internals, for model.c and model_look.c.
 */
#ifndef TESTS_MODEL_IN_H
#define TESTS_MODEL_IN_H

#include "model.h"

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
	UT_hash_handle hh;
};

struct model {
	int64_t ttl;
	int64_t clock;      /* -1: none yet */
	uint64_t clock_back;
	struct record *records;
	struct record *names;
	struct lease *leases;
	struct worker *workers;
};

void *model_take(size_t n);
struct worker *model_worker_find(const struct model *m, uint64_t id);
struct record *model_find(const struct model *m, uint64_t worker,
    uint64_t prefix);
bool model_live(const struct model *m, const struct record *r, int64_t time);
void model_drop(struct model *m, struct record *r);

#endif
