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

struct status_load;

void polls_begin(struct kvh *h);
void polls_end(struct kvh *h);
/* All loads that are known, until polls_unlist(); NULL: no memory, *n is 0. */
struct status_load *polls_list(struct kvh *h, int64_t now, size_t *n);
void polls_unlist(struct kvh *h, struct status_load *list);

#endif
