/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_queue.h - shared by status_*.c: requests that wait for a worker.
 */
#ifndef KVROUTE_STATUS_QUEUE_H
#define KVROUTE_STATUS_QUEUE_H

#include "json_writer.h"
#include "status.h"

/* The member "queue" of an upstream, null without. */
void queue_json(struct json *j, const struct status_upstream *up);
void queue_metrics(const struct status *s, struct writer *to);

#endif
