/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lease.h - requests in flight.
 */
#ifndef KVR_LEASE_H
#define KVR_LEASE_H

#include "prompt.h"
#include "region.h"

/* Returns the lease with this id, or 0. */
uint32_t lease_find(const struct kvr *k, uint64_t id);

/* The worker of a request, and the expectations: filled by route.c. */
struct choice {
	uint64_t worker;
	uint32_t slot;
	uint32_t reason;   /* enum kvr_reason */
	uint32_t eligible; /* number of eligible workers */
	uint32_t blocks;   /* overlap of the chosen worker, */
	uint32_t active;   /* of it, in use there, */
	uint32_t usable;   /* and such that the engine can resume behind it */
	uint64_t tokens;   /* of it, expected to be cached */
	uint64_t best;     /* the worker with the longest overlap: longest.c, */
	uint64_t best_tokens; /* and the tokens expected there */
	uint32_t flags;    /* of the request, resolved */
	double cost;
	uint64_t session;  /* to be bound when the lease is committed; or 0 */
	uint32_t affinity; /* enum kvr_affinity_outcome */
};

/* Is its prefix recorded, and are its blocks shared with others? */
static inline bool
choice_records(const struct choice *c)
{
	return (c->flags & KVR_IGNORE_REUSE) == 0;
}

uint32_t lease_blocks(const struct kvr *k, const struct kvr_prompt *p);
uint64_t lease_open(struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, const struct choice *choice, int64_t now,
    uint32_t *recorded);
void lease_commit(struct kvr *k, uint32_t lease, int64_t now);
bool lease_committed(const struct kvr *k, uint32_t lease);
/* Both need one that is committed. */
void lease_first_token(struct kvr *k, uint32_t lease, int64_t now);
bool lease_extends(const struct kvr *k, uint32_t lease,
    const struct kvr_prompt *p);
void lease_extend(struct kvr *k, uint32_t lease, const struct kvr_prompt *p,
    int64_t now);
void lease_output(struct kvr *k, uint32_t lease, uint32_t blocks);
void lease_finish(struct kvr *k, uint32_t lease,
    const struct kvr_report *report, int64_t now);
void lease_abort(struct kvr *k, uint32_t lease);
void lease_reap(struct kvr *k, uint32_t lease, int64_t now);
bool lease_orphaned(const struct kvr *k, const struct lease *l);
void lease_detach(struct kvr *k, struct lease *l);

#endif
