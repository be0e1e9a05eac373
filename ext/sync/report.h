/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - what is known of peers, left in the region to be shown:
 * kvr_peer(3).
 */
#ifndef KVROUTE_REPORT_H
#define KVROUTE_REPORT_H

#include "site.h"

void report(const struct site *s, int64_t now);
/* The last one: not connected any more. */
void report_end(const struct site *s, int64_t now);

#endif
