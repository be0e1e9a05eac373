/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fit.h - how many bytes a live (block, worker) pair takes.
 *
 * The figure is that of a whole region: tables, worker slots and slack
 * included. A load is replayed in regions of different sizes to find the
 * smallest that evicts nothing and records every prompt whole, to within 2 %,
 * and that size is divided by the peak of live pairs. Where workers go by
 * capacity or by feedback a replay of leases and reports comes before, in the
 * same region: it must fit too.
 */
#ifndef KVROUTE_FIT_H
#define KVROUTE_FIT_H

#include "load.h"
#include "bench_index.h"

#include <kvroute.h>

#include <stdint.h>

struct fit {
	uint64_t bytes;    /* of the smallest region */
	uint64_t live_max; /* (block, worker) pairs at the peak */
};

void fit_find(const struct load *l, const struct world_options *options,
    struct fit *out);

#endif
