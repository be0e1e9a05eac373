/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_tenants.h - shared by status_*.c: what tenants have of an index.
 * Figures of all of them, as many as it has rows for, are metrics.
 */
#ifndef KVROUTE_STATUS_TENANTS_H
#define KVROUTE_STATUS_TENANTS_H

#include "json_writer.h"
#include "status.h"

/* The member "tenants": an object, or null if the index is not shared. */
void tenants_json(struct json *j, const struct kvr *k);
void tenants_metrics(const struct status *s, struct writer *to);

#endif
