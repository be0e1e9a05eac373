/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pick_pool.h - the pool of servers that both doors choose from: choices, calls
 * that wait for one, ends of calls, and their trace.
 *
 *	pick_choose  all full --> pick_wait --> in line, or false
 *	pick_turns   there is room, or its time is over --> turn --> pick_choose
 */
#ifndef KVROUTE_PICK_POOL_H
#define KVROUTE_PICK_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kvroute_http.h"

enum { PICK_HOWS = KVH_NOT_SEEN + 1, PICK_LIST_MAX = 1024 };

/* A call that may wait; all 0 at first, but for the first three. */
struct pick_waiter {
	struct kvh_call *call;
	void (*turn)(void *owner);    /* it is to choose again */
	void *owner;
	bool waits;
	struct pick_waiter *prev, *next;
};

struct pick_pool {
	struct kvh *kvh;
	struct pick_waiter *waiters;
	uint32_t waiting;             /* how many */
	bool turning;                 /* pick_turns() is at work */
	void (*wake)(void *context);  /* pick_turns() is due; or NULL */
	void *context;
	FILE *trace;                  /* NULL: none */
	uint32_t servers;             /* that the fleet has */
	uint64_t routed;
	uint64_t full, none, failed;  /* refusals, by their cause */
	uint64_t ended[PICK_HOWS];
};

/*
 * Allows the servers that a text names, with commas between, and no others; an
 * empty text allows none. `call` is a struct kvh_call.
 */
void pick_allow(void *call, const char *names, size_t n);
/* As kvh_pick(). */
int pick_choose(struct pick_pool *p, struct kvh_call *call,
    uint32_t *targets);
/* After that error of pick_choose(); false: refuse it. */
bool pick_wait(struct pick_pool *p, struct pick_waiter *w, int error);
/* It waits no longer, before its end; also if it does not wait. */
void pick_leave(struct pick_pool *p, struct pick_waiter *w);
/* Gives all calls that are to choose again their turn; after kvh_tick() too. */
void pick_turns(struct pick_pool *p);
/* Ends the call, as kvh_end(). */
void pick_end(struct pick_pool *p, struct kvh_call *call, uint32_t how,
    char *out, size_t room, size_t *written);

/* "a:1,b:2" of the call's targets; returns the length. */
size_t pick_list(struct kvh_call *call, uint32_t targets,
    char list[PICK_LIST_MAX]);

/* The answer to a client without a server, and when it may come again. */
struct pick_refusal {
	uint32_t status, retry_seconds;
	const char *body;
};
struct pick_refusal pick_refuse(struct pick_pool *p, struct kvh_call *call,
    int error);

#endif
