/* SPDX-License-Identifier: BSD-2-Clause */
/* status_loads.c - see status_loads.h. */
#include "status_loads.h"

#include "status_in.h"

static const struct status_load *
load_of(const struct status_upstream *up, uint64_t worker)
{
	size_t i;

	for (i = 0; i < up->n_loads; i++)
		if (up->loads[i].worker == worker)
			return &up->loads[i];
	return NULL;
}

void
loads_json(struct json *j, const struct status_upstream *up, uint64_t worker)
{
	const struct status_load *l = load_of(up, worker);

	if (l == NULL) {
		json_null(j, "polled");
		return;
	}
	json_map(j, "polled");
	json_whole(j, "running", l->running);
	json_whole(j, "waiting", l->waiting);
	if (l->usage < 0)
		json_null(j, "usage");
	else
		json_real(j, "usage", l->usage);
	json_whole(j, "surplus", l->surplus);
	json_real(j, "age", l->age);
	json_map_end(j);
}

/* ------------------------------------------------------------- metrics --- */

/* With three decimals. */
static void
put_decimal(struct writer *to, double value)
{
	const uint64_t n = value > 0 ? (uint64_t)(value * 1000 + 0.5) : 0;

	writer_number(to, n / 1000);
	writer_text(to, n % 1000 < 10 ? ".00" : n % 1000 < 100 ? ".0" : ".");
	writer_number(to, n % 1000);
}

static const struct {
	const char *name, *help;
} figures[] = {
	{ "running", "Requests that the engine says it runs." },
	{ "waiting", "Requests that the engine says wait there." },
	{ "usage", "Share of its KV cache in use, as the engine says." },
	{ "surplus", "Of these requests, those that were not booked." },
	{ "age_seconds", "Since the engine said so." }
};
enum { FIGURES = sizeof(figures) / sizeof(figures[0]) };

static double
figure_of(const struct status_load *l, size_t i)
{
	const double values[FIGURES] = { (double)l->running,
	    (double)l->waiting, l->usage, (double)l->surplus, l->age };

	return values[i];
}

static void
sample_put(const struct status *s, const struct status_upstream *up,
    const struct status_load *l, size_t i, struct writer *to)
{
	metric_sample(to, &(struct metric){ s->proxy, "polled",
	    figures[i].name, NULL }, up);
	writer_text(to, ",worker=\"");
	status_name_put(to, l->name, l->name_length);
	writer_text(to, "\",rank=\"");
	writer_number(to, l->rank);
	writer_text(to, "\"} ");
	put_decimal(to, figure_of(l, i));
	writer_text(to, "\n");
}

void
loads_metrics(const struct status *s, struct writer *to)
{
	size_t i, u, k, all = 0;

	for (u = 0; u < s->upstreams; u++)
		all += s->upstream[u].n_loads;
	for (i = 0; all > 0 && i < FIGURES; i++) {
		metric_head(to, &(struct metric){ s->proxy, "polled",
		    figures[i].name, NULL }, "gauge", figures[i].help);
		for (u = 0; u < s->upstreams; u++)
			for (k = 0; k < s->upstream[u].n_loads; k++)
				if (figure_of(&s->upstream[u].loads[k], i) >= 0)
					sample_put(s, &s->upstream[u],
					    &s->upstream[u].loads[k], i, to);
	}
}
