/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_loads.h - shared by status_*.c: what engines say of their loads.
 */
#ifndef KVROUTE_STATUS_LOADS_H
#define KVROUTE_STATUS_LOADS_H

#include "json_writer.h"
#include "status.h"

/* The member "polled" of this worker: an object, or null. */
void loads_json(struct json *j, const struct status_upstream *up,
    uint64_t worker);
void loads_metrics(const struct status *s, struct writer *to);

#endif
