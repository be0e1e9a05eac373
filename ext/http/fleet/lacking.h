/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lacking.h - data-parallel ranks that are configured, and that an engine
 * lacks.
 *
 * More ranks may be configured than there are, and those are the last ones.
 * Their workers are drained, and a line is logged, if
 *
 *   - the engine publishes fewer, which is read with capacity=auto; or
 *   - a rank that has accepted none refuses REFUSALS requests, by status 400
 *     or 422, with several prompts of several clients, while one below it has
 *     accepted some, and none above it has.
 *
 * One client proves nothing: it may send each rank a request that no engine can
 * take. Ranks that an engine publishes later are up again.
 */
#ifndef KVROUTE_LACKING_H
#define KVROUTE_LACKING_H

#include "known.h"

/* The engine of server i publishes that it has n ranks. */
void lacking_found(struct fleet *f, size_t i, uint32_t n, void *log);
/*
 * It has answered a request that named a rank with this status. True: it has
 * refused one, and lacking_refused() wants to know which.
 */
bool lacking_answered(struct fleet *f, size_t i, uint32_t rank,
    unsigned status);
/* Digests of the prompt and of the client that were refused. */
void lacking_refused(struct fleet *f, size_t i, uint32_t rank,
    uint64_t prompt, uint64_t client, void *log);
/* An operator has set its state: refusals of before do not count. */
void lacking_forget(struct fleet *f, uint64_t key, uint32_t rank);

#endif
