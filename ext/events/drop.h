/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drop.h - which events count: those of one group of full attention, in tiers
 * of the worker alone, in blocks of its size. The facts to learn for that are
 * here.
 */
#ifndef KVROUTE_DROP_H
#define KVROUTE_DROP_H

#include "decode.h"

/* All 0: nothing learnt. */
struct drop {
	uint32_t full;        /* the group of full attention that counts, */
	bool known;           /* once one is known */
	bool other;           /* group 0 is of another kind */
	uint64_t window;      /* the largest announced, or else seen */
	uint64_t sliding;     /* the largest of layers that slide; 0: none */
	bool announced, begun;
	uint32_t block_size;
};

enum drop_reason drop_judge(struct drop *d,
    const struct decode_options *options, const struct event *event);
/* TensorRT-LLM announces its windows before anything else. */
void drop_announce(struct drop *d, uint64_t window);

#endif
