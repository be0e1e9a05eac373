/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * chats_count.c - see chats_count.h.
 *
 * One table of names serves kv, JSON and TSV, so they cannot drift apart.
 */
#include "chats_count.h"

#include <inttypes.h>
#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

enum figure {
	REQUESTS, ERRORS, REFUSED, BROKEN, TIMEOUT, HTTP_4XX, HTTP_5XX, FAILED,
	MALFORMED, LEFT, COUNTED, SECONDS, RATE, USAGES, CACHED_KNOWN,
	USAGE_EVENTS, PROMPT_TOKENS, CACHED_TOKENS, HIT_RATIO, FIRST_MEAN,
	FIRST_P50, FIRST_P90, FIRST_P99, WHOLE_MEAN, WHOLE_P50, WHOLE_P90,
	WHOLE_P99, ANSWER_BYTES, CPU_US, RSS_BEFORE, RSS_AFTER, FIGURES
};
static const struct {
	const char *name;
	int decimals;
} figures[FIGURES] = {
	[REQUESTS] = { "requests", 0 },
	[ERRORS] = { "errors", 0 },
	[REFUSED] = { "refused", 0 },
	[BROKEN] = { "broken", 0 },
	[TIMEOUT] = { "timeout", 0 },
	[HTTP_4XX] = { "http_4xx", 0 },
	[HTTP_5XX] = { "http_5xx", 0 },
	[FAILED] = { "failed", 0 },
	[MALFORMED] = { "malformed", 0 },
	[LEFT] = { "left", 0 },
	[COUNTED] = { "counted", 0 },
	[SECONDS] = { "seconds", 3 },
	[RATE] = { "rate", 1 },
	[USAGES] = { "usages", 0 },
	[CACHED_KNOWN] = { "cached_known", 0 },
	[USAGE_EVENTS] = { "usage_events", 0 },
	[PROMPT_TOKENS] = { "prompt_tokens", 0 },
	[CACHED_TOKENS] = { "cached_tokens", 0 },
	[HIT_RATIO] = { "hit_ratio", 4 },
	[FIRST_MEAN] = { "first_mean_ms", 3 },
	[FIRST_P50] = { "first_p50_ms", 3 },
	[FIRST_P90] = { "first_p90_ms", 3 },
	[FIRST_P99] = { "first_p99_ms", 3 },
	[WHOLE_MEAN] = { "whole_mean_ms", 3 },
	[WHOLE_P50] = { "whole_p50_ms", 3 },
	[WHOLE_P90] = { "whole_p90_ms", 3 },
	[WHOLE_P99] = { "whole_p99_ms", 3 },
	[ANSWER_BYTES] = { "answer_bytes", 0 },
	[CPU_US] = { "cpu_us", 3 },
	[RSS_BEFORE] = { "rss_before", 0 },
	[RSS_AFTER] = { "rss_after", 0 }
};

/* ------------------------------------------------------------- counting --- */

static bool
times_add(struct chats_times *t, int64_t ns)
{
	size_t capacity = t->capacity == 0 ? 1024 : t->capacity * 2;
	int64_t *grown;

	if (t->n == t->capacity) {
		grown = realloc(t->ns, capacity * sizeof(*grown));
		if (grown == NULL)
			return false;
		t->ns = grown;
		t->capacity = capacity;
	}
	t->ns[t->n++] = ns;
	return true;
}

bool
chats_count_answer(struct chats_count *c, const struct chats_answer *a,
    int64_t sent, int64_t now)
{
	int64_t first = a->first_text != 0 ? a->first_text :
	    a->first_event != 0 ? a->first_event : now;

	size_t i;

	c->counted++;
	c->usage_events += a->usage_events;
	c->answer_bytes += a->bytes;
	c->checksum += XXH3_64bits(a->text.data, a->text.length);
	for (i = 0; i < a->n_calls; i++)
		c->checksum += XXH3_64bits(a->calls[i].arguments.data,
		    a->calls[i].arguments.length);
	if (a->usage) {
		c->usages++;
		c->cached_known += a->cached_known;
		c->prompt_tokens += a->prompt_tokens;
		c->cached_tokens += a->cached_tokens;
	}
	c->end = now;
	return times_add(&c->first, first - sent) &&
	    times_add(&c->whole, now - sent);
}

void
chats_count_free(struct chats_count *c)
{
	free(c->first.ns);
	free(c->whole.ns);
}

uint64_t
chats_count_errors(const struct chats_count *c)
{
	uint64_t sum = 0;
	int i;

	for (i = CHATS_OK + 1; i < CHATS_OUTCOMES; i++)
		sum += c->outcomes[i];
	return sum;
}

/* -------------------------------------------------------------- figures --- */

static double
ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

static int
compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* A quantile of sorted times. */
static double
quantile_ms(const struct chats_times *t, double share)
{
	size_t i = (size_t)(share * (double)t->n);

	return t->n == 0 ? 0 :
	    (double)t->ns[i < t->n ? i : t->n - 1] / 1e6;
}

/* Mean, and three quantiles, into four figures. */
static void
work_out_times(struct chats_times *t, double *f)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < t->n; i++)
		sum += (double)t->ns[i];
	if (t->n > 0)
		qsort(t->ns, t->n, sizeof(*t->ns), compare);
	f[0] = ratio(sum, (double)t->n) / 1e6;
	f[1] = quantile_ms(t, 0.5);
	f[2] = quantile_ms(t, 0.9);
	f[3] = quantile_ms(t, 0.99);
}

