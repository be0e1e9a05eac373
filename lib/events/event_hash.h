/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_hash.h - the hashes of the blocks that events store.
 */
#ifndef KVR_EVENT_HASH_H
#define KVR_EVENT_HASH_H

#include "event_batch.h"

/* Blocks of the index; the event has their contents. */
uint64_t event_blocks_given(const struct kvr *k, const struct kvr_event *e);
/* Names that the event may add. */
uint64_t event_aliases(const struct kvr *k, const struct kvr_event *e);

/*
 * Without the lock: hashes the blocks of the events. KVR_ENOMEM; KVR_EMISMATCH:
 * a scope has parts that the rule does not support.
 */
int event_hash(const struct kvr *k, struct event_batch *b);
void event_hash_free(struct event_batch *b);

#endif
