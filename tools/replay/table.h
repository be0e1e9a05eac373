/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.h - results of a replay as a text table, name=value lines or JSON.
 * The last two use the same names, which do not change.
 */
#ifndef KVROUTE_TABLE_H
#define KVROUTE_TABLE_H

#include <kvroute.h>

#include <stdint.h>
#include <stdio.h>

struct pass;

enum report_format { REPORT_TEXT, REPORT_KV, REPORT_JSON, REPORT_FORMATS };
extern const char *const report_format_names[REPORT_FORMATS];

/* Shared by all passes of a replay. */
struct report {
	const char *trace;
	const struct kvr_options *region;
	uint64_t requests;
	uint64_t tokens;
	int64_t span_ms;   /* from the first arrival to the last */
	double hash_ns;    /* mean per request */
	uint64_t prefill_rate; /* 0: no engines modelled */
	uint64_t decode_rate;
};

/* Returns an enum kvr_error. */
int report_print(FILE *f, enum report_format format, const struct report *about,
    struct pass *const *passes, size_t n);

#endif
