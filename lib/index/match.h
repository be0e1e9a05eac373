/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * match.h - which workers hold how much of a prompt.
 */
#ifndef KVR_MATCH_H
#define KVR_MATCH_H

#include "id.h"
#include "index.h"

/* Where the entries of a row end, and of all rows up to the next one given. */
struct found_end {
	uint32_t row;
	uint32_t node;
	uint32_t depth;  /* of the path, in the prompt, that they cover; */
	uint32_t at;     /* its end, in `nodes` below */
	uint32_t beyond; /* blocks of the entries after that */
};

/* A node of a path, and how much of the prompt ends with it. */
enum { PATH_NODES = 2048 };
struct path_node {
	uint32_t node, depth;
};

/*
 * The result of a match, or the caller's own: overlaps, one per worker, and the
 * place of each slot's among them. Places are counted from `base`, which grows
 * from match to match: lower values are stale, so nothing has to be cleared.
 */
struct found_set {
	uint32_t count;
	uint32_t room;                   /* of `rows` */
	uint64_t steps;                  /* links followed, and how many */
	uint64_t most;                   /* may be, by a choice */
	uint32_t base;
	struct kvr_overlap *rows;        /* where a match writes */
	const struct kvr_overlap *found; /* the same, or the caller's */
	uint32_t *places;                /* [slots] */
	uint32_t *next_base;             /* outlives the set */
	/* for a choice: NULL, and a match sees all of a path */
	struct found_end *ends;          /* [slots] */
	struct path_node *nodes;         /* [PATH_NODES] from its end up */
	int64_t *stamps;                 /* [slots] of the rows' entries */
	uint32_t n_ends, n_nodes;
	double *costs;                   /* [slots]: scratch of a choice */
	struct path path;                /* of a match; nodes 0: none */
};

/* Empties the set. */
static inline void
found_none(const struct kvr *k, struct found_set *set)
{
	set->count = 0;
	set->steps = set->most = 0;
	set->n_ends = set->n_nodes = 0;
	memset(&set->path, 0, sizeof(set->path));
	set->base = *set->next_base;
	*set->next_base += k->layout.slots;
}

static inline bool
found_has(const struct found_set *set, uint32_t slot)
{
	return set->places[slot] >= set->base;
}

void match_overlaps(const struct kvr *k, const struct kvr_prompt *p,
    int64_t now, struct found_set *set);
/* The second half of it, from where set->path ends. */
void match_climb(const struct kvr *k, const struct kvr_prompt *p,
    int64_t now, struct found_set *set);

/* The overlap found for a slot; a zero overlap if it has none. */
static inline const struct kvr_overlap *
found_of(const struct found_set *set, uint32_t slot)
{
	static const struct kvr_overlap none;

	return found_has(set, slot)
	    ? &set->found[set->places[slot] - set->base] : &none;
}

/* Where its entry ends; NULL: not known. */
const struct found_end *found_end(const struct found_set *set, uint32_t slot);

/* The slot of an overlap. */
static inline uint32_t
found_slot(const struct kvr_overlap *o)
{
	return id_slot(o->worker);
}

#endif
