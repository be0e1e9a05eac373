/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * progress.h - a bar on the terminal, for as long as somebody waits.
 *
 * Only where standard error is a terminal, and never when asked to be quiet;
 * gone without a trace when the work is done.
 */
#ifndef KVROUTE_PROGRESS_H
#define KVROUTE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
	bool on;
	uint64_t total; /* 0: not known, the count alone is shown */
	uint64_t shown; /* permille, or steps without a total */
};

/* A total: the size of a file; 0 if its end is not known. */
uint64_t progress_bytes(FILE *f);
void progress_begin(struct progress *p, bool quiet, uint64_t total);
/* `done` of the total, in its unit; `count` is what the text counts. */
void progress_show(struct progress *p, uint64_t done, uint64_t count);
void progress_end(struct progress *p);

#endif
