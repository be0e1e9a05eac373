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

/* kvroute_PROXY_GROUP_NAMESUFFIX; group and suffix may be NULL. */
struct metric {
	const char *proxy, *group, *name, *suffix;
};

/* The lines ahead of the samples of a metric. */
void metric_head(struct writer *to, const struct metric *m, const char *type,
    const char *help);
/* Its name and the upstream; more labels may follow. */
void metric_sample(struct writer *to, const struct metric *m,
    const struct status_upstream *up);
/* The end of the labels, and the value. */
void metric_number(struct writer *to, uint64_t n);
/* upstream="NAME", as a label of Prometheus. */
void status_label(struct writer *to, const struct status_upstream *up);
/* The name of a worker, as the value of a label. */
void status_name_put(struct writer *to, const char *name, size_t n);

#endif
