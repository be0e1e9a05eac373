/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * flood.h - what a client that knows the secret can do to the index's table.
 *
 * The secret allows a client to compute sequence hashes, and so to choose
 * prompts whose first blocks have hashes with equal low bits: here 1024
 * prompts, 16 bits, found by varying a number in the first block. In a table
 * that used those bits as they are, all of them would be in a bucket or two,
 * and each match would walk past hundreds of others. The region's table has a
 * key of its own that never leaves it; so a flood must cost what random prompts
 * cost.
 *
 *   flood    [n0 ...] [...] ... 64 blocks    hash of the first: ....beef
 *            [n1 ...] [...] ...                                 ....beef
 *   random   the same with any n0, n1, ...   hash of the first: anything
 *
 * Each has a region of its own, made alike. No two prompts of a flood agree in
 * the low 32 bits: the index takes those for the same first block, which costs
 * the attacker's own hits and lengthens no bucket.
 */
#ifndef KVROUTE_FLOOD_H
#define KVROUTE_FLOOD_H

#include "measure.h"
#include "bench_index.h"

enum { FLOOD_PROMPTS = 1024, FLOOD_BITS = 16, FLOOD_BLOCKS = 64 };

/* Percentiles of kvr_match over the prompts, each in its best trial. */
struct flood {
	double flood[MEASURE_RANKS];
	double random[MEASURE_RANKS];
	double p99_ratio;
};

void flood_measure(const struct world_options *options, uint32_t trials,
    struct flood *out);
void flood_print_kv(const struct flood *f);
void flood_print_text(const struct flood *f);

#endif
