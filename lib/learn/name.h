/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * name.h - names of workers, and the data-parallel groups of their ranks.
 */
#ifndef KVR_NAME_H
#define KVR_NAME_H

#include "region.h"

/* By its number, from 1; the first if there is no such one. */
struct name *name_at(const struct kvr *k, uint32_t number);
size_t name_length(const struct name *n);
/* The slot of the worker with this name and rank. */
bool name_find(const struct kvr *k, const char *name, size_t length,
    uint32_t rank, uint32_t *slot);
/* Returns the number of the name. */
uint32_t name_add(struct kvr *k, const char *name, size_t length,
    uint32_t slot);
void name_remove(struct kvr *k, uint32_t number);
void name_link(struct kvr *k, uint32_t number);

struct dp_group *dp_group_at(const struct kvr *k, uint32_t dp_group);
uint32_t dp_group_of(const struct kvr *k, const char *name, size_t length);
void dp_group_join(struct kvr *k, uint32_t slot, uint32_t dp_group);
void dp_group_leave(struct kvr *k, uint32_t slot);
void dp_group_recount(struct kvr *k, const struct slot *s, bool before);

#endif
