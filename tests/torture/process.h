/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * process.h - processes at work on one region, to be stopped and killed.
 *
 *   board       shared memory: the clock, a chair for each process, the region
 *   a process   observes, opens and ends leases, resets workers, ...; checks
 *               each result; exits with the failure
 *
 * No process sees the records of the others, yet each can derive which records
 * are impossible. Prompts are few: families share a beginning, all lengths are
 * in one table, families fork at lengths of that table, and a worker takes
 * only a limited part of a family (process_limit). So a match may return no
 * depth that is not in the table, and none beyond the limits.
 *
 *   trunk    0 ... 7 | 8 ... 23 | 24 ... 47 | 48 ...    process_length
 *   families     0, 1 fork here     4, 5 fork here
 *                        2, 3 fork here
 */
#ifndef TESTS_PROCESS_H
#define TESTS_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "kvroute.h"

enum {
	PROCESS_SEATS = 4,
	PROCESS_NAMES = 8,    /* workers */
	PROCESS_FAMILIES = 6, /* of prompts */
	PROCESS_LENGTHS = 8,  /* of prompts */
	PROCESS_LONGEST = 100,
	PROCESS_LEASES = 6,   /* of each process */
	PROCESS_TTL = 20000
};

/* State of one process. */
struct chair {
	_Atomic uint64_t owner;  /* of the leases of the process on this seat */
	_Atomic uint64_t calls;
	_Atomic uint64_t checked; /* overlaps checked */
	char wrong[160];
};

struct board {
	_Atomic int64_t clock;   /* a tick for each call */
	_Atomic int leave;       /* all shall end */
	size_t bytes;            /* of the region */
	char path[64];           /* of the region's file; "": it is below */
	struct chair seat[PROCESS_SEATS];
	_Alignas(64) unsigned char region[];
};

extern const uint32_t process_length[PROCESS_LENGTHS];

/*
 * A board with a new region and all workers, in a file that does not exist yet
 * or (NULL) on the board; NULL if that fails.
 */
struct board *process_board(size_t region_bytes, const char *path,
    struct kvr **k);
void process_board_end(struct board *b, struct kvr *k);
/* One more handle on its region. */
int process_attach(struct board *b, struct kvr **k);
/* Adds a worker of process_limit's by its number. */
int process_add(struct kvr *k, uint32_t name, uint64_t *id);
int process_find(const struct kvr *k, uint32_t name, uint64_t *id);
/* Blocks of a family that may be recorded for this worker. */
uint32_t process_limit(uint32_t name, uint32_t family);
/* Leading blocks that prompts of two families share. */
uint32_t process_common(uint32_t family, uint32_t other);
/* Makes the prompt; n <= PROCESS_LONGEST. */
int process_prompt(struct kvr_prompt *p, uint32_t family, uint32_t n);
/*
 * Matches the prompt of this many blocks of a family, which p holds, and
 * checks each overlap. `whole`: nothing was ever truncated, so each depth is
 * one of the table. Returns NULL, or the failure. *checked grows.
 */
const char *process_match(const struct kvr *k, struct kvr_prompt *p,
    uint32_t family, uint32_t n, int64_t now, bool whole, uint64_t *checked);
/* A process takes a seat and works until it is killed or all shall end. */
pid_t process_start(struct board *b, uint32_t seat, uint64_t owner,
    uint64_t seed, bool whole);
/*
 * Stops a process where it is: returns 1 in the middle of a change, 0
 * elsewhere, -1 if it ended by itself, with its *status. Aimed: tries until it
 * is in the middle of a change.
 */
int process_stop(const struct kvr *k, pid_t child, int *status);
int process_aim(const struct kvr *k, pid_t child, int *status);
/* Returns an odd number while a change is under way, or broken off. */
uint64_t process_version(const struct kvr *k);

#endif
