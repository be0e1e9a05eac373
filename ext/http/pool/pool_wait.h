/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_wait.h - requests that wait for a server: waits.h has their order.
 *
 *	kvh_pick   all full --> kvh_wait --> in line, or KVH_EFULL
 *	kvh_turn   there is room, or its time is over --> woken --> kvh_pick
 *	                             still full --> kvh_wait: where it was
 *
 * No more are woken than there is room for. As long as they have not picked,
 * requests that have just come are refused that room. One that picks stands in
 * line again, so that none overtakes it, but is not woken again before
 * kvh_wait().
 */
#ifndef KVROUTE_POOL_WAIT_H
#define KVROUTE_POOL_WAIT_H

#include "pool_in.h"

void line_begin(struct kvh *h);
/* This process has none in line. */
void line_end(struct kvh *h);
/* Other processes see that it is alive; true: no request waits here. */
bool line_tick(struct kvh *h, int64_t now);

/* A choice begins; */
void wait_picks(struct kvh_call *c);
/* may the request go anywhere, as far as others wait? */
bool wait_lets(struct kvh_call *c);
/* The choice is over, with this error. Counts its reason, if it is final. */
void wait_picked(struct kvh_call *c, int error);
/* It waits no longer; again is no error. */
void wait_over(struct kvh_call *c);

#endif
