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
	return read_once(window_of(k, slot)->in_force) != KVR_WINDOW_FULL;
}

/* Whether the mode in force is learnt: window_learn.c. */
static inline bool
window_learns(const struct kvr *k, uint32_t slot)
{
	return read_once(window_of(k, slot)->mode) == KVR_WINDOW_LEARN;
}

/* Whether tails are in a memory of their own, as far as is known. */
static inline bool
window_apart(const struct window *w)
{
	uint8_t mode = read_once(w->mode);

	return mode == KVR_WINDOW_DUAL ||
	    (mode == KVR_WINDOW_LEARN && read_once(w->capacity) > 0);
}

void window_set(struct kvr *k, uint32_t slot, const struct kvr_worker *facts);
void window_get(const struct kvr *k, uint32_t slot, struct kvr_worker *facts);
void window_mend(struct kvr *k, uint32_t slot);

void window_stamp(struct kvr *k, uint32_t node, uint32_t slot, bool ends,
    int64_t now);

uint64_t window_running(const struct kvr *k, uint32_t slot);
uint32_t window_kept(const struct kvr *k, uint32_t slot, uint64_t prompt,
    uint64_t fresh);
void window_fill(struct kvr *k, uint32_t slot, uint64_t fresh);

#endif
