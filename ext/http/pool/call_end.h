/* SPDX-License-Identifier: BSD-2-Clause */
/* call_end.h - how a request ended, and the engine's report of it. */
#ifndef KVROUTE_CALL_END_H
#define KVROUTE_CALL_END_H

#include "pool_in.h"

/* The first target failed: it loses the request, and is tried no more. */
int target_failed(struct kvh_call *c, uint32_t failure, uint32_t status);
/*
 * Another server answers than the first target, or NULL: it is unknown. target:
 * it is one of the others.
 */
void target_change(struct kvh_call *c, struct pool_server *s, bool target,
    uint32_t failure);
/* If the first target failed as reported, the next one has the request. */
void target_follow(struct kvh_call *c);
/* Target i failed, and the proxy goes on to another one by itself. */
void target_missed(struct kvh_call *c, uint32_t i, uint32_t failure,
    uint32_t status);
/* The request is over. */
void call_over(struct kvh_call *c, uint32_t how);

#endif
