/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * approx_tree.h - a router's belief of caches, from its own decisions alone:
 * the tree of policy cache-aware.
 *
 * A prompt is given as one id for each 512 tokens, the last for possibly
 * fewer. A node stands for an id and all ids before it; its entries are the
 * workers that were sent such a prompt:
 *
 *   A   [0 1 2]       prompts A B, A B C and A D were sent to 0, 1 and 2
 *   |\
 *   B D [0 1] [2]     match of A B C X: depth 3, worker 1
 *   |                 match of A B X:   depth 2, workers 0 and 1
 *   C   [1]
 *
 * Each worker has the same limit of entries. Beyond it, the least recently
 * used leaf of that worker is evicted. A use of an entry is a use of its
 * ancestors, and moves them to the end of the worker's list from the last to
 * the first; so children precede their parents in the list, and its head is a
 * leaf.
 */
#ifndef KVROUTE_APPROX_TREE_H
#define KVROUTE_APPROX_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct approx_tree;

/* NULL: out of memory. */
struct approx_tree *approx_tree_new(uint32_t workers, uint64_t limit);
void approx_tree_free(struct approx_tree *t);
/* A prompt of n ids was sent to the worker. -1: out of memory. */
int approx_tree_insert(struct approx_tree *t, const uint64_t *ids, size_t n,
    uint32_t worker);
/*
 * The depth of the longest match of any worker not in `away` (may be NULL);
 * holders[workers]: which workers have it. All false if the depth is 0.
 */
size_t approx_tree_match(const struct approx_tree *t, const uint64_t *ids,
    size_t n, const bool *away, bool *holders);
/* The worker is gone: drops its entries. */
void approx_tree_forget(struct approx_tree *t, uint32_t worker);
/* Entries of a worker. */
uint64_t approx_tree_entries(const struct approx_tree *t, uint32_t worker);

#endif
