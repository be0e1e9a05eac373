/* SPDX-License-Identifier: BSD-2-Clause */
/* envoy_status.h - the state of a pool, as an answer to a request. */
#ifndef KVROUTE_ENVOY_STATUS_H
#define KVROUTE_ENVOY_STATUS_H

#include "envoy_abi.h"

struct kvh;

/* JSON; for Prometheus, if the path ends with "/metrics". */
void status_answer(struct kvh *pool, void *envoy);

#endif
