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

/* The name of a gauge, kvroute_PROXY_GROUPNAME; and the lines ahead of it. */
void status_gauge_name(struct writer *to, const struct status *s,
    const char *group, const char *name);
void status_gauge_head(struct writer *to, const struct status *s,
    const char *group, const char *name, const char *help);
/* upstream="NAME", as a label of Prometheus. */
void status_label(struct writer *to, const struct status_upstream *up);
/* The name of a worker, as the value of a label. */
void status_name_put(struct writer *to, const char *name, size_t n);

#endif
