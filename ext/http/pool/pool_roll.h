/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_roll.h - ids, states and requests of the servers, as the region has
 * them. It is read without the pool's lock, so that no choice waits for it:
 *
 *	lock, copy, unlock --> read the region --> lock, write, unlock
 *
 * Another process may reset, drain or remove a worker. So ids and states are
 * looked up again every IDS_NS, and once more when another door has changed
 * some, or when the library finds no worker among those known.
 */
#ifndef KVROUTE_POOL_ROLL_H
#define KVROUTE_POOL_ROLL_H

#include "pool_in.h"

/*
 * Looks ids and states up, if that is due. One thread does, and the others go
 * on with those of before.
 */
void servers_look(struct kvh *h, int64_t now);
/* They are due at once; with the pool's lock. */
void servers_due(struct kvh *h);
/* Counts the requests of all processes. */
void servers_count(struct kvh *h);

#endif
