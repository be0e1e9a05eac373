/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hold.h - blocks that a worker holds because its engine says so.
 */
#ifndef KVR_HOLD_H
#define KVR_HOLD_H

#include "event.h"

/* Can the blocks of this worker be known by their names? */
bool hold_wanted(const struct kvr *k, uint32_t slot);
/* Are they? Then nothing else makes it hold any. Needs no lock. */
bool hold_tracks(const struct kvr *k, uint32_t slot);

/*
 * Drops what is on record for a worker, but not what requests in flight have
 * pinned: that goes with them. false: this was a part, call again.
 */
bool hold_nothing(struct kvr *k, uint32_t slot);

/* Under the lock: applies all events since the last that dropped all. */
void hold_apply(struct kvr *k, uint32_t slot, const struct event_batch *b,
    int64_t now);

/* One was evicted, or cannot be kept: its stream is degraded. */
void hold_lose(struct kvr *k, uint32_t slot);

#endif
