/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_in.h - repeats calls to an index whose lock another process may hold.
 *
 *   do
 *	error = kvr_...(k, ...);
 *   while (status_again(to, error));
 *
 * The tries are counted over the whole report: it has many calls, and the
 * proxy's event loop waits for all of them.
 */
#ifndef KVROUTE_STATUS_IN_H
#define KVROUTE_STATUS_IN_H

#include "status.h"

/* Is the call to be repeated? The last try fails the writer. */
static inline bool
status_again(struct writer *to, int error)
{
	if (error != KVR_EBUSY)
		return false;
	if (++to->busy >= STATUS_TRIES)
		to->failed = true;
	return !to->failed;
}

#endif
