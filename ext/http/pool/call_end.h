/* SPDX-License-Identifier: BSD-2-Clause */
/* call_end.h - how a request ended, and the engine's report of it. */
#ifndef KVROUTE_CALL_END_H
#define KVROUTE_CALL_END_H

#include "pool_in.h"

/* The first target failed: it loses the request, and is tried no more. */
int target_failed(struct kvh_call *c, uint32_t failure, uint32_t status);
/* Target i failed, and the proxy goes on to another one by itself. */
void target_missed(struct kvh_call *c, uint32_t i, uint32_t failure,
    uint32_t status);
/* The request is over. */
void call_over(struct kvh_call *c, uint32_t how);

#endif
