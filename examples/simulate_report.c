/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_report.c - see simulate_report.h.
 *
 * Every number is worked out once, into an array of figures, by one table of
 * names.
 */
#include "simulate_report.h"

#include "engine_model.h"
#include "simulate.h"

#include <inttypes.h>

/* In the order in which they are printed. */
enum figure {
	WORKERS, CAPACITY, SEED, REQUESTS, REFUSED, EMPTY, WAITED,
	PROMPT_TOKENS, HIT_RATIO, PREDICTED_RATIO, ERROR_BLOCKS, MEAN, P50, P90,
	P99, TOKEN_MS, MAKESPAN, STEPS, FIGURES
};
static const struct {
	const char *name;
	int decimals;
} figures[FIGURES] = {
	[WORKERS] = { "workers", 0 },
	[CAPACITY] = { "capacity_tokens", 0 },
	[SEED] = { "seed", 0 },
	[REQUESTS] = { "requests", 0 },
	[REFUSED] = { "refused", 0 },
	[EMPTY] = { "empty", 0 },
	[WAITED] = { "waited", 0 },
	[PROMPT_TOKENS] = { "prompt_tokens", 0 },
	[HIT_RATIO] = { "hit_ratio", 5 },
	[PREDICTED_RATIO] = { "predicted_ratio", 5 },
	[ERROR_BLOCKS] = { "error_blocks", 4 },
	[MEAN] = { "ttft_mean", 4 },
	[P50] = { "ttft_p50", 4 },
	[P90] = { "ttft_p90", 4 },
	[P99] = { "ttft_p99", 4 },
	[TOKEN_MS] = { "token_ms", 3 },
	[MAKESPAN] = { "makespan", 3 },
	[STEPS] = { "steps", 0 }
};

static double
ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* The least value that at least `percent` of n sorted ones do not exceed. */
static double
percentile(const int64_t *sorted, uint64_t n, uint64_t percent)
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
	f[P50] = percentile(sorted, n, 50);
	f[P90] = percentile(sorted, n, 90);
	f[P99] = percentile(sorted, n, 99);
	return KVR_OK;
}

static int
work_out(struct simulation *s, double *f)
{
	const struct simulate_options *o = simulate_options(s);
	const struct simulate_totals *t = simulate_totals(s);

	f[WORKERS] = o->workers;
	f[CAPACITY] = (double)o->capacity_tokens;
	f[SEED] = (double)o->seed;
	f[REQUESTS] = (double)t->requests;
	f[REFUSED] = (double)t->refused;
	f[EMPTY] = (double)t->empty;
	f[WAITED] = (double)t->waited;
	f[PROMPT_TOKENS] = (double)t->tokens;
	f[HIT_RATIO] = ratio((double)t->hit_tokens, (double)t->tokens);
	f[PREDICTED_RATIO] = ratio((double)t->predicted_tokens,
	    (double)t->tokens);
	f[ERROR_BLOCKS] = ratio((double)t->error_tokens / ENGINE_BLOCK,
	    (double)t->finished);
	f[TOKEN_MS] = ratio((double)t->token_ns, (double)t->later_tokens) /
	    1e6;
	f[MAKESPAN] = (double)t->end / 1e9;
	f[STEPS] = (double)t->steps;
	return work_out_first_tokens(s, f);
}

int
simulate_kv(FILE *out, const struct simulate_row *rows, size_t n)
{
	double f[FIGURES];
	size_t i;
	int e, k;

	for (i = 0; i < n; i++) {
		e = work_out(rows[i].simulation, f);
		if (e != KVR_OK)
			return e;
		fprintf(out, "%spolicy=%s\n", i > 0 ? "\n" : "", rows[i].name);
		for (k = 0; k < FIGURES; k++)
			fprintf(out, "%s=%.*f\n", figures[k].name,
			    figures[k].decimals, f[k]);
	}
	return KVR_OK;
}

static void
print_heading(FILE *out, const struct simulate_about *about,
    const struct simulate_options *o)
{
	fprintf(out, "%s: %" PRIu64 " requests in %.0f s", about->trace,
	    about->requests, (double)about->span_ns / 1e9);
	if (about->speed < 1 || about->speed > 1)
		fprintf(out, ", %g times as fast as recorded", about->speed);
	fprintf(out, "\n%" PRIu32 " engine%s, ", o->workers,
	    o->workers == 1 ? "" : "s");
	if (o->capacity_tokens == 0)
		fprintf(out, "endless caches");
	else
		fprintf(out, "caches of %" PRIu64 " tokens",
		    o->capacity_tokens);
	fprintf(out, ", blocks of %d tokens\n\n%-20s %7s %7s %7s %7s %7s %9s "
	    "%9s\n%-20s %7s %31s %9s %9s\n", ENGINE_BLOCK, "policy", "hits",
	    "mean", "p50", "p90", "p99", "per token", "makespan", "", "%",
	    "s to the first token", "ms", "s");
}

static void
print_row(FILE *out, const char *name, const double *f)
{
	fprintf(out, "%-20s %7.2f %7.3f %7.3f %7.3f %7.3f %9.2f %9.1f\n", name,
	    f[HIT_RATIO] * 100, f[MEAN], f[P50], f[P90], f[P99], f[TOKEN_MS],
	    f[MAKESPAN]);
}

/* What makes the figures say less than they seem to. */
static void
print_warnings(FILE *out, const char *name, const double *f)
{
	if (f[REFUSED] > 0)
		fprintf(out, "%s: %.0f requests were larger than an engine's "
		    "memory, and are in no figure\n", name, f[REFUSED]);
	if (f[EMPTY] > 0)
		fprintf(out, "%s: %.0f requests without tokens were given to "
		    "nobody\n", name, f[EMPTY]);
}

int
simulate_table(FILE *out, const struct simulate_about *about,
    const struct simulate_row *rows, size_t n)
{
	double f[FIGURES];
	size_t i;
	int e;

	print_heading(out, about, simulate_options(rows[0].simulation));
	for (i = 0; i < n; i++) {
		e = work_out(rows[i].simulation, f);
		if (e != KVR_OK)
			return e;
		print_row(out, rows[i].name, f);
	}
	for (i = 0; i < n; i++)
		if (work_out(rows[i].simulation, f) == KVR_OK)
			print_warnings(out, rows[i].name, f);
	return KVR_OK;
}
