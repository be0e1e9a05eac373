/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trust.h - which capacity and block of a worker are used: given, learnt, none.
 */
#ifndef KVR_TRUST_H
#define KVR_TRUST_H

#include "region.h"

/* A report on the idle blocks that were predicted, in tokens. */
struct trust_sample {
	double hit, missed;             /* of all ages */
	double more;                    /* found though not on record */
	double young_hit, young_missed; /* at an age below trust_young() */
	double all;                     /* of the prompt; above 0 */
};
/* Younger ones would be there if the capacity were right. */
uint64_t trust_young(const struct kvr *k, uint32_t slot);
/* Returns whether the mode or the capacity may have changed. */
bool trust_judge(struct kvr *k, uint32_t slot,
    const struct trust_sample *sample);
/* A stream has begun: reports before it are no evidence. */
void trust_anew(struct kvr *k, uint32_t slot);
/* The given capacity has changed: it is believed again. */
void trust_told(struct kvr *k, uint32_t slot);
/* The mode in force: enum kvr_retain, never auto. */
uint8_t trust_mode(const struct kvr *k, uint32_t slot);
/* The capacity in tokens, given or counted by events; 0: unknown. */
uint64_t trust_told_room(const struct kvr *k, uint32_t slot);
/* The capacity in tokens, learnt or given; 0: unknown. The mode uses it. */
uint64_t trust_room(const struct kvr *k, uint32_t slot);
/* Whether it is learnt, by a worker that goes by it; needs no lock. */
bool trust_learnt(const struct kvr *k, uint32_t slot);
/*
 * Tokens as its engine counts them, for one as the index does. A told capacity
 * is in the former, a learnt one and the record are in the latter.
 */
double trust_ratio(const struct kvr *k, uint32_t slot);
/* Adds a part of a prompt, by both; see report.c. */
void trust_count(struct kvr *k, uint32_t slot, double tokens,
    double estimate);
/* Tokens of a block of its engine. */
uint64_t trust_block(const struct kvr *k, uint32_t slot);
/* How many of the first `tokens` of a prompt its cache can serve. */
uint64_t trust_usable(const struct kvr *k, uint32_t slot, uint64_t prompt,
    uint64_t tokens);
/* Are the learnt figures of all workers possible, and their modes right? */
bool trust_sane(const struct kvr *k);
/* Forgets figures that are not possible; modes must be decided anew. */
void trust_recover(struct kvr *k);

#endif
