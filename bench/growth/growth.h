/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * growth.h - how the cost of a call grows with what it works on.
 *
 * A trace shows the average cost of a request. These curves show the cost of
 * the worst shapes: each lets one quantity grow, keeps all others constant and
 * prints a table, one line for each size. kvroute-bench(1) says what the
 * columns mean.
 */
#ifndef KVROUTE_GROWTH_H
#define KVROUTE_GROWTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names of the curves, and "all", which runs one after the other. */
enum { GROWTH_CURVES = 8, GROWTH_NAMES = GROWTH_CURVES + 1 };
extern const char *const growth_names[GROWTH_NAMES];

/* Runs growth_names[which]; prints tables, or name=value lines if `kv`. */
void growth_run(size_t which, uint32_t trials, bool kv);

#endif
