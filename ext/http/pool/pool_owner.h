/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_owner.h - leases belong to a pool of a process; replicas.h ends those of
 * processes that have died.
 */
#ifndef KVROUTE_POOL_OWNER_H
#define KVROUTE_POOL_OWNER_H

#include "pool_in.h"

/* Takes a number, and ends leases that an earlier process left under it. */
void owner_begin(struct kvh *h);
/* The owner of leases that this process opens. */
uint64_t owner_self(const struct kvh *h);
/* Leaves no lease of this process behind, and gives the number back. */
void owner_end(struct kvh *h);

#endif
