/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pick_pool.h - the pool of servers that both doors choose from: choices, ends
 * of calls, and their trace.
 */
#ifndef KVROUTE_PICK_POOL_H
#define KVROUTE_PICK_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kvroute_http.h"

enum { PICK_HOWS = KVH_NOT_SEEN + 1, PICK_LIST_MAX = 1024 };

struct pick_pool {
	struct kvh *kvh;
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
