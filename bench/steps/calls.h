/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls.h - how long one call takes at worst.
 *
 * A history at random: requests with system prompts of which some part in the
 * middle, chats that go on, leases that end later and in another order, workers
 * that restart, loads from outside, scrapes. CPU time of its thread is counted,
 * so what others do to the machine is not; it includes what a call does without
 * the lock, so it is more than the time for which the lock is held. The first
 * tenth is not counted: by then all pages are mapped, and entries expire.
 */
#ifndef KVROUTE_CALLS_H
#define KVROUTE_CALLS_H

#include "bench_index.h"

#include <stdbool.h>
#include <stdint.h>

void calls_run(const struct world_options *options, uint32_t requests,
    bool kv);

#endif
