/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pool_poll.h - capacities and loads that engines publish. The caller makes the
 * requests:
 *
 *	kvh_poll_next   capacities.h, loads.h --> errand --> server, path, token
 *	kvh_poll_done   token --> errand --> facts, loads, or another path
 *
 * An errand that is not done in time has failed.
 */
#ifndef KVROUTE_POOL_POLL_H
#define KVROUTE_POOL_POLL_H

#include "pool_in.h"

void polls_begin(struct kvh *h);
void polls_end(struct kvh *h);
/* Their fleet is as the servers are now, until polls_unlock(). */
void polls_lock(struct kvh *h, int64_t now);
void polls_unlock(struct kvh *h);

#endif
