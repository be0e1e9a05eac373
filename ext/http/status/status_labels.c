/* SPDX-License-Identifier: BSD-2-Clause */
/* status_labels.c - names and labels of metrics, see status_in.h. */
#include "status_in.h"

static void
name_put(struct writer *to, const struct metric *m)
{
	writer_text(to, "kvroute_");
	writer_text(to, m->proxy);
	writer_text(to, "_");
	if (m->group != NULL) {
		writer_text(to, m->group);
		writer_text(to, "_");
	}
	writer_text(to, m->name);
	if (m->suffix != NULL)
		writer_text(to, m->suffix);
}

void
metric_head(struct writer *to, const struct metric *m, const char *type,
    const char *help)
{
	writer_text(to, "# HELP ");
	name_put(to, m);
	writer_text(to, " ");
	writer_text(to, help);
	writer_text(to, "\n# TYPE ");
	name_put(to, m);
	writer_text(to, " ");
	writer_text(to, type);
	writer_text(to, "\n");
}

void
metric_sample(struct writer *to, const struct metric *m,
    const struct status_upstream *up)
{
	name_put(to, m);
	writer_text(to, "{");
	status_label(to, up);
}

void
metric_number(struct writer *to, uint64_t n)
{
	writer_text(to, "} ");
	writer_number(to, n);
	writer_text(to, "\n");
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
