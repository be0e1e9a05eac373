/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_parts.h - writes the parts of the reports, as JSON and as metrics. A
 * metric of a part is left out if no upstream has the part.
 */
#ifndef KVROUTE_STATUS_PARTS_H
#define KVROUTE_STATUS_PARTS_H

#include "status_facts.h"

/* The members and metrics of the proxy's counters; NULL: all are 0. */
void counters_json(struct json *j, const struct counters *all);
void counters_metrics(struct metrics *m, const struct status *s);
/*
 * The member "times": for each histogram a count, a sum and three quantiles;
 * metrics have all of its buckets. NULL: all are empty.
 */
void times_json(struct json *j, const struct counters *all);
void times_metrics(struct metrics *m, const struct status *s);
/* The member "polled" of a worker: an object, or null. */
void loads_json(struct json *j, const struct status_upstream *up,
    uint64_t worker);
void loads_metrics(struct metrics *m, const struct status *s);
/* The member "health" of a worker: a string, or null. */
void health_json(struct json *j, const struct status_upstream *up,
    const char *name, size_t n);
void health_metrics(struct metrics *m, const struct status *s);
/* The member "queue": an object, or null if no request may wait. */
void queue_json(struct json *j, const struct status_upstream *up);
void queue_metrics(struct metrics *m, const struct status *s);
/* The member "tenants": an object, or null if the index is not shared. */
void tenants_json(struct json *j, const struct kvr *k);
void tenants_metrics(struct metrics *m, const struct status *s);

#endif
