/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trust.h - by which capacity and block a worker goes: told, learnt or none.
 */
#ifndef KVR_TRUST_H
#define KVR_TRUST_H

#include "region.h"

/* What a report says about the idle blocks that were predicted, in tokens. */
struct trust_sample {
	double hit, missed;             /* of all ages */
	double more;                    /* found though not on record */
	double young_hit, young_missed; /* of those below trust_young() */
	double all;                     /* of the prompt; above 0 */
};
/* Younger ones would be there if the capacity were right. */
uint64_t trust_young(const struct kvr *k, uint32_t slot);
/* Returns whether the mode or the capacity may have changed. */
bool trust_judge(struct kvr *k, uint32_t slot,
    const struct trust_sample *sample);
/* The told capacity has changed: it is believed again. */
void trust_told(struct kvr *k, uint32_t slot);
/* The mode in force: enum kvr_retain, never auto. */
uint8_t trust_mode(const struct kvr *k, uint32_t slot);
/* The capacity in tokens that was told, or counted by events; 0: none. */
uint64_t trust_told_room(const struct kvr *k, uint32_t slot);
/* The capacity in tokens, learnt or told; 0: none. The mode tells its use. */
uint64_t trust_room(const struct kvr *k, uint32_t slot);
/* Whether it is learnt, by a worker that goes by it; needs no lock. */
bool trust_learnt(const struct kvr *k, uint32_t slot);
/* Tokens of a block of its engine. */
uint64_t trust_block(const struct kvr *k, uint32_t slot);
/* Of the first `tokens` of a prompt, those that its cache can serve. */
uint64_t trust_usable(const struct kvr *k, uint32_t slot, uint64_t prompt,
    uint64_t tokens);
/* Whether what is learnt of all workers is possible, and their modes by it. */
bool trust_sane(const struct kvr *k);
/* Forgets what is not possible; modes must be decided anew. */
void trust_recover(struct kvr *k);

#endif
