/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_count.h - the counters of a pool, which need no lock: shared.h. */
#ifndef KVROUTE_POOL_COUNT_H
#define KVROUTE_POOL_COUNT_H

#include "pool_in.h"

static inline void
pool_count(struct kvh *h, enum count of, uint64_t n)
{
	shared_count(h->fleet.shared, of, n);
}

static inline void
pool_time(struct kvh *h, enum histogram_kind kind, int64_t ns)
{
	shared_time(h->fleet.shared, kind, ns > 0 ? (uint64_t)ns : 0);
}

#endif
