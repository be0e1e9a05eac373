/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_health.h - shared by status_*.c: how workers are beside the others.
 */
#ifndef KVROUTE_STATUS_HEALTH_H
#define KVROUTE_STATUS_HEALTH_H

#include "json_writer.h"
#include "status.h"

/* The member "health" of the worker of this name: a word, or null. */
void health_json(struct json *j, const struct status_upstream *up,
    const char *name, size_t n);
void health_metrics(const struct status *s, struct writer *to);

#endif
