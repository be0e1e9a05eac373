/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_shadow.h - the option shadow=: a plain method chooses the server, and
 * the choice of the library is counted beside it.
 *
 *   kvr_route ----> wanted: reason, overlap there       (only read)
 *   plain method -> taken:  lease, overlap there        (booked, learned)
 *                   shadowed: same, other, blocks, wanted_blocks, taken_blocks
 */
#ifndef KVROUTE_CALL_SHADOW_H
#define KVROUTE_CALL_SHADOW_H

#include "pool_in.h"

/* False: the library has no choice, and c->reason is why. */
bool shadow_wants(struct kvh_call *c, struct kvr_decision *wanted);
/*
 * The server of the plain method; n_known: there is none. With the pool's lock,
 * when the servers were looked at.
 */
size_t shadow_next(struct kvh_call *c);
/* The request was booked at that server. */
void shadow_count(struct kvh_call *c, const struct kvr_decision *wanted);

#endif
