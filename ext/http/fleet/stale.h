/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stale.h - requests that run on a worker which was reset.
 *
 * A reset ends all bookings: the leases of before are no load of the new
 * incarnation. But their connections live on, if the engine has only dropped
 * its cache, and the proxy counts them. So the difference is load from outside:
 *
 *                      leases   connections   load from outside
 *   before the reset     10        10                0
 *   after                 0        10               10
 *   3 new, 4 ended        3         9                6
 *   all of before ended   8         8                0, for good
 *
 * Any process may compute it, so none can leave a wrong figure behind. The
 * ranks of a server share its connections evenly. A request that is not booked
 * counts, too, until all of before have ended.
 */
#ifndef KVROUTE_STALE_H
#define KVROUTE_STALE_H

#include "known.h"

/* Server i is about to be reset, all of its ranks or one. */
void stale_begin(struct fleet *f, size_t i, int64_t now);
/* Its worker has become another one, in whatever way. */
void stale_note(struct fleet *f, size_t i, int64_t now);
/*
 * The next server from i on that has a noted reset, or n_known: its connections
 * are to be booked. *place is 0 at first, and goes on.
 */
size_t stale_next(const struct fleet *f, size_t *place, size_t i);
/* Server i has so many connections; again, whenever that may have changed. */
void stale_book(struct fleet *f, size_t i, uint64_t conns, int64_t now);

#endif
