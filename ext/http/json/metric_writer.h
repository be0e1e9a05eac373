/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * metric_writer.h - text for Prometheus, format 0.0.4: one writer for proxies
 * and daemons.
 *
 *   metric_head(m, &name, "Requests that wait.");
 *   metric_begin(m, &name);               # HELP kvroute_http_waiting Requ...
 *   metric_label(m, "upstream", "a", 1);  # TYPE kvroute_http_waiting gauge
 *   metric_whole(m, 3);                   kvroute_http_waiting{upstream="a"} 3
 *
 * A metric is a counter if its name ends in _total, else a gauge. All samples
 * of a metric stand together, behind one head. Errors fail the writer.
 */
#ifndef KVROUTE_METRIC_WRITER_H
#define KVROUTE_METRIC_WRITER_H

#include "text_writer.h"

struct metrics {
	struct writer *to;
	const char *prefix;     /* all names begin with kvroute_PREFIX_ */
	bool labelled;          /* the sample has a label */
};

/* PREFIX_GROUP_NAMESUFFIX; group and suffix may be NULL. */
struct metric {
	const char *group, *name, *suffix;
};

/* Writes the lines ahead of the samples; without a help line if it is NULL. */
void metric_head(struct metrics *m, const struct metric *name,
    const char *help);
void metric_head_histogram(struct metrics *m, const struct metric *name,
    const char *help);
void metric_begin(struct metrics *m, const struct metric *name);
/*
 * A quote or a backslash in the text is escaped, and "?" replaces a control
 * character, and each byte that is not ASCII if the text is not UTF-8.
 */
void metric_label(struct metrics *m, const char *label, const char *text,
    size_t n);
void metric_label_text(struct metrics *m, const char *label,
    const char *text);
void metric_label_whole(struct metrics *m, const char *label, uint64_t n);
void metric_label_seconds(struct metrics *m, const char *label, uint64_t ns);
/*
 * These end a sample. Seconds have `places` decimals, and further ones are cut
 * off; 0 places: as many as are needed. A real is rounded to three decimals.
 */
void metric_whole(struct metrics *m, uint64_t n);
void metric_real(struct metrics *m, double value);
void metric_seconds(struct metrics *m, uint64_t ns, unsigned places);

#endif
