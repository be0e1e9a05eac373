/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window_mode.h - which mode of windows is in force: see window.c.
 */
#ifndef KVR_WINDOW_MODE_H
#define KVR_WINDOW_MODE_H

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

#endif
