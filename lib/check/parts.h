/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts.h - the parts of a region, and what becomes of each.
 */
#ifndef KVR_PARTS_H
#define KVR_PARTS_H

#include "region.h"

/* All that is disposable is emptied; the clock becomes this. */
void parts_empty(struct kvr *k, int64_t clock);
/* A writer died in a change: the index is emptied, and workers are mended. */
void parts_recover(struct kvr *k);
/* Can calls have left what the parts say, apart from what is counted? */
bool parts_sound(const struct kvr *k);
/* Mends what is not sound; nothing else is lost. */
void parts_mend(struct kvr *k);

#endif
