/* SPDX-License-Identifier: BSD-2-Clause */
/* sessions_report.c - see sessions_report.h. */
#include "sessions_report.h"

#include "sessions.h"
#include "simulate_report.h"

#include <inttypes.h>

void
sessions_kv(FILE *out, const struct sessions_figures *f)
{
	if (f == NULL)
		return;
	fprintf(out, "sessions=%" PRIu64 "\nactive=%" PRIu64 "\n"
	    "session_wait_mean=%.3f\nsession_wait_p90=%.3f\n"
	    "session_length_mean=%.3f\n", f->sessions, f->active,
	    f->wait_mean, f->wait_p90, f->length_mean);
}

void
sessions_json(FILE *out, const struct sessions_figures *f)
{
	if (f == NULL)
		return;
	fprintf(out, ",\"sessions\":%" PRIu64 ",\"active\":%" PRIu64
	    ",\"session_wait_mean\":%.3f,\"session_wait_p90\":%.3f"
	    ",\"session_length_mean\":%.3f", f->sessions, f->active,
	    f->wait_mean, f->wait_p90, f->length_mean);
}

void
sessions_table(FILE *out, const struct simulate_row *rows, size_t n)
{
	const struct sessions_figures *f = rows[0].sessions;
	size_t i;

	if (f == NULL)
		return;
	fprintf(out, "\n%" PRIu64 " sessions, %" PRIu64 " at a time\n\n"
	    "%-18s %9s %9s %10s\n%-18s %19s %10s\n", f->sessions,
	    f->active, "policy", "mean", "p90", "length", "",
	    "s waited per session", "s");
	for (i = 0; i < n; i++)
		fprintf(out, "%-18s %9.2f %9.2f %10.1f\n", rows[i].name,
		    rows[i].sessions->wait_mean, rows[i].sessions->wait_p90,
		    rows[i].sessions->length_mean);
}
