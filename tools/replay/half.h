/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * half.h - a policy for comparing indexes.
 *
 * Choices depend on overlaps alone; there is no cost, load or randomness. Two
 * indexes that return the same overlaps lead to the same decisions, which a
 * checksum over a trace verifies.
 *
 *   Among the workers with overlap, find the longest; ties go to the least
 *   recently assigned. If that overlap is at least half of the prompt's
 *   tokens, choose that worker; otherwise choose the least recently assigned
 *   of all. Initially worker 0 is the least recent, then 1, and so on.
 */
#ifndef KVROUTE_HALF_H
#define KVROUTE_HALF_H

#include <stddef.h>
#include <stdint.h>

struct half;

/* For workers 0 to n - 1. NULL: out of memory, or n is 0. */
struct half *half_new(uint32_t n);
void half_free(struct half *h);

struct half_overlap {
	uint32_t worker;
	uint32_t blocks;
};
struct half_choice {
	uint32_t worker;
	uint32_t blocks;  /* overlap of the chosen worker */
	uint32_t longest; /* longest overlap of any worker, in blocks */
};
/*
 * Chooses a worker for a prompt of `tokens` tokens and records the assignment.
 * Overlaps are in any order, at most one per worker.
 */
struct half_choice half_choose(struct half *h,
    const struct half_overlap *overlaps, size_t n, uint64_t tokens,
    uint32_t block_size);

/* Over the numbers of chosen workers; start with HALF_CHECKSUM. */
#define HALF_CHECKSUM UINT64_C(0xcbf29ce484222325)
uint64_t half_checksum(uint64_t checksum, uint64_t worker);

#endif
