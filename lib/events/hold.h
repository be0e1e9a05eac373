/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hold.h - blocks that a worker holds because its engine says so.
 */
#ifndef KVR_HOLD_H
#define KVR_HOLD_H

#include "event_batch.h"

/*
 * Drops what is on record for a worker, but not what requests in flight have
 * pinned: that goes with them. false: this was a part, call again.
 */
bool hold_nothing(struct kvr *k, uint32_t slot);

/* Under the lock: applies all events since the last that dropped all. */
void hold_apply(struct kvr *k, uint32_t slot, const struct event_batch *b,
    int64_t now);

#endif
