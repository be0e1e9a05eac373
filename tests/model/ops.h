/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ops.h - sequences of operations, run on the library and on the model.
 *
 * An operation is a small struct of numbers that means something in every
 * state (a lease is "the one in slot 3", whatever that is by now). Any
 * sequence can be cut anywhere and still runs, so a failing one can be shrunk.
 *
 *   bytes of a fuzzer --.
 *                        >-- ops_draw --> struct op [n] -- ops_run --> equal?
 *   random numbers -----'                     ^                |
 *                                             '--- ops_shrink -'
 */
#ifndef TESTS_OPS_H
#define TESTS_OPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "kvroute.h"

enum {
	OPS_NAMES = 24,    /* workers by name, at most */
	OPS_SLOTS = 16,    /* leases remembered */
	OPS_SEGMENTS = 5,  /* of a prompt */
	OPS_SCOPES = 4
};

enum op_kind {
	OP_OBSERVE, OP_MATCH, OP_ROUTE, OP_CANDIDATES,
	OP_RESERVE, OP_RESERVE_ON, OP_COMMIT, OP_FIRST_TOKEN, OP_EXTEND,
	OP_OUTPUT, OP_FINISH, OP_ABORT, OP_REAP,
	OP_EXPIRE, OP_ADD, OP_REMOVE, OP_RESET, OP_SET, OP_LOAD,
	OP_CLEAR, OP_BAD_CLOCK, OP_CHECK,
	OP_EVENTS, OP_EVENTS_ANEW, OP_EVENTS_LOST,
	OP_KINDS
};

/* How the clock moves before an operation. */
enum op_time {
	TIME_STANDS, TIME_TICK, TIME_QUARTER, TIME_JUST_BEFORE, TIME_TTL,
	TIME_JUST_AFTER, TIME_LONG, TIME_LEAP,
	TIME_BACK,       /* this call only: half a TTL back */
	TIME_ZERO,       /* this call only: at 0 */
	TIME_STAYS_BACK, /* this call and those after */
	TIME_KINDS
};

struct op_segment {
	uint8_t symbol;
	uint16_t blocks;
};

struct op {
	uint8_t kind;     /* enum op_kind */
	uint8_t time;     /* enum op_time */
	uint8_t worker;   /* a name's number */
	uint8_t slot;     /* a lease's; of OP_LOAD: the source */
	uint8_t arg;      /* by kind */
	uint8_t variant;  /* of the request; see world_request */
	uint8_t fail;     /* the allocation that fails; 0: none */
	uint8_t scope;
	uint8_t tail;     /* tokens after the last segment */
	uint8_t segments;
	struct op_segment segment[OPS_SEGMENTS];
};

/* The region's options, and the contents of prompts. */
struct ops_config {
	const char *name;
	uint32_t block_size;
	uint32_t unit, hash, eagle;
	int64_t ttl;
	int64_t lease_limit;        /* 0: never */
	uint64_t region_bytes;
	uint32_t max_prompt_blocks; /* KVR_AUTO: the library's */
	uint32_t workers;           /* names in use */
	uint32_t alphabet;          /* kinds of blocks */
	uint32_t scopes;
	uint32_t longest;  /* 0: runs of a few blocks; 1: > 16; 2: > 256; 3 */
	uint32_t policy;   /* 0: balanced, 1: Dynamo's, 2: with thresholds */
	uint32_t events;   /* blocks of the index in one of the engines' */
	uint32_t aliases;  /* for events; 0: more than are needed */
	bool tiers;        /* engines report blocks already present */
	bool full;         /* the region is too small: it may hold less */
	bool no_removal;   /* workers stay as they are */
	bool calm;         /* long jumps of time are rare */
	int64_t skew;      /* makes the model wrong: its TTL is longer */
};

struct ops_source {
	const uint8_t *data; /* NULL: random */
	size_t size;
	size_t at;
	uint64_t state;
};

void ops_from_seed(struct ops_source *s, uint64_t seed);
void ops_from_bytes(struct ops_source *s, const uint8_t *data, size_t size);
/* A number below n; 0 when the bytes are used up. */
uint32_t ops_pick(struct ops_source *s, uint32_t n);

/* Up to `max` operations; with `failing`, some with a failing allocation. */
size_t ops_draw(struct ops_source *s, const struct ops_config *c,
    bool failing, struct op *ops, size_t max);
void ops_config_draw(struct ops_source *s, struct ops_config *c);
void ops_print(FILE *to, const struct op *o);
void ops_config_print(FILE *to, const struct ops_config *c);

struct ops_failure {
	size_t at;        /* which operation; n: the last check */
	char text[200];
};

/*
 * Runs on both and compares; kvr_check and all counts every `every`
 * operations and at the end. 0 if all was equal.
 */
int ops_run(const struct ops_config *c, const struct op *ops, size_t n,
    size_t every, struct ops_failure *failure);
/* Shortens a failing sequence in place; returns its new length. */
size_t ops_shrink(const struct ops_config *c, struct op *ops, size_t n,
    struct ops_failure *failure);
/* Shrinks, prints to stderr, and ends with the failure of the shortest. */
void ops_report(const struct ops_config *c, struct op *ops, size_t n,
    struct ops_failure *failure);

/* Operations run, decisions and overlaps compared, since the start. */
struct ops_totals {
	uint64_t ops, matches, decisions, walks, failed_allocations;
	uint64_t splits, merges, extensions, expired, voided, evicted, reaped;
	/* batches applied, workers tracked after one, and degraded */
	uint64_t batches, tracked, degraded;
};
extern struct ops_totals ops_totals;

#endif
