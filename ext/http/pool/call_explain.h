/* SPDX-License-Identifier: BSD-2-Clause */
/* call_explain.h - how a request would be routed, as JSON: status_explain.h. */
#ifndef KVROUTE_CALL_EXPLAIN_H
#define KVROUTE_CALL_EXPLAIN_H

#include "pool_in.h"

/* The text is c->explained. KVH_EORDER, KVR_ENOMEM, KVR_EBUSY. */
int call_explain(struct kvh_call *c);

#endif
