/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * step_times.h - one request step by step: measured, and printed.
 *
 * How a worker is believed to retain prompts changes what the steps cost: an
 * hour's prompts are recorded instead of two minutes', and each one evicts
 * others. By how much can be told only within one run, because machines drift:
 * all retentions are measured in turns, trial by trial, and compared with TTL.
 *
 *   trial 1                             trial 2                       ...
 *   ttl | capacity | feedback | shared  shared | feedback | capacity | ttl
 *
 * "shared" is TTL in a region that tenants share: tenant.c.
 */
#ifndef KVROUTE_STEP_TIMES_H
#define KVROUTE_STEP_TIMES_H

#include "load.h"
#include "bench_index.h"

#include <stdbool.h>
#include <stdint.h>

/* all: every retention instead of that in the options. */
void steps_run(const struct load *l, const struct world_options *options,
    bool all, uint32_t trials, bool kv);

#endif
