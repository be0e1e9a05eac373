/* SPDX-License-Identifier: BSD-2-Clause */
/* status_health.c - see status_health.h. */
#include "status_health.h"

#include <string.h>

#include "status_in.h"

void
health_json(struct json *j, const struct status_upstream *up, const char *name,
    size_t n)
{
	size_t i;

	for (i = 0; i < up->n_healths; i++)
		if (up->healths[i].name_length == n &&
		    memcmp(up->healths[i].name, name, n) == 0)
			break;
	if (i == up->n_healths)
		json_null(j, "health");
	else
		json_text(j, "health", up->healths[i].what);
}

/* ------------------------------------------------------------- metrics --- */

static const struct {
	const char *name, *help;
	const char *words[2]; /* for which it is 1 */
} figures[] = {
	{ "gray", "Is the worker left alone, since it is slow or failing?",
	    { "slow", "failing" } },
	{ "warming", "Does it get a part of its load only?",
	    { "warming", "warming" } }
};

static void
sample_put(const struct status *s, const struct status_upstream *up,
    const struct status_health *h, size_t i, struct writer *to)
{
	metric_sample(to, &(struct metric){ .proxy = s->proxy,
	    .name = figures[i].name }, up);
	writer_text(to, ",worker=\"");
	status_name_put(to, h->name, h->name_length);
	writer_text(to, strcmp(h->what, figures[i].words[0]) == 0 ||
	    strcmp(h->what, figures[i].words[1]) == 0 ? "\"} 1\n" :
	    "\"} 0\n");
}

void
health_metrics(const struct status *s, struct writer *to)
{
	size_t i, u, k, all = 0;

	for (u = 0; u < s->upstreams; u++)
		all += s->upstream[u].n_healths;
	for (i = 0; all > 0 && i < sizeof(figures) / sizeof(figures[0]); i++) {
		metric_head(to, &(struct metric){ .proxy = s->proxy,
		    .name = figures[i].name }, "gauge", figures[i].help);
		for (u = 0; u < s->upstreams; u++)
			for (k = 0; k < s->upstream[u].n_healths; k++)
				sample_put(s, &s->upstream[u],
				    &s->upstream[u].healths[k], i, to);
	}
}
