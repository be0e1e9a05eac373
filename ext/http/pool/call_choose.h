/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * call_choose.h - which server a request goes to, and its load there.
 *
 *   shadow=       a plain method; the library is asked beside it
 *   state         the server that keeps it, or none
 *   probe         a gray server, whatever is cached
 *   a prompt      by the library: kvr_lease_open
 *   else          the fewest requests by weight
 *
 * Servers that have failed lately, and those that are held back, are for
 * requests that have no other; drained ones come last.
 */
#ifndef KVROUTE_CALL_CHOOSE_H
#define KVROUTE_CALL_CHOOSE_H

#include "pool_in.h"

/* KVR_OK, KVR_ENOMEM, KVH_ENOSERVER, KVH_EFULL or KVH_EKEPT. */
int call_choose(struct kvh_call *c, bool further);
/* The request went to this server, another target, or none of them. */
void call_moved(struct kvh_call *c, struct pool_server *s, bool target);
/* Gives the targets up; the first one has no longer a request. */
void targets_leave(struct kvh_call *c);

#endif
