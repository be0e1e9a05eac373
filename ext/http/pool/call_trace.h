/* SPDX-License-Identifier: BSD-2-Clause */
/* call_trace.h - the line of a request for kvroute-replay(1). */
#ifndef KVROUTE_CALL_TRACE_H
#define KVROUTE_CALL_TRACE_H

#include "pool_in.h"

/* A worker was chosen. */
void trace_keep(struct kvh_call *c);
/* The request has ended. */
void trace_line(struct kvh_call *c);

#endif
