/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * txn.h - what every public call on a region does first and last.
 *
 *	error = txn_write_begin(k, &call, now, flags);
 *	if (error != KVR_OK)
 *		return error;
 *	... look, check, change; with call.now as the time ...
 *	return txn_write_end(k, &call, error);
 *
 * Without the lock; what is done between the two may be done again, and may
 * meet words of different moments:
 *
 *	struct txn call = { 0 };
 *	do {
 *		error = txn_read_begin(k, &call, now, flags);
 *		if (error != KVR_OK)
 *			return error;
 *		... read with read_once() ...
 *	} while (!txn_read_valid(k, &call));
 *
 * And with it: txn_read_locked, then error = txn_read_end(k, &call, error).
 */
#ifndef KVR_TXN_H
#define KVR_TXN_H

#include "prompt.h"
#include "region.h"

struct txn {
	int64_t now;      /* the time of the call */
	uint64_t seq;     /* of the region, when a reader began */
	uint32_t tries;   /* a reader's, so far */
	uint32_t budget;  /* entries to reclaim at the end */
	bool locked;
	bool backward;    /* the caller's was before an earlier one */
};
int txn_read_begin(const struct kvr *k, struct txn *c, int64_t now,
    uint32_t flags);
bool txn_read_valid(const struct kvr *k, const struct txn *c);
int txn_read_locked(const struct kvr *k, struct txn *c, int64_t now);
int txn_read_end(const struct kvr *k, const struct txn *c, int error);
int txn_write_begin(struct kvr *k, struct txn *c, int64_t now, uint32_t flags);
int txn_write_end(struct kvr *k, const struct txn *c, int error);
void txn_recover(struct kvr *k);
int txn_check_prompt(const struct kvr *k, const struct kvr_prompt *p);

#endif
