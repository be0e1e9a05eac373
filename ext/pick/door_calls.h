/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * door_calls.h - open calls of the JSON door, by an ID that clients cannot
 * guess, and in the order in which they were heard of.
 *
 *   "0000002a" "9f0c..."     place in the table, 64 random bits
 */
#ifndef KVROUTE_DOOR_CALLS_H
#define KVROUTE_DOOR_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pick_pool.h"

struct event;
struct evhttp_request;

enum { CALL_ID_LENGTH = 24, CALLS_MAX = 1 << 20 };

struct door_call {
	uint64_t secret;
	uint32_t place;
	bool responded;               /* kvh_response() was called */
	struct kvh_call *call;
	struct pick_waiter waiter;
	struct evhttp_request *request;  /* is answered when it has waited */
	struct event *closed;         /* its client has left meanwhile */
	void *owner;
	int64_t heard;                /* seconds */
	uint32_t before, after;       /* places, in order of `heard`; + 1 */
};

struct door_calls {
	struct door_call **calls;     /* NULL: the place is free */
	size_t room;
	uint32_t n, first, last;      /* places + 1; 0: none */
	uint32_t *idle;               /* free places */
	size_t n_idle;
};

/* NULL: no memory, or there are CALLS_MAX. */
struct door_call *calls_add(struct door_calls *t, int64_t now);
/* NULL: there is no such call. The call counts as heard of now. */
struct door_call *calls_find(struct door_calls *t, const char *id, size_t n,
    int64_t now);
/* The call that was not heard of for longest; NULL: none. */
struct door_call *calls_oldest(const struct door_calls *t);
void calls_remove(struct door_calls *t, struct door_call *c);
void calls_id(const struct door_call *c, char id[CALL_ID_LENGTH + 1]);
/* All calls were removed. */
void calls_free(struct door_calls *t);

#endif
