/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * run.h - the hashes of a node.
 */
#ifndef KVR_RUN_H
#define KVR_RUN_H

#include "region.h"

uint32_t run_level(uint32_t end);
uint32_t run_cells_to_append(const struct node *n, uint32_t count);
uint32_t run_get(const struct kvr *k, const struct node *n, uint32_t i);
uint32_t run_find(const struct kvr *k, const struct node *n, uint32_t hash);
uint32_t run_common(const struct kvr *k, const struct node *n,
    const uint64_t *hashes, uint32_t limit);
void run_append(struct kvr *k, struct node *n, const uint64_t *hashes,
    uint32_t count);
void run_append_run(struct kvr *k, struct node *n, const struct node *from,
    uint32_t first, uint32_t count);
uint32_t run_cells_to_split(const struct node *n, uint32_t at);
void run_split(struct kvr *k, struct node *lower, uint32_t at,
    struct node *upper);

#endif
