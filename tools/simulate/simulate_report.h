/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_report.h - what simulations found: a table to read, or name=value
 * lines to process, whose names stay.
 */
#ifndef KVROUTE_SIMULATE_REPORT_H
#define KVROUTE_SIMULATE_REPORT_H

#include <kvroute.h>

#include <stdint.h>
#include <stdio.h>

struct simulation;

/* One policy, under the name it was asked for. */
struct simulate_row {
	const char *name;
	struct simulation *simulation; /* drained */
};
/* What all rows have in common. */
struct simulate_about {
	const char *trace;
	double speed;
	uint64_t requests;
	int64_t span_ns; /* from the first arrival to the last */
};

/* Give an enum kvr_error. */
int simulate_table(FILE *out, const struct simulate_about *about,
    const struct simulate_row *rows, size_t n);
int simulate_kv(FILE *out, const struct simulate_row *rows, size_t n);

#endif
