/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alias_place.h - where in the index the block of an alias is.
 */
#ifndef KVR_ALIAS_PLACE_H
#define KVR_ALIAS_PLACE_H

#include "alias.h"

struct place {
	uint32_t node;
	uint32_t at; /* block of it, from 0 */
};

/* false: it is not on record. The alias keeps where it is. */
bool alias_place(struct kvr *k, uint32_t alias, uint32_t slot,
    struct place *out);
/* The same, and does its worker hold it? */
bool alias_held(struct kvr *k, uint32_t alias, uint32_t slot,
    struct place *out);
/*
 * Are all in their buckets, and are the counts right? children: zeroed, one for
 * each alias and one more.
 */
bool alias_sound(const struct kvr *k, uint32_t *children);
/*
 * Is each block on record that is not known to be gone, and does its worker
 * have it, if none of its entries left a full region? After alias_sound.
 * places: zeroed, one for each alias and one more.
 */
bool alias_places_sound(const struct kvr *k, uint64_t *places);

#endif
