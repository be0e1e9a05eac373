/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * history.h - a history at random, by a plan, and how long its calls take.
 *
 * Requests with system prompts of which some part in the middle, chats that go
 * on or go back, leases that end later and in another order, workers that
 * restart, loads from outside, scrapes. A plan has the numbers of all of this;
 * the same plan makes the same calls.
 *
 * CPU time of the thread is counted, so what others do to the machine is not;
 * it includes what a call does without the lock, so it is more than the time
 * for which the lock is held. The first tenth is not counted: by then all pages
 * are mapped, and entries expire.
 */
#ifndef KVROUTE_HISTORY_H
#define KVROUTE_HISTORY_H

#include <kvroute.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct plan {
	uint32_t seed, requests;
	uint32_t workers;
	uint32_t memory;   /* MiB of the region */
	uint32_t ttl;      /* seconds */
	uint32_t second;   /* requests in a second of the region's clock */
	uint32_t cost;     /* enum kvr_cost */
	uint32_t retain;   /* enum kvr_retain */
	uint32_t capacity; /* of a worker, thousands of tokens; 0: not told */
	uint32_t window;   /* enum kvr_window */
	uint32_t engine;   /* tokens of its blocks; 0: not told */
	uint32_t reports;  /* 0: none, 1: as predicted, 2: any number */
	uint32_t sessions; /* 1: requests have an affinity */
	uint32_t systems, system; /* prompts, and blocks of each */
	uint32_t fill;     /* 1: each worker is sent all systems first */
	uint32_t chats;    /* at a time */
	uint32_t turns, turn; /* of a chat, and its blocks, at most */
	uint32_t parts;    /* chats that part in the middle, one in so many */
	uint32_t backs;    /* requests that go back; 0: none */
	uint32_t spread;   /* requests that go to any worker */
	uint32_t seldom;   /* requests between what is done now and then */
	uint32_t leases;   /* open at a time */
};

enum call { CALL_MATCH, CALL_ROUTE, CALL_OBSERVE, CALL_OPEN, CALL_OPEN_ON,
	CALL_COMMIT, CALL_FIRST, CALL_OUTPUT, CALL_EXTEND, CALL_FINISH,
	CALL_ABORT, CALL_EXPIRE, CALL_LOAD, CALL_SET, CALL_RESET, CALL_LIST,
	CALL_METRICS, CALLS };
extern const char *const call_names[CALLS];

/* CPU times of one kind of call, in nanoseconds, in ascending order. */
struct times {
	uint32_t *ns;
	size_t n, room;
};

struct history {
	struct times times[CALLS];
	uint64_t max_steps; /* kvr_stats(3), at its end */
	uint64_t decisions; /* checksum */
};

/*
 * Fills in the times, each call's best of so many trials. False: the region is
 * too small for the workers.
 */
bool history_run(const struct plan *p, uint32_t trials, struct history *h);
void history_free(struct history *h);
/* A permille of the times; 1000: the most. */
double history_rank(const struct times *t, size_t permille);
void history_print(const struct history *h, bool kv);

#endif
