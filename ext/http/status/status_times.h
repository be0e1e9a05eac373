/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_times.h - how long things took, in status reports: for each histogram
 * how many there were, their sum and three quantiles, or all of its buckets.
 */
#ifndef KVROUTE_STATUS_TIMES_H
#define KVROUTE_STATUS_TIMES_H

#include "json_writer.h"
#include "status.h"

/* The member "times"; NULL: of no counters. */
void times_json(struct json *j, const struct counters *all);
void times_metrics(const struct status *s, struct writer *to);

#endif
