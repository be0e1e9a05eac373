/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * txn.h - the transaction around every public call on a region.
 *
 * Writing:
 *
 *	error = txn_write_begin(k, &c, now, flags);
 *	if (error != KVR_OK)
 *		return error;
 *	... read, check, change; the time is c.now ...
 *	return txn_write_end(k, &c, error);
 *
 * Reading without the lock. The body may run more than once, and may see an
 * inconsistent region:
 *
 *	struct txn c = { 0 };
 *	do {
 *		error = txn_read_begin(k, &c, now, flags);
 *		if (error != KVR_OK)
 *			return error;
 *		... read with read_once() ...
 *	} while (!txn_read_valid(k, &c));
 *
 * Reading with the lock: txn_read_locked, then error = txn_read_end(k, &c,
 * error).
 */
#ifndef KVR_TXN_H
#define KVR_TXN_H

#include "prompt.h"
#include "region.h"

struct txn {
	int64_t now;      /* time of the call */
	uint64_t seq;     /* of the region when the read began */
	uint32_t tries;   /* of a lock-free read, so far */
	uint32_t budget;  /* entries to reclaim at the end */
	bool locked;
	bool backward;    /* the caller's `now` was below the clock */
};
/*
 * KVR_NOW becomes the time of the clock: no other call reads it for callers.
 * False: it is no time.
 */
bool txn_now(int64_t *now);
int txn_read_begin(const struct kvr *k, struct txn *c, int64_t now,
    uint32_t flags);
bool txn_read_valid(const struct kvr *k, const struct txn *c);
int txn_read_locked(const struct kvr *k, struct txn *c, int64_t now);
int txn_read_end(const struct kvr *k, const struct txn *c, int error);
int txn_write_begin(struct kvr *k, struct txn *c, int64_t now, uint32_t flags);
int txn_write_end(struct kvr *k, const struct txn *c, int error);
void txn_recover(struct kvr *k);
int txn_check_prompt_end(const struct kvr *k, const struct kvr_prompt *p);
int txn_check_prompt(const struct kvr *k, const struct kvr_prompt *p);

#endif
