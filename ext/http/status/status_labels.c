/* SPDX-License-Identifier: BSD-2-Clause */
/* status_labels.c - names and labels of metrics, see status_in.h. */
#include "status_in.h"

void
status_gauge_name(struct writer *to, const struct status *s, const char *group,
    const char *name)
{
	writer_text(to, "kvroute_");
	writer_text(to, s->proxy);
	writer_text(to, "_");
	writer_text(to, group);
	writer_text(to, name);
}

void
status_gauge_head(struct writer *to, const struct status *s, const char *group,
    const char *name, const char *help)
{
	writer_text(to, "# HELP ");
	status_gauge_name(to, s, group, name);
	writer_text(to, " ");
	writer_text(to, help);
	writer_text(to, "\n# TYPE ");
	status_gauge_name(to, s, group, name);
	writer_text(to, " gauge\n");
}

void
status_label(struct writer *to, const struct status_upstream *up)
{
	const char *at = up->name, *end = at + up->name_length, *from;

	writer_text(to, "upstream=\"");
	for (from = at; at < end; at++) {
		if (*at != '"' && *at != '\\')
			continue;
		writer_put(to, from, (size_t)(at - from));
		writer_put(to, "\\", 1);
		from = at;
	}
	writer_put(to, from, (size_t)(at - from));
	writer_text(to, "\"");
}

void
status_name_put(struct writer *to, const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (name[i] == '"' || name[i] == '\\')
			writer_put(to, "\\", 1);
		writer_put(to, name + i, 1);
	}
}
