/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * simulate_table.c - the numbers for people: the run, two tables with the
 * meaning of their columns, and a conclusion.
 */
#include "simulate_figures.h"

#include "sessions_report.h"
#include "simulate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------- heading --- */

/* "500000, 1000000" */
static void
print_capacities(FILE *out, const struct simulate_options *o)
{
	uint32_t n = o->n_capacities == 0 ? 1 : o->n_capacities, i;

	for (i = 0; i < n; i++) {
		fputs(i > 0 ? ", " : "", out);
		if (simulate_capacity(o, i) == 0)
			fputs("endless", out);
		else
			fprintf(out, "%" PRIu64, simulate_capacity(o, i));
	}
}

/* The changes of workers in mid-run. */
static void
print_changes(FILE *out, const struct simulate_options *o)
{
	static const char *const what[] = {
		[SIMULATE_JOIN] = "joins",
		[SIMULATE_DRAIN] = "drains",
		[SIMULATE_KILL] = "dies",
		[SIMULATE_SLOW] = "is slow",
		[SIMULATE_SLOW_END] = "is as fast as before"
	};
	uint32_t i;

	for (i = 0; i < o->n_changes; i++) {
		const struct simulate_change *c = &o->changes[i];

		fprintf(out, "worker %" PRIu32 " %s at %g s", c->worker,
		    what[c->kind], (double)c->at / 1e9);
		if (c->kind == SIMULATE_SLOW)
			fprintf(out, ", %g times", c->factor);
		fputc('\n', out);
	}
}

static const char *const affinity_names[] = { "none", "hard", "hash" };

/* Options of engines under load that differ from the defaults. */
static void
print_load(FILE *out, const struct simulate_options *o)
{
	uint32_t i;

	for (i = 0; i < o->n_sequences; i++)
		fprintf(out, "%s%" PRIu32 "%s", i == 0 ?
		    "requests that run at a time on an engine: " : ", ",
		    o->sequences[i], i + 1 == o->n_sequences ? "\n" : "");
	if (o->batch > 0)
		fprintf(out, "steps of %" PRIu32 " tokens\n", o->batch);
	if (o->own_reads)
		fputs("each request reads its own context\n", out);
	if (o->attention > 0)
		fprintf(out, "prefill takes twice as long at %" PRIu64
		    " tokens\n", o->attention);
	if (o->preempt)
		fputs("outputs take memory as they grow\n", out);
	if (o->slo_first_ns > 0)
		fprintf(out, "goodput: first token in %g s, then %g ms a "
		    "token\n", (double)o->slo_first_ns / 1e9,
		    (double)o->slo_token_ns / 1e6);
}

/* The options of several routers. */
static void
print_exchange(FILE *out, const struct simulate_options *o)
{
	if (o->replicas == 1)
		return;
	fprintf(out, "%" PRIu32 " routers, sessions %s, that exchange: %s",
	    o->replicas, simulate_dealing_names[o->dealing],
	    simulate_exchange_names[o->exchange]);
	if (o->exchange_delay_ns > 0)
		fprintf(out, ", %g ms late (%s)",
		    (double)o->exchange_delay_ns / 1e6, o->degrade ?
		    "degrade" : "apply");
	if (o->exchange_loss > 0)
		fprintf(out, ", %g %% lost, %srepaired",
		    o->exchange_loss * 100, o->repair ? "" : "not ");
	fputc('\n', out);
}

static void
print_events(FILE *out, const struct simulate_options *o)
{
	if (o->event_delay_ns > 0)
		fprintf(out, "events, and what the oracle sees, are %g s "
		    "late\n", (double)o->event_delay_ns / 1e9);
	if (o->event_loss > 0)
		fprintf(out, "%g %% of the batches of events are lost, %s\n",
		    o->event_loss * 100, o->event_replay ? "and replayed" :
		    "not replayed");
	if (o->bypass > 0)
		fprintf(out, "%g %% of the requests bypass the routers\n",
		    o->bypass * 100);
}

/* Options that differ from the defaults. */
static void
print_unusual(FILE *out, const struct simulate_options *o)
{
	static const char *const evictions[] = {
		[ENGINE_EVICT_RANDOM] = "evicted at random",
		[ENGINE_EVICT_LEAF] = "evicted from the leaves"
	};
	uint32_t i;

	if (o->eviction != ENGINE_EVICT_RELEASED)
		fprintf(out, "%s%s\n", evictions[o->eviction], o->told ?
		    ", known to routers" : "");
	for (i = 0; i < o->n_speeds; i++)
		fprintf(out, "%s%g%s", i == 0 ? "engines of speed " : ", ",
		    o->speeds[i], i + 1 == o->n_speeds ? "\n" : "");
	if (o->reset_ns > 0)
		fprintf(out, "each engine loses its cache every %g s\n",
		    (double)o->reset_ns / 1e9);
	if (o->reports_text != NULL)
		fprintf(out, "engines report %s\n", o->reports_text);
	if (o->silent == 1)
		fputs("no engine reports anything\n", out);
	if (o->silent > 1)
		fprintf(out, "of %" PRIu32 " engines, one reports nothing\n",
		    o->silent);
	print_load(out, o);
	print_changes(out, o);
	print_events(out, o);
	print_exchange(out, o);
}

