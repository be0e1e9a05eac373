/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poller.h - asks engines for their capacity and load, as kvh_poll_next(3)
 * demands: a GET each, on a connection of its own.
 */
#ifndef KVROUTE_POLLER_H
#define KVROUTE_POLLER_H

#include <stdbool.h>

struct event_base;
struct kvh;
struct poller;

/*
 * often: looks for engines that are to be asked eight times a second, and else
 * once. NULL: no memory.
 */
struct poller *poller_new(struct event_base *base, struct kvh *pool,
    bool often);
/* Answers that have not come are lost. NULL is accepted. */
void poller_free(struct poller *p);

#endif
