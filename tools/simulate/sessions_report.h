/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sessions_report.h - the figures of sessions in simulate_report.h. Without
 * sessions nothing is written.
 */
#ifndef KVROUTE_SESSIONS_REPORT_H
#define KVROUTE_SESSIONS_REPORT_H

#include <stddef.h>
#include <stdio.h>

struct sessions_figures;
struct simulate_row;

void sessions_kv(FILE *out, const struct sessions_figures *f);
/* Further members of an object. */
void sessions_json(FILE *out, const struct sessions_figures *f);
void sessions_table(FILE *out, const struct simulate_row *rows, size_t n);

#endif
