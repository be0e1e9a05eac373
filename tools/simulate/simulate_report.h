/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_report.h - results of simulations as text tables, name=value lines
 * or JSON. The names do not change; new ones come last.
 */
#ifndef KVROUTE_SIMULATE_REPORT_H
#define KVROUTE_SIMULATE_REPORT_H

#include <kvroute.h>

#include <stdint.h>
#include <stdio.h>

struct sessions_figures;
struct simulation;

/* One policy, by its name on the command line. */
struct simulate_row {
	const char *name;
	struct simulation *simulation; /* drained */
	const struct sessions_figures *sessions; /* NULL: of a trace */
};
/* Shared by all rows. */
struct simulate_about {
	const char *trace;
	double speed;
	uint64_t requests;
	int64_t span_ns; /* from the first arrival to the last */
};

/* Return an enum kvr_error. */
int simulate_table(FILE *out, const struct simulate_about *about,
    const struct simulate_row *rows, size_t n);
int simulate_kv(FILE *out, const struct simulate_row *rows, size_t n);
/* An object a line. */
int simulate_json(FILE *out, const struct simulate_row *rows, size_t n);
/* The same, each object with a member more: see charts_json.c. */
int simulate_json_charts(FILE *out, const struct simulate_row *rows, size_t n);

#endif
