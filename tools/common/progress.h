/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * progress.h - a progress bar on standard error.
 *
 * Shown only if standard error is a terminal and `quiet` is false; erased at
 * the end.
 */
#ifndef KVROUTE_PROGRESS_H
#define KVROUTE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
	bool on;
	uint64_t total; /* 0: unknown, only the count is shown */
	uint64_t shown; /* permille; without a total: steps */
};

/* The size of a file, to be used as total; 0 if it is not a regular file. */
uint64_t progress_bytes(FILE *f);
void progress_begin(struct progress *p, bool quiet, uint64_t total);
/* `done` is in units of the total; `count` is the number of requests. */
void progress_show(struct progress *p, uint64_t done, uint64_t count);
void progress_end(struct progress *p);

#endif
