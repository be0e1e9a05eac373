/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_report.c - see simulate_report.h: the numbers, and formats for
 * programs.
 */
#include "simulate_figures.h"

#include "charts_json.h"
#include "engine_model.h"
#include "returns_report.h"
#include "sessions_report.h"
#include "simulate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	int decimals;
} figures[FIGURES] = {
	[WORKERS] = { "workers", 0 },
	[CAPACITY] = { "capacity_tokens", 0 },
	[BLOCK] = { "engine_block", 0 },
	[REPLICAS] = { "replicas", 0 },
	[SEED] = { "seed", 0 },
	[REQUESTS] = { "requests", 0 },
	[REFUSED] = { "refused", 0 },
	[EMPTY] = { "empty", 0 },
	[WAITED] = { "waited", 0 },
	[PROMPT_TOKENS] = { "prompt_tokens", 0 },
	[HIT_RATIO] = { "hit_ratio", 5 },
	[PREDICTED_RATIO] = { "predicted_ratio", 5 },
	[ERROR_BLOCKS] = { "error_blocks", 4 },
	[OVER_BLOCKS] = { "over_blocks", 4 },
	[UNDER_BLOCKS] = { "under_blocks", 4 },
	[MEAN] = { "ttft_mean", 4 },
	[P50] = { "ttft_p50", 4 },
	[P90] = { "ttft_p90", 4 },
	[P99] = { "ttft_p99", 4 },
	[TOKEN_MS] = { "token_ms", 3 },
	[MAKESPAN] = { "makespan", 3 },
	[STEPS] = { "steps", 0 },
	[RESETS] = { "resets", 0 },
	[REPORTS] = { "reports", 0 },
	[UNREPORTED] = { "unreported", 0 },
	[EXPIRED] = { "expired", 0 },
	[EVICTED_CAPACITY] = { "evicted_capacity", 0 },
	[EVICTED_REGION] = { "evicted_region", 0 },
	[TRUNCATED] = { "truncated", 0 },
	[REQUEST_MEAN] = { "request_mean", 4 },
	[REQUEST_P90] = { "request_p90", 4 },
	[REQUEST_P99] = { "request_p99", 4 },
	[GOODPUT] = { "goodput", 5 },
	[WORST_SHARE] = { "worst_share", 4 },
	[TTFT_REGRET] = { "ttft_regret", 4 },
	[REQUEST_REGRET] = { "request_regret", 4 },
	[PREEMPTED] = { "preempted", 0 },
	[RETRIED] = { "retried", 0 },
	[LOST] = { "lost", 0 },
	[UTILISATION] = { "utilisation", 4 },
	[MESSAGES] = { "messages", 0 },
	[MESSAGES_LOST] = { "messages_lost", 0 },
	[MESSAGES_LATE] = { "messages_late", 0 },
	[LEASES_REPAIRED] = { "leases_repaired", 0 },
	[EVENT_BATCHES] = { "event_batches", 0 },
	[EVENT_BATCHES_LOST] = { "event_batches_lost", 0 },
	[EVENT_GAPS] = { "event_gaps", 0 },
	[BYPASSED] = { "bypassed", 0 }
};

