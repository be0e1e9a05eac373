/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model.h - an index that is obviously right.
 *
 * It keeps one record for each (worker, prefix of a prompt up to and including
 * a block) in a hash table, and nothing else: no tree, no runs, no order, no
 * invariant between a block and the one before it.
 *
 *   prompt  A B C   to w1         prompt  A B D   reserved on w2
 *
 *   (w1, A)    stamp 5            (w2, A)    no stamp, 1 pin
 *   (w1, AB)   stamp 5            (w2, AB)   no stamp, 1 pin
 *   (w1, ABC)  stamp 5            (w2, ABD)  no stamp, 1 pin
 *
 * A record is live while it is pinned, or confirmed and younger than the TTL.
 * A worker's overlap is the number of leading blocks whose records are all
 * live. The library's results are compared with this.
 *
 * A prefix is named by a digest of its own tokens that the model makes. The
 * library's sequence hash is carried along only to identify the library's
 * entries. The model never calls the library, and exits when there is no
 * memory: it is not under test.
 */
#ifndef TESTS_MODEL_H
#define TESTS_MODEL_H

#include <stdbool.h>

#include "kvroute.h"
#include "kvroute_replica.h"

/* The prefixes of one prompt: by the model's name and by the library's. */
struct model_path {
	const uint64_t *prefix;
	const uint64_t *sequence;
	uint32_t blocks;
	uint32_t first; /* of a resumed prompt: those before it are unknown */
};

/* The bookings of a request besides its path. */
struct model_booking {
	uint64_t lease;
	uint64_t owner;
	uint64_t prefill;  /* tokens */
	uint32_t recorded; /* leading blocks of the path that are pinned */
	uint32_t private;  /* blocks that are load and nothing else */
	bool unrecorded;   /* nothing is recorded, now or later */
};

struct model_load {
	uint64_t requests;
	uint64_t prefill_tokens;
	uint64_t active_blocks; /* pinned blocks */
	uint64_t output_blocks; /* and private ones */
};

struct model;

struct model *model_new(int64_t ttl);
void model_free(struct model *m);
/* A prefix one token longer. The empty prefix of a scope is its number. */
uint64_t model_prefix(uint64_t prefix, uint32_t token);

/* The clock: KVR_ECLOCK, or 0 and the time of a call. */
int model_time(const struct model *m, int64_t now, int64_t *time);
/* A writing call was made at `now`. */
void model_advance(struct model *m, int64_t now);
int64_t model_clock(const struct model *m);
uint64_t model_clock_back(const struct model *m);

void model_worker_add(struct model *m, uint64_t id);
/* Removed or reset: all its records are void. */
void model_worker_void(struct model *m, uint64_t id);
bool model_worker_known(const struct model *m, uint64_t id);
/* Replaces one source's report of the worker's load. */
void model_set_load(struct model *m, uint64_t id, uint32_t source,
    const struct kvr_load *load);
void model_clear(struct model *m);

/* Leading blocks that are live, and that are pinned. */
uint32_t model_overlap(const struct model *m, uint64_t worker,
    const struct model_path *path, int64_t time, uint32_t *active);
/* Returns the age of the deepest overlap; 0 while pinned, -1 without any. */
int64_t model_age(const struct model *m, uint64_t worker,
    const struct model_path *path, int64_t time);
void model_load(const struct model *m, uint64_t worker,
    struct model_load *out);

void model_observe(struct model *m, uint64_t worker,
    const struct model_path *path, uint32_t recorded, int64_t time);
void model_reserve(struct model *m, uint64_t worker,
    const struct model_path *path, const struct model_booking *b,
    int64_t time);

/* Leases: KVR_OK, KVR_ELEASE or KVR_EMISMATCH. */
int model_commit(struct model *m, uint64_t lease, int64_t time);
int model_first_token(struct model *m, uint64_t lease, int64_t time);
/* `room` is how many blocks of the longer prompt can be recorded. */
int model_extend(struct model *m, uint64_t lease,
    const struct model_path *path, uint32_t room, int64_t time);
int model_output(struct model *m, uint64_t lease, uint32_t blocks);
int model_finish(struct model *m, uint64_t lease, int64_t time);
int model_abort(struct model *m, uint64_t lease);
/* Ends all of an owner's leases; returns how many there were. */
uint32_t model_reap_owner(struct model *m, uint64_t owner, int64_t time);
/*
 * Ends the n oldest leases, which must be as old as the limit. True if they
 * were, and if some were ended or none was that old.
 */
bool model_reap_old(struct model *m, uint64_t n, int64_t limit, int64_t time);
bool model_lease_open(const struct model *m, uint64_t lease);
/* It is open, and was not committed. */
bool model_lease_fresh(const struct model *m, uint64_t lease);
/* Would an extension to this many blocks record more than it has? */
bool model_lease_grows(const struct model *m, uint64_t lease,
    const struct model_path *path, uint32_t upto);
uint64_t model_leases(const struct model *m);
/* Open leases of workers that were removed or reset. */
uint64_t model_void_leases(const struct model *m);

/* Forgets the records that are not live. */
void model_sweep(struct model *m, int64_t time);
/* Live (block, worker) pairs, of one worker or (0) of all. */
uint64_t model_held(const struct model *m, uint64_t worker, int64_t time);
/* Distinct prefixes that are live on some worker. */
uint64_t model_blocks(struct model *m, int64_t time);
/* When the next record becomes due; INT64_MAX: never. */
int64_t model_next_due(const struct model *m);
bool model_any_pin(const struct model *m);

/*
 * Compares a walk over the library's entries with the records: begin, each
 * entry, end. Returns NULL while all is equal, else the difference.
 */
void model_entries_begin(struct model *m, int64_t time);
const char *model_entry(struct model *m, const struct kvr_entry *e,
    int64_t time);
const char *model_entries_end(struct model *m, int64_t time);

#endif
