/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * claim.h - the predictions made when a lease was opened.
 */
#ifndef KVR_CLAIM_H
#define KVR_CLAIM_H

#include "lease.h"

/* Call it before anything of the request is recorded. */
void claim_make(struct kvr *k, uint32_t cell, const struct kvr_prompt *p,
    const struct choice *choice, int64_t session_ttl);

#endif
