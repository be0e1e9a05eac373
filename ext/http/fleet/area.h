/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * area.h - the doors on one region share counters and the health of servers, in
 * the area that the region has for its callers (kvr_options.user_bytes).
 *
 *	| mark, boot | struct shared | blame | health[] | polled[] |
 *
 * All 0 is a beginning, so a new region needs no preparation: the first door
 * that opens it writes the mark, which names the layout by its version and its
 * size. Times are of one boot; the first door after another boot begins anew.
 * Doors that open together may both do so, and counts of the first are lost. A
 * door has all this in memory of its own where the region has no area, or where
 * the area is of another size and the caller's.
 *
 * Any process may write the area, so nothing in it is trusted for an index or a
 * length.
 */
#ifndef KVROUTE_AREA_H
#define KVROUTE_AREA_H

#include "known.h"

/* user_bytes of a region for so many workers. */
size_t area_bytes(uint32_t workers);
/*
 * Sets shared, polled, health and blame of f, whose kvr and options are set.
 * *own is to be freed, and may be NULL. theirs: the region is the caller's.
 * KVR_ENOMEM; KVR_EMISMATCH: the area has another layout, and the region is not
 * the caller's.
 */
int area_open(struct fleet *f, bool theirs, void **own);

#endif
