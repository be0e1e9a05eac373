/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock.h - the lock of a region: lock.c.
 */
#ifndef KVR_LOCK_H
#define KVR_LOCK_H

#include <stdbool.h>
#include <stdint.h>

struct kvr;
struct region;

/* The lock word. */
enum {
	LOCK_SEAT = 0x3ff,      /* number of the owner's seat, from 1 */
	LOCK_TURN_SHIFT = 10,   /* above it: the turn of that seat */
	LOCK_OWNER = 0x3fffffff /* both; 0: the lock is free */
};
#define LOCK_HUNGRY UINT32_C(0x40000000) /* sleepers go first */
#define LOCK_WAITERS UINT32_C(0x80000000) /* there may be sleepers */

#define LOCK_WAIT_NS INT64_C(30000000000) /* then a call gives up */
#define LOCK_BRIEF_NS INT64_C(100000000) /* two looks at its owner */

/* KVR_OK, KVR_EBUSY, or KVR_ESTATE in a child after fork. */
int region_lock(const struct kvr *k, bool wait);
void region_unlock(const struct kvr *k);
/* No handle may use the region. */
void region_lock_reset(struct region *r);
void region_pause(void);

/* CLOCK_MONOTONIC in nanoseconds, for waiting with a limit. */
int64_t lock_clock(void);

#endif
