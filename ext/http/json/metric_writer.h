/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metric_writer.h - text for Prometheus, format 0.0.4: one writer for proxies
 * and daemons.
 *
 *   metric_head(m, &name, "Requests that wait.");
 *   metric_begin(m, &name);               # HELP kvroute_nginx_waiting Requ...
 *   metric_label(m, "upstream", "a", 1);  # TYPE kvroute_nginx_waiting gauge
 *   metric_whole(m, 3);                   kvroute_nginx_waiting{upstream="a"} 3
 *
 * A name that ends in _total is a counter's, any other a gauge's. All samples
 * of a metric stand together, behind one head. Errors are those of the writer.
 */
#ifndef KVROUTE_METRIC_WRITER_H
#define KVROUTE_METRIC_WRITER_H

#include "text_writer.h"

struct metrics {
	struct writer *to;
	const char *prefix;     /* of all names: kvroute_PREFIX_ */
	bool labelled;          /* the sample has a label */
};

/* PREFIX_GROUP_NAMESUFFIX; group and suffix may be NULL. */
struct metric {
	const char *group, *name, *suffix;
};

/* The lines ahead of the samples; help NULL: there is no such line. */
void metric_head(struct metrics *m, const struct metric *name,
    const char *help);
void metric_head_histogram(struct metrics *m, const struct metric *name,
    const char *help);
void metric_begin(struct metrics *m, const struct metric *name);
/* A quote or a backslash in the text is escaped; */
void metric_label(struct metrics *m, const char *label, const char *text,
    size_t n);
/* here "?" replaces it, and all that is no printable ASCII. */
void metric_label_plain(struct metrics *m, const char *label,
    const char *text, size_t n);
void metric_label_text(struct metrics *m, const char *label,
    const char *text);
void metric_label_whole(struct metrics *m, const char *label, uint64_t n);
void metric_label_seconds(struct metrics *m, const char *label, uint64_t ns);
/*
 * These end a sample. Seconds have that many decimals, the rest is cut off;
 * 0: as many as it takes. A real has three, and is rounded.
 */
void metric_whole(struct metrics *m, uint64_t n);
void metric_real(struct metrics *m, double value);
void metric_seconds(struct metrics *m, uint64_t ns, unsigned places);

#endif
