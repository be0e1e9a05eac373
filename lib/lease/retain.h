/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * retain.h - which entries are removed, and when.
 */
#ifndef KVR_RETAIN_H
#define KVR_RETAIN_H

#include "index.h"

void retain_expire(struct kvr *k, int64_t now, uint32_t budget);
int64_t retain_next_due(const struct kvr *k);
bool retain_due(const struct kvr *k, int64_t now);
bool retain_drop(struct kvr *k, uint32_t slot, uint32_t most);
bool retain_reclaim_orphan(struct kvr *k);
void retain_make_room(struct kvr *k, int64_t now, uint32_t cells);
void retain_make_room_for(struct kvr *k, int64_t now, uint32_t cells,
    uint32_t asks);
void retain_prefetch(struct kvr *k, uint32_t slot, int64_t now);
void retain_evict_lost(struct kvr *k, uint32_t slot);
uint64_t retain_used(struct kvr *k, uint32_t slot,
    const struct kvr_prompt *p, uint32_t recorded);
bool retain_fills(const struct kvr *k, uint32_t slot, uint32_t prompt);
void retain_decide(struct kvr *k, uint32_t slot);
/* The events of a worker cannot be followed any more. */
void retain_degrade(struct kvr *k, uint32_t slot);
void retain_add_anonymous(struct kvr *k, uint32_t slot, uint64_t blocks,
    int64_t now);

#endif
