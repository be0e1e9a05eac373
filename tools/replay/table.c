/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table.c - see table.h.
 *
 * Every number is computed once, into an array by enum figure. kv and JSON
 * share one table of names.
 */
#include "table.h"

#include "policy_run.h"

#include <inttypes.h>
#include <stdbool.h>

const char *const report_format_names[REPORT_FORMATS] = {
	[REPORT_TEXT] = "text",
	[REPORT_KV] = "kv",
	[REPORT_JSON] = "json"
};

/* In output order. */
enum figure {
	WORKERS, BLOCK, TTL, REQUESTS, UNROUTED, PROMPT_TOKENS, PROMPT_BLOCKS,
	HIT_RATIO, LONGEST_RATIO, CHECKSUM, HASH_NS, DECISION_NS,
	BUSIEST_REQUESTS, BUSIEST_TOKENS, FIRST_TOKEN_MS, REGION_BYTES,
	HELD_BLOCKS, EXPIRED, EVICTED, TRUNCATED, OVERDUE, FIGURES
};
static const struct {
	const char *name;
	int decimals;
} figures[FIGURES] = {
	[WORKERS] = { "workers", 0 },
	[BLOCK] = { "block", 0 },
	[TTL] = { "ttl", 3 },
	[REQUESTS] = { "requests", 0 },
	[UNROUTED] = { "unrouted", 0 },
	[PROMPT_TOKENS] = { "prompt_tokens", 0 },
	[PROMPT_BLOCKS] = { "prompt_blocks", 0 },
	[HIT_RATIO] = { "hit_ratio", 4 },
	[LONGEST_RATIO] = { "longest_ratio", 4 },
	[CHECKSUM] = { "checksum", 0 }, /* printed as text */
	[HASH_NS] = { "hash_ns", 1 },
	[DECISION_NS] = { "decision_ns", 1 },
	[BUSIEST_REQUESTS] = { "busiest_requests", 3 },
	[BUSIEST_TOKENS] = { "busiest_tokens", 3 },
	[FIRST_TOKEN_MS] = { "first_token_ms", 1 },
	[REGION_BYTES] = { "region_bytes", 0 },
	[HELD_BLOCKS] = { "held_blocks", 0 },
	[EXPIRED] = { "expired", 0 },
	[EVICTED] = { "evicted_region", 0 },
	[TRUNCATED] = { "truncated", 0 },
	[OVERDUE] = { "overdue_leases", 0 }
};

static double
share_of(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* The busiest worker relative to the mean, by requests and by tokens. */
static void
work_out_spread(const struct pass *r, double *f)
{
	const struct pass_worker *w = pass_workers(r);
	uint32_t n = pass_options(r)->workers, i;
	double requests = 0, most_requests = 0, tokens = 0, most_tokens = 0;

	for (i = 0; i < n; i++) {
		double q = (double)w[i].requests;
		double t = (double)w[i].computed_tokens;

		requests += q;
		tokens += t;
		most_requests = q > most_requests ? q : most_requests;
		most_tokens = t > most_tokens ? t : most_tokens;
	}
	f[BUSIEST_REQUESTS] = share_of(most_requests * n, requests);
	f[BUSIEST_TOKENS] = share_of(most_tokens * n, tokens);
}

static int
table_work_out(const struct report *about, const struct pass *r, double *f)
{
	const struct pass_totals *t = pass_totals(r);
	double requests = (double)t->requests, tokens = (double)t->tokens;
	struct kvr_stats s;
	int e;

	s.size = sizeof(s);
	e = kvr_stats_get(pass_region(r), &s);
	if (e != KVR_OK)
		return e;
	f[WORKERS] = pass_options(r)->workers;
	f[BLOCK] = about->region->block_size;
	f[TTL] = about->region->ttl_ns < 0 ? -1 :
	    (double)about->region->ttl_ns / 1e9;
	f[REQUESTS] = requests;
	f[UNROUTED] = (double)t->unrouted;
	f[PROMPT_TOKENS] = tokens;
	f[PROMPT_BLOCKS] = (double)t->blocks;
	f[HIT_RATIO] = share_of((double)t->hit_tokens, tokens);
	f[LONGEST_RATIO] = share_of((double)t->longest_tokens, tokens);
	f[CHECKSUM] = 0;
	f[HASH_NS] = about->hash_ns;
	f[DECISION_NS] = share_of((double)t->decision_ns, requests);
	f[FIRST_TOKEN_MS] = share_of(t->first_token_ns, requests) / 1e6;
	f[REGION_BYTES] = (double)s.region_bytes;
	f[HELD_BLOCKS] = (double)s.held_blocks;
	f[EXPIRED] = (double)s.expired;
	f[EVICTED] = (double)s.evicted_region;
	f[TRUNCATED] = (double)s.truncated;
	f[OVERDUE] = (double)t->overdue;
	work_out_spread(r, f);
	return KVR_OK;
}

static void
table_print_kv(FILE *out, const struct pass *r, const double *f)
{
	int i;

	fprintf(out, "policy=%s\n", pass_policy_names[pass_options(r)->policy]);
	for (i = 0; i < FIGURES; i++)
		if (i == CHECKSUM)
			fprintf(out, "checksum=%016" PRIx64 "\n",
			    pass_totals(r)->checksum);
		else
			fprintf(out, "%s=%.*f\n", figures[i].name,
			    figures[i].decimals, f[i]);
}

static void
table_print_json(FILE *out, const struct pass *r, const double *f)
{
	int i;

	fprintf(out, "{\"policy\": \"%s\"",
	    pass_policy_names[pass_options(r)->policy]);
	for (i = 0; i < FIGURES; i++)
		if (i == CHECKSUM)
			fprintf(out, ", \"checksum\": \"%016" PRIx64 "\"",
			    pass_totals(r)->checksum);
		else
			fprintf(out, ", \"%s\": %.*f", figures[i].name,
			    figures[i].decimals, f[i]);
	fprintf(out, "}\n");
}

/* 12034567 as 12,034,567. */
static void
print_grouped(FILE *out, uint64_t n)
{
	char digits[32];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, n), i;

	for (i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			putc(',', out);
		putc(digits[i], out);
	}
}

