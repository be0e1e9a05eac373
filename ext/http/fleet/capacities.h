/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capacities.h - capacity=auto: engines are asked for the capacity of their KV
 * caches.
 *
 *   capacities_next, once a second      each server: is it due?
 *     due --> errand --> probe.h --> the worker's facts
 *              ^            |
 *              +-- a path --+
 *
 * One process asks; the others read the region. At most AT_ONCE errands of an
 * upstream are open; no request waits for one.
 *
 * A server is due at the start; after a failure, later each time; after its
 * worker was reset, or a request to it failed in any process, since it may have
 * restarted with another capacity; and now and then. A capacity is kept until
 * another is read, or the engine answers that it has none; one that is down has
 * its last capacity.
 */
#ifndef KVROUTE_CAPACITIES_H
#define KVROUTE_CAPACITIES_H

#include "errand.h"

enum { CAPACITIES_TICK_MS = 1000 }; /* from one look to the next */

/* For a server with capacity=auto. NULL: no memory. */
struct ask *capacities_new(struct fleet *f, const struct known *known,
    int64_t now);
struct errand *capacities_errand(struct ask *ask);
/* The proxy has closed its connection. NULL is accepted. */
void capacities_free(struct ask *ask);

/*
 * Goes on at server *i, which is 0 at first, and writes facts that are known;
 * returns the next errand that is to be made, or NULL: none is. room: may one
 * more be begun?
 */
struct errand *capacities_next(struct fleet *f, size_t *i, bool room,
    int64_t now);
/* A request failed at the server of this key. */
void capacities_trouble(struct fleet *f, uint64_t key);

#endif