/* The mode of all policies; a policy with its own has it in its name. */
static void
print_affinity(FILE *out, const struct simulate_row *row)
{
	uint32_t affinity = simulate_options(row->simulation)->affinity;

	if (affinity != 0 && strchr(row->name, '@') == NULL)
		fprintf(out, "requests name their sessions, affinity is %s\n",
		    affinity_names[affinity]);
}

static void
simulate_print_heading(FILE *out, const struct simulate_about *about,
    const struct simulate_row *row)
{
	const struct simulate_options *o = simulate_options(row->simulation);

	fprintf(out, "%s: %" PRIu64 " requests in %.0f s", about->trace,
	    about->requests, (double)about->span_ns / 1e9);
	if (about->speed < 1 || about->speed > 1)
		fprintf(out, ", %g times as fast as recorded", about->speed);
	fprintf(out, "\n%" PRIu32 " engine%s, caches of ", o->workers,
	    o->workers == 1 ? "" : "s");
	print_capacities(out, o);
	fprintf(out, " tokens in blocks of %" PRIu32 "\n", o->engine_block);
	print_unusual(out, o);
	print_affinity(out, row);
}

/* -------------------------------------------------------------- tables --- */

/* Columns of one title stand beside each other. */
struct column {
	enum figure figure;
	const char *title;
	const char *name;
	int width;
	int decimals;
	double factor;
	const char *meaning; /* NULL: the heading suffices */
};
enum { COLUMNS = 9 };

static const struct column first_tokens[COLUMNS] = {
	{ HIT_RATIO, "hits", "%", 6, 2, 100,
	    "hits: prompt tokens that the engine had in its cache" },
	{ MEAN, "s to first token", "mean", 7, 3, 1, NULL },
	{ P50, "s to first token", "p50", 7, 3, 1, NULL },
	{ P90, "s to first token", "p90", 7, 3, 1, NULL },
	{ P99, "s to first token", "p99", 7, 3, 1, NULL },
	{ TOKEN_MS, "ms per", "token", 7, 2, 1, NULL },
	{ ERROR_BLOCKS, "blocks wrong", "all", 7, 3, 1,
	    "blocks wrong: of 512 tokens, per request" },
	{ OVER_BLOCKS, "blocks wrong", "over", 7, 3, 1,
	    "over: expected in the cache, and not there" },
	{ UNDER_BLOCKS, "blocks wrong", "under", 7, 3, 1,
	    "under: there, and not expected" }
};
static const struct column served[COLUMNS] = {
	{ REQUEST_MEAN, "s to the end", "mean", 7, 2, 1, NULL },
	{ REQUEST_P90, "s to the end", "p90", 7, 2, 1, NULL },
	{ REQUEST_P99, "s to the end", "p99", 7, 2, 1, NULL },
	{ GOODPUT, "goodput", "%", 9, 2, 100,
	    "goodput: requests that were as fast as --slo demands" },
	{ WORST_SHARE, "busiest", "x mean", 9, 3, 1,
	    "busiest: the load of one engine, relative to that of all" },
	{ TTFT_REGRET, "mean, x the best", "first", 9, 3, 1,
	    "first: the mean time to first token, relative to the best "
	    "policy's" },
	{ REQUEST_REGRET, "mean, x the best", "end", 9, 3, 1,
	    "end: that of the time to the end" }
};

/* Errors are left out where no policy has any, and goodput without a goal. */
static bool
is_shown(const struct column *c, const struct simulate_row *rows, figure_row *f,
    size_t n)
{
	size_t i;

	if (c->title == NULL)
		return false;
	if (c->figure == GOODPUT)
		return simulate_options(rows[0].simulation)->slo_first_ns > 0;
	if (c->figure < ERROR_BLOCKS || c->figure > UNDER_BLOCKS)
		return true;
	for (i = 0; i < n; i++)
		if (f[i][c->figure] > 0)
			return true;
	return false;
}

/* Titles, each over its columns, and the names of the columns. */
static void
print_head(FILE *out, const struct column *c, size_t columns)
{
	size_t i;
	int width = 0;

	fprintf(out, "\n%-18s", "");
	for (i = 0; i < columns; i++) {
		width += c[i].width;
		if (i + 1 < columns && strcmp(c[i].title, c[i + 1].title) == 0)
			continue;
		fprintf(out, "%*s", width, c[i].title);
		width = 0;
	}
	fprintf(out, "\n%-18s", "policy");
	for (i = 0; i < columns; i++)
		fprintf(out, "%*s", c[i].width, c[i].name);
	fputc('\n', out);
}

