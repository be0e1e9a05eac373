/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window.h - what an engine keeps of layers with sliding windows.
 */
#ifndef KVR_WINDOW_H
#define KVR_WINDOW_H

#include "region.h"

static inline const struct window *
window_of(const struct kvr *k, uint32_t slot)
{
	return &slot_at(k, slot)->window;
}

static inline bool
window_on(const struct kvr *k, uint32_t slot)
{
	return read_once(window_of(k, slot)->mode) != KVR_WINDOW_FULL;
}

void window_set(struct kvr *k, uint32_t slot, const struct kvr_worker *facts);
void window_get(const struct kvr *k, uint32_t slot, struct kvr_worker *facts);
void window_mend(struct slot *s);

void window_stamp(struct kvr *k, uint32_t node, uint32_t slot, bool ends,
    int64_t now);

uint64_t window_running(const struct kvr *k, uint32_t slot);
uint32_t window_kept(const struct kvr *k, uint32_t slot, uint64_t prompt,
    uint64_t fresh);
void window_fill(struct kvr *k, uint32_t slot, uint64_t fresh);

#endif
