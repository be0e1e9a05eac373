/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * alias.h - the engines' own names of the blocks that they hold.
 */
#ifndef KVR_ALIAS_H
#define KVR_ALIAS_H

#include "region.h"

/* Aliases are numbered from 1; 0 is no alias, and reads as zeros. */
static inline struct alias *
alias_at(const struct kvr *k, uint32_t i)
{
	return &k->aliases[i <= k->layout.aliases ? i : 0];
}

/* Which bucket those of this life and name are in. */
uint32_t alias_bucket(const struct kvr *k, uint32_t life, uint64_t name);

/* The life has ended that it was of. */
static inline bool
alias_dead(const struct kvr *k, const struct alias *a)
{
	return a->life != 0 && stream_at(k, a->worker)->life != a->life;
}

/* A number for a life that begins; 0: no number is left. */
uint32_t alias_life(struct kvr *k);

/* The life ends, of a stream or a copy of one. */
void alias_end(struct kvr *k, struct stream *s);

/* Can so many be added? */
bool alias_at_hand(const struct kvr *k, uint64_t need);
/*
 * Frees some aliases of lives that have ended. false: this was a part, and
 * `need` of them cannot be added yet, or the region is damaged; call again.
 */
bool alias_reclaim(struct kvr *k, uint64_t need);
/* After so many such calls all have been looked at. */
uint64_t alias_rounds(const struct kvr *k);

/* The alias of this name in this life, or 0. */
uint32_t alias_find(const struct kvr *k, uint32_t life, uint64_t name);
/*
 * Loads ahead the aliases that will be asked for: of the `left` names behind
 * this one, or before it if `by` is -1.
 */
void alias_prefetch(const struct kvr *k, uint32_t life, const uint64_t *name,
    size_t left, int by);
/*
 * Adds one with name, sequence, parent, node, life, worker and copies of
 * `like`. 0: all are taken.
 */
uint32_t alias_add(struct kvr *k, const struct alias *like);
/* Removes one without children. */
void alias_drop(struct kvr *k, uint32_t alias);

/* All are free, whatever the memory holds. Streams must have no life. */
void alias_empty(struct kvr *k);

#endif