static void
print_table(FILE *out, const struct column *all,
    const struct simulate_row *rows, figure_row *f, size_t n)
{
	struct column c[COLUMNS];
	size_t columns = 0, i, k;

	for (k = 0; k < COLUMNS; k++)
		if (is_shown(&all[k], rows, f, n))
			c[columns++] = all[k];
	print_head(out, c, columns);
	for (i = 0; i < n; i++) {
		fprintf(out, "%-18s", rows[i].name);
		for (k = 0; k < columns; k++)
			fprintf(out, " %*.*f", c[k].width - 1, c[k].decimals,
			    f[i][c[k].figure] * c[k].factor);
		fputc('\n', out);
	}
	fputc('\n', out);
	for (k = 0; k < columns; k++)
		if (c[k].meaning != NULL)
			fprintf(out, "%s\n", c[k].meaning);
}

/* ------------------------------------------------------------ warnings --- */

/* Conditions that distort the figures. */
static void
simulate_print_warnings(FILE *out, const char *name, const double *f)
{
	if (f[REFUSED] > 0)
		fprintf(out, "%s: %.0f requests exceeded an engine's memory "
		    "and are not counted\n", name, f[REFUSED]);
	if (f[EMPTY] > 0)
		fprintf(out, "%s: %.0f requests without tokens were not "
		    "routed\n", name, f[EMPTY]);
	if (f[PREEMPTED] > 0)
		fprintf(out, "%s: requests were preempted %.0f times\n", name,
		    f[PREEMPTED]);
	if (f[RETRIED] > 0)
		fprintf(out, "%s: %.0f requests were routed again as their "
		    "worker died\n", name, f[RETRIED]);
	if (f[LOST] > 0)
		fprintf(out, "%s: %.0f of them exceeded the next one's memory "
		    "and were lost\n", name, f[LOST]);
	if (f[EVICTED_REGION] > 0 || f[TRUNCATED] > 0)
		fprintf(out, "%s: the index was full; try a larger --memory\n",
		    name);
}

/* ---------------------------------------------------------- conclusion --- */

/* Breaks lines at blanks. */
static void
print_wrapped(FILE *out, const char *text)
{
	size_t column = 0, length;

	for (; *text != '\0'; text += length) {
		length = 1 + strcspn(text + 1, " ");
		if (column + length > 79) {
			fputc('\n', out);
			column = 0;
			text++;
			length--;
		}
		fprintf(out, "%.*s", (int)length, text);
		column += length;
	}
	fputc('\n', out);
}

/* The rows with the least and the largest mean; false: they are equal. */
static bool
find_extremes(figure_row *f, size_t n, enum figure mean, size_t *least,
    size_t *most)
{
	size_t i;

	*least = *most = n;
	for (i = 0; i < n; i++) {
		if (f[i][mean] <= 0)
			continue; /* it served no request */
		if (*least == n || f[i][mean] < f[*least][mean])
			*least = i;
		if (*most == n || f[i][mean] > f[*most][mean])
			*most = i;
	}
	return *least < n && f[*most][mean] > f[*least][mean];
}

/* The conclusion of the tables, in two sentences. */
static void
print_conclusion(FILE *out, const struct simulate_row *rows, figure_row *f,
    size_t n)
{
	size_t a, b;

	if (find_extremes(f, n, MEAN, &a, &b))
		fprintf(out, "The first token came soonest with %s, after "
		    "%.3f s on average, and latest with %s, after %.3f s: "
		    "%.1f %% and %.1f %% of the prompt tokens were in a "
		    "cache.", rows[a].name, f[a][MEAN], rows[b].name,
		    f[b][MEAN], f[a][HIT_RATIO] * 100, f[b][HIT_RATIO] * 100);
	else
		fputs("No policy had the first token sooner than another.",
		    out);
	if (find_extremes(f, n, REQUEST_MEAN, &a, &b))
		fprintf(out, " Whole requests took %.2f s with %s, and %.0f %% "
		    "more with %s: %.2f s.", f[a][REQUEST_MEAN], rows[a].name,
		    100 * (f[b][REQUEST_MEAN] / f[a][REQUEST_MEAN] - 1),
		    rows[b].name, f[b][REQUEST_MEAN]);
	else
		fputs(" Whole requests took the same time with all.", out);
}

/* Nothing follows from one policy alone. */
static int
conclude_table(FILE *out, const struct simulate_row *rows, figure_row *f,
    size_t n)
{
	char *text = NULL;
	size_t size = 0;
	FILE *to;

	if (n < 2)
		return KVR_OK;
	to = open_memstream(&text, &size);
	if (to == NULL)
		return KVR_ENOMEM;
	print_conclusion(to, rows, f, n);
	if (fclose(to) != 0) {
		free(text);
		return KVR_ENOMEM;
	}
	fputc('\n', out);
	print_wrapped(out, text);
	free(text);
	return KVR_OK;
}

int
simulate_table(FILE *out, const struct simulate_about *about,
    const struct simulate_row *rows, size_t n)
{
	size_t i;
	int e;
	figure_row *f = simulate_figures(rows, n, &e);

	if (f == NULL)
		return e;
	simulate_print_heading(out, about, &rows[0]);
	print_table(out, first_tokens, rows, f, n);
	print_table(out, served, rows, f, n);
	sessions_table(out, rows, n);
	for (i = 0; i < n; i++)
		simulate_print_warnings(out, rows[i].name, f[i]);
	e = conclude_table(out, rows, f, n);
	free(f);
	return e;
}
