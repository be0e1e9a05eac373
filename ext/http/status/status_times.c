/* SPDX-License-Identifier: BSD-2-Clause */
/* status_times.c - see status_times.h. */
#include "status_times.h"

#include "status_in.h"

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

struct series {
	struct writer *to;
	const char *proxy;
	const struct histogram_form *form;
};

static void
sample_begin(const struct series *s, const char *suffix,
    const struct status_upstream *up)
{
	metric_sample(s->to, &(struct metric){ s->proxy, NULL, s->form->name,
	    suffix }, up);
}

/* Nanoseconds as seconds, with no more decimals than it takes. */
static void
seconds_put(struct writer *to, uint64_t ns)
{
	uint64_t part = ns % 1000000000, one = 100000000;
	char digit;

	writer_number(to, ns / 1000000000);
	if (part > 0)
		writer_text(to, ".");
	for (; part > 0; part %= one, one /= 10) {
		digit = (char)('0' + part / one);
		writer_put(to, &digit, 1);
	}
}

static void
bucket_put(const struct series *s, const struct status_upstream *up, size_t i,
    uint64_t n)
{
	sample_begin(s, "_seconds_bucket", up);
	writer_text(s->to, ",le=\"");
	if (i < s->form->bounds)
		seconds_put(s->to, s->form->bound[i]);
	else
		writer_text(s->to, "+Inf");
	writer_text(s->to, "\"");
	metric_number(s->to, n);
}

/* Each bucket counts those before it too. */
static void
samples_put(const struct series *s, const struct status_upstream *up,
    const struct histogram *h)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i <= s->form->bounds; i++) {
		n += h->count[i];
		bucket_put(s, up, i, n);
	}
	sample_begin(s, "_seconds_sum", up);
	writer_text(s->to, "} ");
	seconds_put(s->to, h->sum);
	writer_text(s->to, "\n");
	sample_begin(s, "_seconds_count", up);
	metric_number(s->to, n);
}

void
times_metrics(const struct status *s, struct writer *to)
{
	size_t i, kind;

	for (kind = 0; kind < HISTOGRAMS; kind++) {
		const struct series of = { to, s->proxy,
		    &histogram_forms[kind] };

		metric_head(to, &(struct metric){ s->proxy, NULL,
		    of.form->name, "_seconds" }, "histogram", of.form->help);
		for (i = 0; i < s->upstreams; i++)
			if (s->upstream[i].counters != NULL)
				samples_put(&of, &s->upstream[i],
				    &s->upstream[i].counters->histogram[kind]);
	}
}
