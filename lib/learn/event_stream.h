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
/* Are they? Then nothing else makes it hold any. Needs no lock. */
bool event_tracks(const struct kvr *k, uint32_t slot);

/* The stream of a new worker, and of one that is reset. */
void event_begin(struct kvr *k, uint32_t name);
void event_reset(struct kvr *k, uint32_t name);
/* What the cache holds is not known any more. */
void event_degrade(struct kvr *k, uint32_t slot);

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

/* Is all that streams say possible? */
bool event_sound(const struct kvr *k);
/* Something may be lost; what is not possible is forgotten. */
void event_recover(struct kvr *k);

#endif
