/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * parts.h - the parts of a region, and the calls on all of them.
 */
#ifndef KVR_PARTS_H
#define KVR_PARTS_H

#include "region.h"

/* A row of the table in parts.c; NULL: there is nothing to do. */
struct part {
	void (*empty)(struct kvr *k);
	void (*recover)(struct kvr *k);
	bool (*sound)(const struct kvr *k);
	void (*mend)(struct kvr *k);
};
enum { PARTS = 13 };
extern const struct part parts[PARTS];

/* All that is disposable is emptied; the clock becomes this. */
void parts_empty(struct kvr *k, int64_t clock);
/* A writer died in a change: the index is emptied, and workers are mended. */
void parts_recover(struct kvr *k);
/* Can calls have left all parts as they are, apart from counts? */
bool parts_sound(const struct kvr *k);
/* Mends parts that are not sound; nothing else is lost. */
void parts_mend(struct kvr *k);

#endif
