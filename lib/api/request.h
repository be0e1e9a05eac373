/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * request.h - shared by the calls that choose a worker: checked input, a
 * found_set in the prompt's scratch memory, and the decision.
 */
#ifndef KVR_REQUEST_H
#define KVR_REQUEST_H

#include "match.h"
#include "question.h"

/*
 * Checks the prompt, writes the caller's request over the defaults to *r and
 * checks it, and prepares *set. Takes no lock.
 */
int request_begin(const struct kvr *k, struct kvr_prompt *p,
    const struct kvr_request *request, struct kvr_request *r,
    struct found_set *set);
/* Can a decision be written to the caller's struct? */
bool decision_ok(const struct kvr_decision *out);
void decision_write(const struct kvr_prompt *p, const struct choice *c,
    uint64_t lease, uint32_t recorded, struct kvr_decision *out);

#endif
