/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event.h - events of an engine's cache.
 */
#ifndef KVR_EVENT_H
#define KVR_EVENT_H

#include "event_batch.h"

/*
 * before: the stream before a reset. Returns whether it was applied, or the
 * first piece of it.
 */
bool event_take(struct kvr *k, uint32_t slot, const struct stream *before,
    const struct event_batch *b, const struct event_sum *sum,
    uint32_t outcome, int64_t now);
void event_lost(struct kvr *k, uint32_t slot, uint64_t next);
void event_off(struct kvr *k, uint32_t slot);

/* The index has been emptied. */
void event_emptied(struct kvr *k);

/* Gives up streams with callers that were silent for too long. */
void event_expire(struct kvr *k, int64_t now);

#endif
