/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * window_mode.h - the mode of sliding windows of a worker: see window.c.
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
	return read_once(window_of(k, slot)->mode) != KVR_WINDOW_FULL;
}

/* Whether the mode is one of enum kvr_window. */
static inline bool
window_sane(const struct kvr *k, uint32_t slot)
{
	return window_of(k, slot)->mode <= KVR_WINDOW_DUAL;
}

/* Whether tails are in a memory of their own. */
static inline bool
window_apart(const struct window *w)
{
	return read_once(w->mode) == KVR_WINDOW_DUAL;
}

#endif