static void
work_out(struct chats_count *c, double *f)
{
	uint64_t all = c->outcomes[CHATS_OK] + c->outcomes[CHATS_LEFT] +
	    chats_count_errors(c);
	int i;

	f[REQUESTS] = (double)all;
	f[ERRORS] = (double)chats_count_errors(c);
	for (i = CHATS_REFUSED; i <= CHATS_LEFT; i++)
		f[REFUSED + i - CHATS_REFUSED] = (double)c->outcomes[i];
	f[COUNTED] = (double)c->counted;
	f[SECONDS] = c->counted == 0 ? 0 : (double)(c->end - c->begin) / 1e9;
	f[RATE] = ratio((double)c->counted, f[SECONDS]);
	f[USAGES] = (double)c->usages;
	f[CACHED_KNOWN] = (double)c->cached_known;
	f[USAGE_EVENTS] = (double)c->usage_events;
	f[PROMPT_TOKENS] = (double)c->prompt_tokens;
	f[CACHED_TOKENS] = (double)c->cached_tokens;
	f[HIT_RATIO] = ratio(f[CACHED_TOKENS], f[PROMPT_TOKENS]);
	work_out_times(&c->first, &f[FIRST_MEAN]);
	work_out_times(&c->whole, &f[WHOLE_MEAN]);
	f[ANSWER_BYTES] = (double)c->answer_bytes;
	f[CPU_US] = ratio((double)(c->after.cpu_ns - c->before.cpu_ns) / 1e3,
	    (double)c->counted);
	f[RSS_BEFORE] = (double)c->before.rss_bytes;
	f[RSS_AFTER] = (double)c->after.rss_bytes;
}

/* Figures of processes only with --pid. */
static bool
shown(const struct chats_count *c, int i)
{
	return c->processes || i < CPU_US || i > RSS_AFTER;
}

static void
print_kv(FILE *out, const struct chats_count *c, const double *f)
{
	int i;

	for (i = 0; i < FIGURES; i++)
		if (shown(c, i))
			fprintf(out, "%s=%.*f\n", figures[i].name,
			    figures[i].decimals, f[i]);
	fprintf(out, "checksum=%016" PRIx64 "\n", c->checksum);
}

static void
print_json(FILE *out, const struct chats_count *c, const double *f)
{
	int i;

	putc('{', out);
	for (i = 0; i < FIGURES; i++)
		if (shown(c, i))
			fprintf(out, "\"%s\": %.*f, ", figures[i].name,
			    figures[i].decimals, f[i]);
	fprintf(out, "\"checksum\": \"%016" PRIx64 "\"}\n", c->checksum);
}

static void
print_tsv(FILE *out, const struct chats_count *c, const double *f)
{
	int i;

	for (i = 0; i < FIGURES; i++)
		if (shown(c, i))
			fprintf(out, "%s\t", figures[i].name);
	fputs("checksum\n", out);
	for (i = 0; i < FIGURES; i++)
		if (shown(c, i))
			fprintf(out, "%.*f\t", figures[i].decimals, f[i]);
	fprintf(out, "%016" PRIx64 "\n", c->checksum);
}

static void
print_text(FILE *out, const struct chats_options *o,
    const struct chats_count *c, const double *f)
{
	int i;

	fprintf(out, "%.0f requests to %s%s", f[REQUESTS], o->url, o->path);
	if (f[SECONDS] > 0)
		fprintf(out, ", %.0f of them counted: %.1f a second for "
		    "%.1f s", f[COUNTED], f[RATE], f[SECONDS]);
	fprintf(out, "\nerrors       %10.0f", f[ERRORS]);
	for (i = REFUSED; i < LEFT; i++)
		if (f[i] > 0)
			fprintf(out, "  %s %.0f", figures[i].name, f[i]);
	if (f[LEFT] > 0)
		fprintf(out, "\nleft early   %10.0f", f[LEFT]);
	fprintf(out, "\nhit ratio    %10.2f %%  (%.0f of %.0f prompt tokens "
	    "cached; reported by %.0f responses)\n", f[HIT_RATIO] * 100,
	    f[CACHED_TOKENS], f[PROMPT_TOKENS], f[CACHED_KNOWN]);
	fprintf(out, "%-12s %10s %10s %10s %10s ms\n", "", "mean", "p50",
	    "p90", "p99");
	fprintf(out, "%-12s %10.2f %10.2f %10.2f %10.2f\n", "first token",
	    f[FIRST_MEAN], f[FIRST_P50], f[FIRST_P90], f[FIRST_P99]);
	fprintf(out, "%-12s %10.2f %10.2f %10.2f %10.2f\n", "response",
	    f[WHOLE_MEAN], f[WHOLE_P50], f[WHOLE_P90], f[WHOLE_P99]);
	if (c->processes)
		fprintf(out, "processes    %10.1f us of CPU time a request, "
		    "RSS %.1f MB, then %.1f MB\n", f[CPU_US],
		    f[RSS_BEFORE] / 1e6, f[RSS_AFTER] / 1e6);
}

void
chats_count_print(FILE *out, const struct chats_options *o,
    struct chats_count *c)
{
	double f[FIGURES];

	work_out(c, f);
	switch (o->format) {
	case CHATS_KV:
		print_kv(out, c, f);
		break;
	case CHATS_JSON:
		print_json(out, c, f);
		break;
	case CHATS_TSV:
		print_tsv(out, c, f);
		break;
	case CHATS_TEXT:
	case CHATS_FORMATS:
		print_text(out, o, c, f);
		break;
	}
}
