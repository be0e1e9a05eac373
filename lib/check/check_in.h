/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_in.h - what the files that check a region share: check.c (cells, nodes,
 * holds, leases, counts) and check_order.c (lists, the tournament).
 */
#ifndef KVR_CHECK_IN_H
#define KVR_CHECK_IN_H

#include "region.h"

/* Sums made on the way, to be compared with the counters. */
struct sums {
	const struct kvr *k;
	uint8_t *seen;      /* [cells] what a cell was found to be */
	uint32_t *children; /* [cells] of a node, as its children say; of a */
	                    /* group, the node it belongs to */
	uint32_t *pins;     /* [cells] of an entry, as the leases say */
	struct slot *slots; /* [slots] counters only */
	struct dp_group *dp_groups; /* [names] */
	struct counts counts;
	uint32_t free_cells;
	uint64_t entries;   /* of retired slots too */
	uint64_t listed[2]; /* holds that say so, less those met on a list: */
	                    /* by release, by stamp */
};

enum { SEEN_FREE = 1, SEEN_PIECE, SEEN_NODE, SEEN_GROUP, SEEN_ENTRY,
	SEEN_LEASE, SEEN_CLAIM };

/* Claims a cell; false if it does not exist or has been claimed. */
static inline bool
claim(struct sums *s, uint32_t i, uint8_t what)
{
	if (i == 0 || i >= s->k->layout.cells || s->seen[i] != 0)
		return false;
	s->seen[i] = what;
	return true;
}

/* Finds the entries that no node knows of: they stand in lists alone. */
bool check_anonymous(struct sums *s);
bool check_order(struct sums *s);
bool check_fleet(const struct kvr *k, struct dp_group *counted);

#endif