static double
share_of(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* The least of n sorted values that `percent` of them do not exceed. */
static double
find_percentile(const int64_t *sorted, uint64_t n, uint64_t percent)
{
	return (double)sorted[(n * percent + 99) / 100 - 1] / 1e9;
}

static int
work_out_first_tokens(struct simulation *s, double *f)
{
	uint64_t n = simulate_totals(s)->finished, i;
	const int64_t *sorted = simulate_first_tokens(s);
	double sum = 0;

	f[MEAN] = f[P50] = f[P90] = f[P99] = 0;
	if (n == 0)
		return KVR_OK;
	if (sorted == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < n; i++)
		sum += (double)sorted[i];
	f[MEAN] = sum / (double)n / 1e9;
	f[P50] = find_percentile(sorted, n, 50);
	f[P90] = find_percentile(sorted, n, 90);
	f[P99] = find_percentile(sorted, n, 99);
	return KVR_OK;
}

/* Times of whole requests, and load. */
static int
work_out_served(const struct simulation *s, double *f)
{
	const struct simulate_totals *t = simulate_totals(s);
	struct simulate_served served;
	int e = simulate_served(s, &served);

	f[REQUEST_MEAN] = served.mean;
	f[REQUEST_P90] = served.p90;
	f[REQUEST_P99] = served.p99;
	f[GOODPUT] = served.goodput;
	f[WORST_SHARE] = served.worst_share;
	f[PREEMPTED] = (double)t->preempted;
	f[RETRIED] = (double)t->retried;
	f[LOST] = (double)t->lost;
	f[UTILISATION] = served.utilisation;
	return e;
}

/* The library's counters, summed over all regions. */
static int
work_out_index(const struct simulation *s, double *f)
{
	struct kvr_stats t;
	int e = simulate_index_stats(s, &t);

	if (e != KVR_OK)
		return e;
	f[REPORTS] = (double)t.calibration.reports;
	f[UNREPORTED] = (double)t.calibration.unreported;
	f[EXPIRED] = (double)t.expired;
	f[EVICTED_CAPACITY] = (double)t.evicted_capacity;
	f[EVICTED_REGION] = (double)t.evicted_region;
	f[TRUNCATED] = (double)t.truncated;
	return KVR_OK;
}

/* Between routers. */
static void
work_out_exchange(const struct simulation *s, double *f)
{
	const struct simulate_exchanged *x = simulate_exchanged(s);

	f[MESSAGES] = (double)x->messages;
	f[MESSAGES_LOST] = (double)x->lost;
	f[MESSAGES_LATE] = (double)x->late;
	f[LEASES_REPAIRED] = (double)x->repaired;
}

/* From engines. */
static void
work_out_events(const struct simulation *s, double *f)
{
	struct simulate_heard heard;

	simulate_heard(s, &heard);
	f[EVENT_BATCHES] = (double)heard.batches;
	f[EVENT_BATCHES_LOST] = (double)heard.lost;
	f[EVENT_GAPS] = (double)heard.gaps;
	f[BYPASSED] = (double)simulate_totals(s)->bypassed;
}

static double
simulate_mean_blocks(uint64_t tokens, uint64_t requests)
{
	return share_of((double)tokens / ENGINE_BLOCK, (double)requests);
}

static int
simulate_work_out(struct simulation *s, double f[FIGURES])
{
	const struct simulate_options *o = simulate_options(s);
	const struct simulate_totals *t = simulate_totals(s);
	uint64_t routed = t->finished - t->bypassed;
	int e;

	f[WORKERS] = (double)o->workers;
	f[CAPACITY] = (double)o->capacity_tokens;
	f[BLOCK] = (double)o->engine_block;
	f[REPLICAS] = (double)o->replicas;
	f[SEED] = (double)o->seed;
	f[REQUESTS] = (double)t->requests;
	f[REFUSED] = (double)t->refused;
	f[EMPTY] = (double)t->empty;
	f[WAITED] = (double)t->waited;
	f[PROMPT_TOKENS] = (double)t->tokens;
	f[HIT_RATIO] = share_of((double)t->hit_tokens, (double)t->tokens);
	f[PREDICTED_RATIO] = share_of((double)t->predicted_tokens,
	    (double)t->tokens);
	f[ERROR_BLOCKS] = simulate_mean_blocks(t->over_tokens + t->under_tokens,
	    routed);
	f[OVER_BLOCKS] = simulate_mean_blocks(t->over_tokens, routed);
	f[UNDER_BLOCKS] = simulate_mean_blocks(t->under_tokens, routed);
	f[TOKEN_MS] = share_of((double)t->token_ns, (double)t->later_tokens) /
	    1e6;
	f[MAKESPAN] = (double)t->end / 1e9;
	f[STEPS] = (double)t->steps;
	f[RESETS] = (double)t->resets;
	work_out_exchange(s, f);
	work_out_events(s, f);
	e = work_out_index(s, f);
	if (e == KVR_OK)
		e = work_out_served(s, f);
	return e == KVR_OK ? work_out_first_tokens(s, f) : e;
}

/* Each policy's mean over the least mean of all that served requests. */
static void
work_out_regret(figure_row *f, size_t n, enum figure mean, enum figure result)
{
	double best = 0;
	size_t i;

	for (i = 0; i < n; i++)
		if (f[i][mean] > 0 && (best <= 0 || f[i][mean] < best))
			best = f[i][mean];
	for (i = 0; i < n; i++)
		f[i][result] = share_of(f[i][mean], best);
}

figure_row *
simulate_figures(const struct simulate_row *rows, size_t n, int *error)
{
	figure_row *f = calloc(n, sizeof(*f));
	size_t i;

	*error = f == NULL ? KVR_ENOMEM : KVR_OK;
	for (i = 0; *error == KVR_OK && i < n; i++)
		*error = simulate_work_out(rows[i].simulation, f[i]);
	if (*error != KVR_OK) {
		free(f);
		return NULL;
	}
	work_out_regret(f, n, MEAN, TTFT_REGRET);
	work_out_regret(f, n, REQUEST_MEAN, REQUEST_REGRET);
	return f;
}

/* Without an SLO there is no goodput. */
static bool
has_figure(const struct simulate_row *row, int figure)
{
	return figure != GOODPUT ||
	    simulate_options(row->simulation)->slo_first_ns > 0;
}

int
simulate_kv(FILE *out, const struct simulate_row *rows, size_t n)
{
	size_t i;
	int e, k;
	figure_row *f = simulate_figures(rows, n, &e);

	for (i = 0; f != NULL && i < n; i++) {
		fprintf(out, "%spolicy=%s\n", i > 0 ? "\n" : "", rows[i].name);
		for (k = 0; k < FIGURES; k++)
			if (has_figure(&rows[i], k))
				fprintf(out, "%s=%.*f\n", figures[k].name,
				    figures[k].decimals, f[i][k]);
		sessions_kv(out, rows[i].sessions);
		e = e == KVR_OK ? returns_kv(out, rows[i].simulation) : e;
	}
	free(f);
	return e;
}

/* Names of policies have no characters to escape. */
static int
print_json(FILE *out, const struct simulate_row *rows, size_t n, bool charts)
{
	size_t i;
	int e, k;
	figure_row *f = simulate_figures(rows, n, &e);

	for (i = 0; f != NULL && i < n; i++) {
		fprintf(out, "{\"policy\":\"%s\"", rows[i].name);
		for (k = 0; k < FIGURES; k++)
			if (has_figure(&rows[i], k))
				fprintf(out, ",\"%s\":%.*f", figures[k].name,
				    figures[k].decimals, f[i][k]);
		sessions_json(out, rows[i].sessions);
		e = e == KVR_OK ? returns_json(out, rows[i].simulation) : e;
		if (charts && e == KVR_OK)
			e = charts_json(out, rows[i].simulation);
		fputs("}\n", out);
	}
	free(f);
	return e;
}

int
simulate_json(FILE *out, const struct simulate_row *rows, size_t n)
{
	return print_json(out, rows, n, false);
}

int
simulate_json_charts(FILE *out, const struct simulate_row *rows, size_t n)
{
	return print_json(out, rows, n, true);
}
