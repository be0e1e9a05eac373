/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * node.h - nodes of the radix tree.
 */
#ifndef KVR_NODE_H
#define KVR_NODE_H

#include "cell.h"
#include "prompt.h"
#include "region.h"
#include "table.h"

/* The node that begins with `first` after the block `prev`; 0: none. */
static inline uint32_t
node_child(const struct kvr *k, uint64_t prev, uint32_t first,
    uint64_t *steps)
{
	uint32_t i = read_once(k->node_buckets[bucket_of_node(k, prev, first)]);
	uint32_t limit = CHAIN_MAX;

	for (; i != 0 && limit > 0; limit--) {
		const struct node *n = node_at(k, i);

		(*steps)++;
		if (read_once(n->prev) == prev && read_once(n->first) == first)
			return i;
		i = read_once(n->next);
	}
	return 0;
}

uint32_t node_make(struct kvr *k, const struct kvr_prompt *p, uint32_t parent,
    uint32_t from, uint32_t to);
uint32_t node_split(struct kvr *k, const struct kvr_prompt *p, uint32_t lower,
    uint32_t at, uint32_t depth);
bool node_extendable(const struct kvr *k, uint32_t node, uint32_t slot,
    uint32_t pins);
void node_extend(struct kvr *k, const struct kvr_prompt *p, uint32_t node,
    uint32_t from, uint32_t to);
void node_merge(struct kvr *k, uint32_t upper, uint32_t lower);
void node_prune(struct kvr *k, uint32_t node);
/* The entry leaves its node. */
void node_leave(struct kvr *k, uint32_t entry);
void node_prefetch(const struct kvr *k, uint32_t entry);

#endif
