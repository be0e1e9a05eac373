/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_in.h - shared by the files that check a region: check.c (cells, nodes,
 * entries, leases, counts), check_order.c (lists, tournaments),
 * check_tenants.c (lists of tenants), check_fleet.c (names, slots, loads) and
 * check_figures.c (figures that can be mended).
 */
#ifndef KVR_CHECK_IN_H
#define KVR_CHECK_IN_H

#include "region.h"

/* Sums made on the way, to be compared with the counters at the end. */
struct sums {
	const struct kvr *k;
	uint8_t *seen;      /* [cells] the kind that a cell was found to be */
	uint32_t *children; /* of a node, counted by its children; of a */
	                    /* group, the node it belongs to */
	uint32_t *pins;     /* of an entry, according to the leases */
	struct slot *slots; /* [slots] counters only */
	struct dp_group *dp_groups; /* [names] */
	uint32_t *alias_children; /* [aliases + 1] */
	uint64_t *alias_places; /* [aliases + 1] */
	uint32_t *tenant_cells; /* [tenants + 1] */
	struct counts counts;
	uint32_t free_cells;
	uint64_t entries;   /* of retired slots too */
	uint64_t listed[2]; /* entries flagged as on a list, less those met: */
	                    /* by release, by stamp */
	bool inexact;       /* a figure is wrong that can be mended */
	bool lost;          /* names of blocks must be forgotten */
};

enum { SEEN_FREE = 1, SEEN_PIECE, SEEN_NODE, SEEN_GROUP, SEEN_ENTRY,
	SEEN_LEASE, SEEN_CLAIM };

/*
 * Every number read from the region is used as an index once, through here: it
 * may have changed since it was found to be in bounds. Cell 0 is nothing.
 */
static inline uint8_t
seen_as(const struct sums *s, uint32_t i)
{
	return i < s->k->layout.cells ? s->seen[i] : 0;
}

/* Else it has changed meanwhile: GCOVR_EXCL_BR_START */
static inline uint32_t *
child_count(const struct sums *s, uint32_t i)
{
	return &s->children[i < s->k->layout.cells ? i : 0];
}

static inline uint32_t *
pin_count(const struct sums *s, uint32_t i)
{
	return &s->pins[i < s->k->layout.cells ? i : 0];
}

static inline struct slot *
slot_sum(const struct sums *s, uint32_t i)
{
	return &s->slots[i < s->k->layout.slots ? i : 0];
}
/* GCOVR_EXCL_BR_STOP */

/* Claims a cell; false if it does not exist or has been claimed. */
static inline bool
claim(struct sums *s, uint32_t i, uint8_t what)
{
	if (i == 0 || i >= s->k->layout.cells || s->seen[i] != 0)
		return false;
	s->seen[i] = what;
	return true;
}

/* Claims the entries without a node, which are in the lists only. */
bool check_anonymous(struct sums *s);
bool check_order(struct sums *s);
/* The entry that covers the node above; 0: this one begins at a root. */
uint32_t check_entry_above(const struct kvr *k, const struct entry *h);
/* Tenants of nodes, and their lists; counts the cells of each. */
bool check_tenants(struct sums *s);
bool check_tenant_figures(const struct sums *s);
/* An entry that is not confirmed is pinned; one that is has a stamp. */
static inline bool
check_confirmed(const struct entry *h)
{
	return (h->flags & ENTRY_UNCONFIRMED) != 0 ? h->pins > 0
	    : h->stamp != STAMP_NONE;
}

bool check_names(const struct kvr *k);
bool check_groups_of_ranks(const struct kvr *k);
/* Figures of workers. counted: zeroed, one per name. */
bool check_fleet(const struct kvr *k, struct dp_group *counted);
bool check_figures(struct sums *s);
/* After a check that found nothing else: makes all figures right. */
void mend_figures(const struct sums *s, struct kvr *k);

#endif
