/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_figures.h - the numbers of simulate_report.h.
 *
 * Every number is computed once, into an array by enum figure; regrets
 * from the arrays of all policies.
 */
#ifndef KVROUTE_SIMULATE_FIGURES_H
#define KVROUTE_SIMULATE_FIGURES_H

#include "simulate_report.h"

/* In output order. */
enum figure {
	WORKERS, CAPACITY, BLOCK, REPLICAS, SEED, REQUESTS, REFUSED, EMPTY,
	WAITED, PROMPT_TOKENS, HIT_RATIO, PREDICTED_RATIO, ERROR_BLOCKS,
	OVER_BLOCKS, UNDER_BLOCKS, MEAN, P50, P90, P99, TOKEN_MS, MAKESPAN,
	STEPS, RESETS, REPORTS, UNREPORTED, EXPIRED, EVICTED_CAPACITY,
	EVICTED_REGION, TRUNCATED, REQUEST_MEAN, REQUEST_P90, REQUEST_P99,
	GOODPUT, WORST_SHARE, TTFT_REGRET, REQUEST_REGRET, PREEMPTED, RETRIED,
	LOST, UTILISATION, MESSAGES, MESSAGES_LOST, MESSAGES_LATE,
	LEASES_REPAIRED, EVENT_BATCHES, EVENT_BATCHES_LOST, EVENT_GAPS,
	BYPASSED, FIGURES
};
typedef double figure_row[FIGURES];

/* The figures of all policies, to be freed. NULL: *error. */
figure_row *simulate_figures(const struct simulate_row *rows, size_t n,
    int *error);

#endif
