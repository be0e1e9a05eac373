/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * report.h - reports of engines about requests.
 */
#ifndef KVR_REPORT_H
#define KVR_REPORT_H

#include "region.h"

void report_forget(struct kvr *k, uint32_t slot);
void report_take(struct kvr *k, const struct lease *l, const struct claim *c,
    const struct kvr_report *report);

#endif
