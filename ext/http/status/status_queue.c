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

void
queue_metrics(const struct status *s, struct writer *to)
{
	const struct metric m = { .proxy = s->proxy, .name = "waiting" };
	const struct status_upstream *up = s->upstream;
	const struct status_upstream *end = up + s->upstreams;
	bool first = true;

	for (; up < end; up++) {
		if (up->queue == 0)
			continue;
		if (first)
			metric_head(to, &m, "gauge", "Requests that wait for "
			    "a worker that is not full.");
		first = false;
		metric_sample(to, &m, up);
		metric_number(to, up->waiting);
	}
}
