/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * route.h - chooses the worker for a request.
 */
#ifndef KVR_ROUTE_H
#define KVR_ROUTE_H

#include "question.h"

/* KVR_EEMPTY, or KVR_EWORKER if the pinned worker does not exist. */
int route_begin(struct question *q, const struct kvr *k,
    const struct kvr_prompt *p, const struct kvr_request *r,
    struct found_set *set, int64_t now);
/* For a slot in use; the cost also for one that is not eligible. */
enum kvr_verdict route_verdict(const struct question *q, uint32_t slot);
/* Sets *expected to the tokens of the prompt that may be cached there. */
double route_cost(const struct question *q, uint32_t slot,
    uint64_t *expected);
/* Blocks of its overlap that the engine can resume behind: expect.c. */
uint32_t route_usable(const struct question *q, uint32_t slot);
int route_take(struct question *q, struct choice *out);
/* begin and take. */
int route_choose(const struct kvr *k, const struct kvr_prompt *p,
    const struct kvr_request *r, struct found_set *set, int64_t now,
    struct choice *out);

#endif