static void
table_print_heading(FILE *out, const struct report *about, uint32_t workers)
{
	const struct kvr_options *o = about->region;

	fprintf(out, "%s: ", about->trace);
	print_grouped(out, about->requests);
	fprintf(out, " requests in %.0f s, ", (double)about->span_ms / 1e3);
	print_grouped(out, about->tokens);
	fprintf(out, " prompt tokens\n%" PRIu32 " worker%s, blocks of %" PRIu32
	    " tokens, ", workers, workers == 1 ? "" : "s", o->block_size);
	if (o->ttl_ns < 0)
		fprintf(out, "TTL endless");
	else
		fprintf(out, "TTL %g s", (double)o->ttl_ns / 1e9);
	if (about->prefill_rate != 0)
		fprintf(out, "; prefill %" PRIu64 ", decode %" PRIu64
		    " tokens/s", about->prefill_rate, about->decode_rate);
	fprintf(out, "\nhashing %.2f us per request\n\n",
	    about->hash_ns / 1e3);
	fprintf(out, "%-12s %10s %10s %12s %12s%s\n", "policy", "hit ratio",
	    "best", "decision", "busiest", about->prefill_rate == 0 ? "" :
	    "  first token");
}

static void
table_print_row(FILE *out, const struct pass *r, const double *f)
{
	fprintf(out, "%-12s %8.2f %% %8.2f %% %9.2f us %10.2f x",
	    pass_policy_names[pass_options(r)->policy], f[HIT_RATIO] * 100,
	    f[LONGEST_RATIO] * 100, f[DECISION_NS] / 1e3, f[BUSIEST_TOKENS]);
	if (pass_options(r)->prefill_rate != 0)
		fprintf(out, " %9.0f ms", f[FIRST_TOKEN_MS]);
	putc('\n', out);
}

static void
print_legend(FILE *out, bool modelled)
{
	fprintf(out, "\nhit ratio: share of prompt tokens predicted to be "
	    "cached on the chosen worker;\nbest: on any worker. decision: "
	    "mean time, without hashing. busiest: prompt\ntokens to compute "
	    "on the busiest worker, relative to the mean.%s\n", modelled ?
	    " first token:\nmean time until it, at these rates." : "");
}

/* Conditions that distort the figures. */
static void
table_print_warnings(FILE *out, const struct pass *r, const double *f)
{
	const char *policy = pass_policy_names[pass_options(r)->policy];

	if (f[EVICTED] > 0 || f[TRUNCATED] > 0)
		fprintf(out, "%s: the region was full (%.0f entries evicted, "
		    "%.0f prompts truncated); try a larger --memory\n",
		    policy, f[EVICTED], f[TRUNCATED]);
	if (f[OVERDUE] > 0)
		fprintf(out, "%s: %.0f leases expired: the modelled engines "
		    "are overloaded\n", policy, f[OVERDUE]);
	if (f[UNROUTED] > 0)
		fprintf(out, "%s: %.0f requests without tokens were not "
		    "routed\n", policy, f[UNROUTED]);
}

int
report_print(FILE *out, enum report_format format, const struct report *about,
    struct pass *const *passes, size_t n)
{
	double f[FIGURES];
	size_t i;
	int e;

	if (format == REPORT_TEXT)
		table_print_heading(out, about,
		    pass_options(passes[0])->workers);
	for (i = 0; i < n; i++) {
		e = table_work_out(about, passes[i], f);
		if (e != KVR_OK)
			return e;
		if (format == REPORT_KV && i > 0)
			putc('\n', out);
		if (format == REPORT_KV)
			table_print_kv(out, passes[i], f);
		else if (format == REPORT_JSON)
			table_print_json(out, passes[i], f);
		else
			table_print_row(out, passes[i], f);
	}
	if (format != REPORT_TEXT)
		return KVR_OK;
	print_legend(out, about->prefill_rate != 0);
	for (i = 0; i < n; i++)
		if (table_work_out(about, passes[i], f) == KVR_OK)
			table_print_warnings(out, passes[i], f);
	return KVR_OK;
}
