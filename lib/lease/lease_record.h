/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lease_record.h - records of leases and prompts for the journal.
 */
#ifndef KVR_LEASE_RECORD_H
#define KVR_LEASE_RECORD_H

#include "journal.h"
#include "prompt.h"

/* The record of a lease that is open. */
void lease_record(const struct kvr *k, uint32_t lease, uint32_t kind,
    int64_t now, struct kvr_record *r);
/*
 * The prompt, with its sequence hashes from block `from` on, or from the first
 * that it has. Returns the hashes; NULL: there are none.
 */
const uint64_t *lease_record_prompt(const struct kvr_prompt *p, uint32_t from,
    struct kvr_record *r);

#endif
