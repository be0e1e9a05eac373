/* SPDX-License-Identifier: BSD-2-Clause */
/* pool_gray.h - a request is evidence for its servers: evidence.h, judge.h. */
#ifndef KVROUTE_POOL_GRAY_H
#define KVROUTE_POOL_GRAY_H

#include "pool_in.h"

/* The request was sent to the first target. */
void gray_sent(struct kvh_call *c);
/* A head with a status below 300 has come. */
void gray_accepted(struct kvh_call *c);
/* More of a stream has come. */
void gray_progress(struct kvh_call *c);
/* The try has ended; the evidence has how. */
void gray_end(struct kvh_call *c, bool taken, bool client_left);

#endif
