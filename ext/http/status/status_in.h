/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * status_in.h - shared by the reports: calls to an index whose lock another
 * process may hold.
 *
 *   do
 *	error = kvr_...(k, ...);
 *   while (status_again(to, error));
 *
 * The tries are those of the whole report, not of one call: a report has many
 * calls, and the proxy's event loop waits for all of them.
 */
#ifndef KVROUTE_STATUS_IN_H
#define KVROUTE_STATUS_IN_H

#include "status.h"

/* Is the call to be repeated? The last try that finds it held fails `to`. */
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
