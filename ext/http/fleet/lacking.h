/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lacking.h - data-parallel ranks that are configured, and that an engine
 * lacks.
 *
 * More ranks may be configured than there are, and those are the last ones.
 * Their workers are drained, and a line is logged, if
 *
 *   - the engine publishes fewer, which is read with capacity=auto; or
 *   - a rank refuses a request, by status 400 or 422, that the first rank of
 *     the same engine accepts, while neither it nor one above it has ever
 *     accepted one.
 *
 * So a proxy sends a request that such a rank has refused once more, to the
 * first rank. A request that no rank can take proves nothing, whoever sends it.
 * Ranks that an engine publishes later are up again.
 */
#ifndef KVROUTE_LACKING_H
#define KVROUTE_LACKING_H

#include "known.h"

/* The engine of server i publishes that it has n ranks. */
void lacking_found(struct fleet *f, size_t i, uint32_t n, void *log);
/*
 * It has answered a request that named a rank with this status. True: that may
 * be for the rank, so the same request is to be sent to rank 0.
 */
bool lacking_answered(struct fleet *f, size_t i, uint32_t rank,
    unsigned status);
/* Rank 0 has accepted the very request that this rank has refused. */
void lacking_proved(struct fleet *f, size_t i, uint32_t rank, void *log);
/* An operator has set its state, and it stays so. */
void lacking_forget(struct fleet *f, uint64_t key, uint32_t rank);

#endif
