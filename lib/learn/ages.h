/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ages.h - how old the blocks of a request's overlap were when it came.
 */
#ifndef KVR_AGES_H
#define KVR_AGES_H

#include "region.h"

/* When a lease is opened; recorded: blocks of its path. */
void ages_note(const struct kvr *k, struct claim *c, const struct lease *l,
    uint32_t recorded);
/* The age of a block, as a bin (survival.h), and where its part ends. */
uint32_t ages_of(const struct claim *c, uint64_t block);
uint32_t ages_end(const struct claim *c, uint64_t block);

#endif
