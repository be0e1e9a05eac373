/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.h - the tables in which nodes, entries and leases are found.
 */
#ifndef KVR_TABLE_H
#define KVR_TABLE_H

#include "region.h"

/* Buckets now: of k->node_buckets, and of k->entry_buckets. */
uint32_t bucket_of_node(const struct kvr *k, uint64_t prev, uint32_t first);
uint32_t bucket_of_entry(const struct kvr *k, uint32_t node, uint32_t slot);
uint32_t bucket_of_lease(const struct kvr *k, uint64_t number);

/*
 * A place is the bucket in a table that has grown to its full size; it never
 * changes. Until then several places share a bucket.
 */
uint32_t place_of_entry(const struct kvr *k, uint32_t node, uint32_t slot);
uint32_t bucket_of_place(const struct kvr *k, uint32_t place);

/* Before one more is linked. No bucket's number is valid after it. */
void node_table_grow(struct kvr *k);
void entry_table_grow(struct kvr *k);

/* Takes a member out of the bucket with this head. */
void bucket_remove(struct kvr *k, uint32_t *head, uint32_t member);

/* Buckets in use, never more than there are. */
uint32_t node_table_used(const struct kvr *k);
uint32_t entry_table_used(const struct kvr *k);

void tables_empty(struct kvr *k);
bool tables_sound(const struct kvr *k);

#endif
