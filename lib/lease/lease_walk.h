/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lease_walk.h - walks over the leases, in pieces.
 */
#ifndef KVR_LEASE_WALK_H
#define KVR_LEASE_WALK_H

#include "region.h"

void lease_reap_old(struct kvr *k, int64_t now, uint32_t budget);
bool lease_detach_retired(struct kvr *k);
/* These go on at *cursor: the id of the lease examined last, or 0. */
uint32_t lease_reap_owner(struct kvr *k, uint64_t owner, int64_t now,
    uint64_t *cursor);
size_t lease_owners(const struct kvr *k, uint64_t *cursor, uint64_t *owners,
    size_t capacity);
/* struct kvr_lease_info of each. */
size_t lease_infos(const struct kvr *k, uint64_t *cursor, char *out,
    size_t element, size_t capacity);

#endif
