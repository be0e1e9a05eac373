/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * half.h - the policy that compares index against index.
 *
 * No cost, no load, nothing random: what it chooses depends on the overlaps
 * alone, so two indexes that answer alike give the same decisions, and one
 * checksum over the decisions of a trace tells.
 *
 *   Among the workers with overlap take the longest, ties to the least
 *   recently assigned. If that overlap is at least half of the prompt's
 *   tokens, it is taken; else the least recently assigned of all is. At the
 *   start worker 0 is the least recent, then 1, and so on.
 */
#ifndef KVROUTE_HALF_H
#define KVROUTE_HALF_H

#include <stddef.h>
#include <stdint.h>

struct half;

/* For workers 0 to n - 1. NULL: no memory, or n is 0. */
struct half *half_new(uint32_t n);
void half_free(struct half *h);

struct half_overlap {
	uint32_t worker;
	uint32_t blocks;
};
struct half_choice {
	uint32_t worker;
	uint32_t blocks;  /* overlap of the worker taken */
	uint32_t longest; /* longest overlap of any worker, in blocks */
};
/*
 * Takes a worker for a prompt of `tokens` tokens and remembers that it was
 * assigned. Each worker stands at most once in the overlaps; any order.
 */
struct half_choice half_choose(struct half *h,
    const struct half_overlap *overlaps, size_t n, uint64_t tokens,
    uint32_t block_size);

/* Over the numbers of the workers taken; begin with HALF_CHECKSUM. */
#define HALF_CHECKSUM UINT64_C(0xcbf29ce484222325)
uint64_t half_checksum(uint64_t checksum, uint64_t worker);

#endif
