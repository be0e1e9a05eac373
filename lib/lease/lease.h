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

/* What lease_open needs to know about a request. */
struct booking {
	uint64_t owner;
	uint32_t slot;
	uint64_t cached;   /* tokens that need no prefill */
	uint32_t overlap, active; /* blocks, as the index says */
	bool count_prefill;
	bool silent;       /* its first token will not be told */
	bool record;       /* the prefix, and share its blocks with others */
	uint64_t session;  /* to be bound when it is committed; 0: none */
	int64_t session_ttl;
	uint32_t share;    /* of the prompt's tenant; 0: as it is */
};

uint32_t lease_blocks(const struct kvr *k, const struct kvr_prompt *p);
uint64_t lease_open(struct kvr *k, const struct kvr_prompt *p,
    const struct booking *b, int64_t now, uint32_t *recorded);
void lease_commit(struct kvr *k, uint32_t lease, int64_t now);
int lease_first_token(struct kvr *k, uint32_t lease, int64_t now);
int lease_extend(struct kvr *k, uint32_t lease, const struct kvr_prompt *p,
    int64_t now);
void lease_output(struct kvr *k, uint32_t lease, uint32_t blocks);
void lease_finish(struct kvr *k, uint32_t lease,
    const struct kvr_report *report, int64_t now);
void lease_abort(struct kvr *k, uint32_t lease);
void lease_reap(struct kvr *k, uint32_t lease, int64_t now);
bool lease_orphaned(const struct kvr *k, const struct lease *l);
void lease_detach(struct kvr *k, struct lease *l);

#endif
