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

/*
 * Without the lock: hashes the blocks of the events. KVR_ENOMEM; and
 * KVR_EMISMATCH: a scope has parts that the rule does not support.
 */
int hold_prepare(const struct kvr *k, struct event_batch *b);
void hold_release(struct event_batch *b);
/* Under the lock: applies all events since the last that dropped all. */
void hold_apply(struct kvr *k, uint32_t slot, const struct event_batch *b,
    int64_t now);

/* One was evicted, or cannot be kept: its stream is degraded. */
void hold_lose(struct kvr *k, uint32_t slot);

/*
 * Is each block on record that is not known to be gone? After alias_sound.
 * places: zeroed, one for each alias and one more.
 */
bool hold_sound(const struct kvr *k, uint64_t *places);

#endif
