/* SPDX-License-Identifier: BSD-2-Clause */
/* status_queue.c - see status_queue.h. */
#include "status_queue.h"

#include "status_in.h"

void
queue_json(struct json *j, const struct status_upstream *up)
{
	if (up->queue == 0) {
		json_null(j, "queue");
		return;
	}
	json_map(j, "queue");
	json_whole(j, "waiting", up->waiting);
	json_whole(j, "most", up->queue);
	json_map_end(j);
}

static void
name_put(const struct status *s, struct writer *to)
{
	writer_text(to, "kvroute_");
	writer_text(to, s->proxy);
	writer_text(to, "_waiting");
}

void
queue_metrics(const struct status *s, struct writer *to)
{
	const struct status_upstream *up = s->upstream;
	const struct status_upstream *end = up + s->upstreams;
	bool first = true;

	for (; up < end; up++) {
		if (up->queue == 0)
			continue;
		if (first) {
			writer_text(to, "# HELP ");
			name_put(s, to);
			writer_text(to, " Requests that wait for a worker "
			    "that is not full.\n# TYPE ");
			name_put(s, to);
			writer_text(to, " gauge\n");
		}
		first = false;
		name_put(s, to);
		writer_text(to, "{");
		status_label(to, up);
		writer_text(to, "} ");
		writer_number(to, up->waiting);
		writer_text(to, "\n");
	}
}
