/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loads.h - poll=TIME: engines report how loaded they are.
 *
 *   loads_look    lead? --> each server: is it due?
 *                   |         due --> errand --> engine_load.h --> surplus.h
 *                   |                                                  |
 *                   |    its load in the region, of a source of its own <--+
 *                   +--> no: another process does that
 *
 * One process does this for all: the leader, as shared memory has it by pid and
 * beat. When it has died, leaves, or has not beaten for LEAD_NS, the next one
 * that looks takes its place, and goes on with the record of each worker. Only
 * the leader writes; one that was stopped and goes on sees that it leads no
 * longer.
 *
 * A poll is good for STALE polls. After them the load that was set ends, and it
 * is unknown until the engine answers again. A worker that is not known, since
 * it is new or was reset, loses at once the load that was set before, maybe by
 * processes that are gone. With poll=off a leader is made, too, does that, and
 * rests.
 *
 * A place in shared memory is that of an id, and free again once that worker is
 * gone: servers may come and go.
 */
#ifndef KVROUTE_LOADS_H
#define KVROUTE_LOADS_H

#include "errand.h"

struct status_load;

/* Makes the polls of a listed server. NULL: no memory. */
struct poll *loads_new(struct fleet *f, const struct known *known, int64_t now);
struct errand *loads_errand(struct poll *poll);
/* The proxy has closed its connection. NULL is accepted. */
void loads_free(struct poll *poll);

enum loads_role {
	LOADS_FOLLOW,   /* no leader: errands that are open are to be left */
	LOADS_LEAD,
	LOADS_REST      /* polls are off, and nothing is left to be ended */
};
/* To be called again after loads_tick_ms. */
enum loads_role loads_look(struct fleet *f, int64_t now);
uint64_t loads_tick_ms(const struct fleet *f);
/*
 * For the leader: goes on at server *i, which is 0 at first; returns the next
 * errand that is to be made, or NULL. room: may one more be begun?
 */
struct errand *loads_next(struct fleet *f, size_t *i, bool room, int64_t now);
/* This process leads no longer. */
void loads_leave(struct fleet *f);

/* All that is known, at most n_workers of them. */
size_t loads_list(const struct fleet *f, struct status_load *out,
    int64_t now);

#endif
