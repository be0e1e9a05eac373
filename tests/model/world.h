/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * world.h - a library index and a model side by side.
 *
 *   world.c         makes one; turns an operation's prompt into a prompt of
 *                   the library and a path of the model; compares results
 *   world_check.c   compares everything that can be read
 *   steps.c         does the operations on prompts and leases
 *   steps_events.c  does those on events of engines about their caches
 *   steps_rest.c    does those on workers, time and the whole; runs them all
 */
#ifndef TESTS_WORLD_H
#define TESTS_WORLD_H

#include "model_events.h"
#include "ops.h"

struct world_name {
	uint64_t id;     /* the newest incarnation; may be removed */
	uint64_t old;    /* the one before; 0: none */
	char text[8];
};

struct world_slot {
	uint64_t lease;  /* open or ended; 0: none yet */
	uint32_t *tokens;
	size_t n;
	uint32_t scope;
};

/* The counts that kvr_stats must return. */
struct world_counts {
	uint64_t observes, lease_opens, lease_commits, lease_finishes;
	uint64_t lease_aborts, lease_reaps;
	uint64_t truncated;
};

struct world {
	const struct ops_config *c;
	struct ops_failure *failure;
	struct kvr *k;
	struct kvr_prompt *p;
	struct kvr_options options; /* in force */
	struct model *m;
	int64_t unit;         /* of time: the TTL, or 100 */
	int64_t now;
	int64_t call;         /* `now` of the current call */
	int64_t time;         /* and its time by the clock rule */
	struct world_name names[OPS_NAMES];
	struct world_slot slots[OPS_SLOTS];
	struct kvr_scope scopes[OPS_SCOPES];
	uint32_t *tokens;     /* of the current prompt */
	size_t n_tokens;
	uint32_t scope;
	uint64_t *prefix, *sequence;
	size_t room;          /* in tokens, prefix and sequence */
	struct model_path path;
	struct kvr_overlap found[OPS_NAMES]; /* result that a match must have */
	size_t n_found;
	struct kvr_request request;
	struct world_counts counts;
	uint64_t cells_free;  /* when nothing was recorded */
	uint64_t batches;     /* given: the digest of each is another */
	uint64_t *spelt;      /* the names of the blocks of a batch, */
	size_t spelt_room;    /* and local hashes */
	bool plain[OPS_NAMES]; /* this worker's events are not wanted now */
	bool blurred;         /* full region: the model only bounds loads */
};

int world_make(struct world *w, const struct ops_config *c,
    struct ops_failure *failure);
void world_end(struct world *w);

/* Notes a difference, printf-like, and returns -1. */
int world_fail(struct world *w, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Makes a library call; `rc` is its result. If `fail` names an allocation, that
 * one fails. If the call reports it, it is made again without failures:
 * nothing may have changed.
 */
#define WORLD_CALL(rc, fail, call) do {                              \
	world_arm(fail);                                             \
	(rc) = (call);                                               \
	if (world_disarm(fail) && (rc) == KVR_ENOMEM) {              \
		ops_totals.failed_allocations++;                     \
		(rc) = (call);                                       \
	}                                                            \
} while (0)
void world_arm(unsigned fail);
bool world_disarm(unsigned fail);

/* Moves the clock by the operation; sets call and time. */
void world_move_time(struct world *w, const struct op *o);
/* A call at `now`: sets call and time. */
void world_look_at_clock(struct world *w, int64_t now);
/* Room for n tokens; existing ones are kept. */
int world_room(struct world *w, size_t n);
/* The current prompt: the operation's, after the first `n` tokens. */
int world_prompt(struct world *w, const struct op *o, uint32_t scope,
    size_t n);
/* Sets the same prompt, resumed from the saved state of `cut` tokens. */
int world_resume(struct world *w, const struct op *o, size_t cut);
const struct kvr_request *world_request(struct world *w,
    const struct op *o);
uint64_t world_tokens_of(const struct world *w, uint64_t units);
uint64_t world_prompt_tokens(const struct world *w);

/* Matches and compares; found is then the result any match must have. */
int world_match(struct world *w, const struct op *o);
/*
 * Compares found and a choice from it, or the choice of kvr_route where
 * kvr_choose has no way to learn how much counts; returns the choice's result.
 */
int world_choose(struct world *w, const struct op *o,
    const struct kvr_request *r, struct kvr_decision *out);
int world_same_decision(struct world *w, const struct kvr_decision *got,
    const struct kvr_decision *want);
const struct kvr_overlap *world_found(const struct world *w, uint64_t id);
/*
 * Returns the tokens that count: an engine finds whole blocks of its own and
 * computes at least one token. This applies only to workers with a better
 * source than time.
 */
uint64_t world_usable(const struct world *w, const struct kvr_overlap *v);

/* A writing call may have ended old leases: only those, and in order. */
int world_reap(struct world *w);
/* Is called after every writing call: O(1). */
int world_glance(struct world *w);
/* kvr_check, loads and a walk over all entries; changes nothing. */
int world_check(struct world *w);
/* Checks counts and the next expiry after an expire left nothing due. */
int world_check_expired(struct world *w);
/* Ends all leases, removes all workers: all cells must be free again. */
int world_check_empty(struct world *w);

/* steps.c, for steps_rest.c: one operation, 0 if all was equal. */
int step_same(struct world *w, const char *call, int got, int want);
/* Returns the operation's worker, and the result of a call on it. */
uint64_t step_worker(const struct world *w, const struct op *o, int *want);
/* A writing call succeeded; counter may be NULL. */
int step_wrote(struct world *w, uint64_t *counter);
int step_match(struct world *w, const struct op *o);
int step_route(struct world *w, const struct op *o);
int step_candidates(struct world *w, const struct op *o);
int step_observe(struct world *w, const struct op *o);
int step_reserve(struct world *w, const struct op *o);
int step_reserve_on(struct world *w, const struct op *o);
int step_commit(struct world *w, const struct op *o);
int step_first_token(struct world *w, const struct op *o);
int step_extend(struct world *w, const struct op *o);
int step_output(struct world *w, const struct op *o);
int step_finish(struct world *w, const struct op *o);
int step_abort(struct world *w, const struct op *o);
int step_reap(struct world *w, const struct op *o);
int step_events(struct world *w, const struct op *o);
int step_events_anew(struct world *w, const struct op *o);
int step_events_lost(struct world *w, const struct op *o);
/* Compares all streams, and the place of the last prompt. */
int step_glance_events(struct world *w, const struct op *o);
/* Are the blocks of this worker to be known by its engine's names? */
bool step_has_events(const struct world *w, uint32_t name);

#endif
