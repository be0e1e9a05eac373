/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hold.h - blocks that a worker holds by the events of its engine.
 */
#ifndef KVR_HOLD_H
#define KVR_HOLD_H

#include "event_batch.h"

/*
 * Drops the entries of a worker, but not those that requests in flight have
 * pinned: they go with their requests. false: this was a part, call again.
 */
bool hold_nothing(struct kvr *k, uint32_t slot);

/* Under the lock: applies all events since the last that dropped all. */
void hold_apply(struct kvr *k, uint32_t slot, const struct event_batch *b,
    int64_t now);

#endif
