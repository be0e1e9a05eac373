/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * txn.h - what every public call on a region does first and last.
 *
 *	error = call_write(k, &call, now, flags);
 *	if (error != KVR_OK)
 *		return error;
 *	... look, check, change; with call.now as the time ...
 *	return call_written(k, &call, error);
 *
 * Without the lock; what is done between the two may be done again, and may
 * meet words of different moments:
 *
 *	struct call call = { 0 };
 *	do {
 *		error = call_look(k, &call, now, flags);
 *		if (error != KVR_OK)
 *			return error;
 *		... read with look() ...
 *	} while (!call_looked(k, &call));
 *
 * And with it: call_read, then error = call_done(k, &call, error).
 */
#ifndef KVR_TXN_H
#define KVR_TXN_H

#include "prompt.h"
#include "region.h"

struct call {
	int64_t now;      /* the time of the call */
	uint64_t version; /* of the region, when a reader began */
	uint32_t looks;   /* a reader's, so far */
	uint32_t budget;  /* entries to reclaim at the end */
	bool locked;
	bool backward;    /* the caller's was before an earlier one */
};
int call_look(const struct kvr *k, struct call *c, int64_t now,
    uint32_t flags);
bool call_looked(const struct kvr *k, const struct call *c);
int call_read(const struct kvr *k, struct call *c, int64_t now);
int call_done(const struct kvr *k, const struct call *c, int error);
int call_write(struct kvr *k, struct call *c, int64_t now, uint32_t flags);
int call_written(struct kvr *k, const struct call *c, int error);
void call_mend(struct kvr *k);
int call_prompt(const struct kvr *k, const struct kvr_prompt *p);

#endif
