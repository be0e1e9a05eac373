/* SPDX-License-Identifier: BSD-2-Clause */
/* status_times.c - histograms, see status_parts.h. */
#include "status_parts.h"

static const struct histogram nothing;

void
times_json(struct json *j, const struct counters *all)
{
	const struct histogram *h;
	enum histogram_kind i;

	json_map(j, "times");
	for (i = 0; i < HISTOGRAMS; i++) {
		h = all == NULL ? &nothing : &all->histogram[i];
		json_map(j, histogram_forms[i].name);
		json_whole(j, "count", histogram_count(h));
		json_real(j, "sum", (double)h->sum / 1e9);
		json_real(j, "p50", histogram_quantile(i, h, 0.5));
		json_real(j, "p90", histogram_quantile(i, h, 0.9));
		json_real(j, "p99", histogram_quantile(i, h, 0.99));
		json_map_end(j);
	}
	json_map_end(j);
}

/* ------------------------------------------------------------- metrics --- */

static void
sample_of(struct metrics *m, const struct histogram_form *form,
    const char *suffix, const struct status_upstream *up)
{
	sample_begin(m, &(struct metric){ NULL, form->name, suffix }, up);
}

static void
bucket_put(struct metrics *m, const struct histogram_form *form,
    const struct status_upstream *up, size_t i, uint64_t n)
{
	sample_of(m, form, "_seconds_bucket", up);
	if (i < form->bounds)
		metric_label_seconds(m, "le", form->bound[i]);
	else
		metric_label_text(m, "le", "+Inf");
	metric_whole(m, n);
}

/* In Prometheus a bucket includes all those before it. */
static void
samples_put(struct metrics *m, const struct histogram_form *form,
    const struct status_upstream *up, const struct histogram *h)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i <= form->bounds; i++) {
		n += h->count[i];
		bucket_put(m, form, up, i, n);
	}
	sample_of(m, form, "_seconds_sum", up);
	metric_seconds(m, h->sum, 0);
	sample_of(m, form, "_seconds_count", up);
	metric_whole(m, n);
}

void
times_metrics(struct metrics *m, const struct status *s)
{
	const struct histogram_form *form = histogram_forms;
	size_t i, kind;

	for (kind = 0; kind < HISTOGRAMS; kind++, form++) {
		metric_head_histogram(m, &(struct metric){ NULL, form->name,
		    "_seconds" }, form->help);
		for (i = 0; i < s->upstreams; i++)
			if (s->upstream[i].counters != NULL)
				samples_put(m, form, &s->upstream[i],
				    &s->upstream[i].counters->histogram[kind]);
	}
}
