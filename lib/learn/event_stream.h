/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_stream.h - facts about an engine that its stream of events has taught.
 */
#ifndef KVR_EVENT_STREAM_H
#define KVR_EVENT_STREAM_H

#include "region.h"

/* The most blocks that count of one batch, and of a capacity. */
#define BATCH_MAX (UINT64_C(1) << 40)

/* Can the blocks of this worker be known by their names? */
bool event_wanted(const struct kvr *k, uint32_t slot);
/* Are they? If so, only events add blocks to it. Needs no lock. */
bool event_tracks(const struct kvr *k, uint32_t slot);

/* The stream of a new worker, and of one that is reset. */
void event_begin(struct kvr *k, uint32_t name);
void event_reset(struct kvr *k, uint32_t name);
/* Its caller lives until then, or until the next time; 0: it may. */
void event_until(struct kvr *k, uint32_t name, int64_t until);
/* The content of the cache is not known any more. */
void event_degrade(struct kvr *k, uint32_t slot);

/* The same; of a complete one the cause is noted: enum kvr_events_cause. */
void event_doubt(struct kvr *k, uint32_t slot, uint32_t cause);
/* Does it hold more than its cache can? Of a copy of its record. */
bool stream_surplus(const struct kvr *k, uint32_t slot,
    const struct stream *s);

/*
 * Scopes that prompts had, by their roots. Two may share a place: then both
 * count as seen if one is.
 */
void scope_note(struct kvr *k, uint64_t root);
bool scope_seen(const struct kvr *k, uint64_t root);

/* An entry that they have named leaves a full region. */
void event_crowded(struct kvr *k, uint32_t slot);

/* The same of a copy of its record. The cache is known to hold nothing; */
void stream_emptied(struct stream *s);
/* it is another engine, maybe with another cache. */
void stream_forget(struct kvr *k, struct stream *s);

/* Tokens that its cache holds, by counting; 0: not known. Needs no lock. */
uint64_t event_capacity(const struct kvr *k, uint32_t slot);
/* Tokens of its blocks; 0: not known. Needs no lock. */
uint32_t event_block(const struct kvr *k, uint32_t slot);
/* Blocks of the engine that it has now; 0: not known. Needs no lock. */
uint64_t event_held(const struct kvr *k, uint32_t slot);

/* Are all fields of streams possible? */
bool event_sound(const struct kvr *k);
/* Something may be lost; streams that are not possible are forgotten. */
void event_recover(struct kvr *k);

#endif
