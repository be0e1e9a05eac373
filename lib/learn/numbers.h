/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * numbers.h - the meaning of a missing number of cached tokens, and of a zero.
 */
#ifndef KVR_NUMBERS_H
#define KVR_NUMBERS_H

#include "region.h"

/* One answer with usage, to a request whose prompt was predicted to hit. */
struct numbers_answer {
	uint32_t kind;   /* endpoint and stream: below ANSWER_KINDS */
	bool number;     /* else it was absent */
	bool in_use;     /* predicted blocks were in use */
	uint32_t age;    /* if not: bin of the first predicted block */
};
void numbers_note(struct kvr *k, uint32_t slot,
    const struct numbers_answer *answer);
/* How much a missing number counts, as a zero: 0 to 1. */
double numbers_usual(const struct kvr *k, uint32_t slot, uint32_t kind);
/* The share of answers that had the numbers they should have: 0 to 1. */
double numbers_share(const struct kvr *k, uint32_t slot, uint32_t kind);

/* Tokens that must have been predicted, or a zero proves nothing. */
double numbers_least(const struct kvr *k, uint32_t slot);
/* A zero though more was predicted; and tokens found, in those of the index. */
void numbers_zero(struct kvr *k, uint32_t slot);
void numbers_above_zero(struct kvr *k, uint32_t slot, double found);
/* Whether the engine is believed to find nothing; needs no lock. */
bool numbers_nothing(const struct kvr *k, uint32_t slot);

#endif
