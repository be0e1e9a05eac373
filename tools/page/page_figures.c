/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_figures.c - the numbers of the page, parsed from --format kv.
 *
 * The names of that format do not change. An unknown name is shown as it is.
 * So the page has exactly the numbers of the other reports.
 */
#include "page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIGURES_MAX = 96 };

static const struct known {
	const char *name;
	const char *heading;
	const char *unit;
	double factor;
	int decimals;
	enum figure_group group;
} known[] = {
	{ "hit_ratio", "cache hits", "% of tokens", 100, 2, FIGURE_RESULT },
	{ "ttft_mean", "TTFT, mean", "s", 1, 3, FIGURE_RESULT },
	{ "ttft_p50", "TTFT, p50", "s", 1, 3, FIGURE_RESULT },
	{ "ttft_p90", "TTFT, p90", "s", 1, 3, FIGURE_RESULT },
	{ "ttft_p99", "TTFT, p99", "s", 1, 3, FIGURE_RESULT },
	{ "token_ms", "time per output token", "ms", 1, 2, FIGURE_RESULT },
	{ "request_mean", "whole request, mean", "s", 1, 2, FIGURE_RESULT },
	{ "request_p90", "whole request, p90", "s", 1, 2, FIGURE_RESULT },
	{ "request_p99", "whole request, p99", "s", 1, 2, FIGURE_RESULT },
	{ "goodput", "goodput", "% of requests", 100, 2, FIGURE_RESULT },
	{ "worst_share", "busiest worker", "x the mean", 1, 3,
	    FIGURE_RESULT },
	{ "ttft_regret", "TTFT, mean, against the best", "x", 1, 3,
	    FIGURE_RESULT },
	{ "request_regret", "whole request, mean, against the best", "x", 1,
	    3, FIGURE_RESULT },
	{ "makespan", "makespan", "s", 1, 1, FIGURE_RESULT },
	{ "predicted_ratio", "predicted hits", "% of tokens", 100, 2,
	    FIGURE_PREDICTION },
	{ "error_blocks", "prediction error, mean", "blocks per request", 1,
	    3, FIGURE_PREDICTION },
	{ "over_blocks", "overpredicted", "blocks per request", 1, 3,
	    FIGURE_PREDICTION },
	{ "under_blocks", "underpredicted", "blocks per request", 1, 3,
	    FIGURE_PREDICTION },
	{ "workers", "workers", "", 1, 0, FIGURE_RUN },
	{ "capacity_tokens", "capacity per worker", "tokens", 1, 0,
	    FIGURE_RUN },
	{ "engine_block", "engine block", "tokens", 1, 0, FIGURE_RUN },
	{ "replicas", "routers", "", 1, 0, FIGURE_RUN },
	{ "seed", "seed", "", 1, 0, FIGURE_RUN },
	{ "requests", "requests", "", 1, 0, FIGURE_RUN },
	{ "refused", "too large for a worker", "requests", 1, 0, FIGURE_RUN },
	{ "empty", "without tokens", "requests", 1, 0, FIGURE_RUN },
	{ "waited", "waited for memory or a slot", "requests", 1, 0,
	    FIGURE_RUN },
	{ "prompt_tokens", "prompts", "tokens", 1, 0, FIGURE_RUN },
	{ "steps", "engine steps", "", 1, 0, FIGURE_RUN },
	{ "resets", "cache resets", "", 1, 0, FIGURE_RUN },
	{ "preempted", "preempted", "times", 1, 0, FIGURE_RUN },
	{ "retried", "routed again", "requests", 1, 0, FIGURE_RUN },
	{ "lost", "lost", "requests", 1, 0, FIGURE_RUN },
	{ "utilisation", "utilisation", "%", 100, 1, FIGURE_RUN },
	{ "reports", "reports of cached tokens", "requests", 1, 0,
	    FIGURE_INDEX },
	{ "unreported", "without evidence", "requests", 1, 0, FIGURE_INDEX },
	{ "expired", "expired", "entries", 1, 0, FIGURE_INDEX },
	{ "evicted_capacity", "evicted, worker full", "entries", 1, 0,
	    FIGURE_INDEX },
	{ "evicted_region", "evicted, index full", "entries", 1, 0,
	    FIGURE_INDEX },
	{ "truncated", "truncated", "requests", 1, 0, FIGURE_INDEX },
	{ "messages", "told to other routers", "messages", 1, 0, FIGURE_RUN },
	{ "messages_lost", "lost between routers", "messages", 1, 0,
	    FIGURE_RUN },
	{ "messages_late", "late between routers", "messages", 1, 0,
	    FIGURE_RUN },
	{ "leases_repaired", "repaired after a loss", "requests", 1, 0,
	    FIGURE_RUN },
	{ "event_batches", "told by engines", "batches of events", 1, 0,
	    FIGURE_RUN },
	{ "event_batches_lost", "lost from engines", "batches of events", 1,
	    0, FIGURE_RUN },
	{ "event_gaps", "gaps noticed in events", "", 1, 0, FIGURE_RUN },
	{ "bypassed", "past the routers", "requests", 1, 0, FIGURE_RUN }
};

struct figures {
	char *text; /* output of simulate_kv, split into strings */
	size_t rows;
	size_t n;
	const char *name[FIGURES_MAX];
	const struct known *known[FIGURES_MAX]; /* or NULL */
	const char *(*value)[FIGURES_MAX];      /* [rows] */
};

/* ------------------------------------------------------------- reading --- */

static const struct known *
find_known(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].name, name) == 0)
			return &known[i];
	return NULL;
}

/* The index of a name, which is added if new; FIGURES_MAX: too many. */
static size_t
number_of(struct figures *x, const char *name)
{
	size_t k;

	for (k = 0; k < x->n; k++)
		if (strcmp(x->name[k], name) == 0)
			return k;
	if (k < FIGURES_MAX) {
		x->name[k] = name;
		x->known[k] = find_known(name);
		x->n++;
	}
	return k;
}

/*
 * Splits lines name=value; a row begins with its policy. Lines of each worker
 * that returned (return0_kind) are for programs.
 */
static void
cut(struct figures *x)
{
	char *rest = x->text, *line, *value;
	size_t row = 0, begun = 0, k;

	while ((line = strsep(&rest, "\n")) != NULL) {
		value = strchr(line, '=');
		if (value == NULL || strncmp(line, "return", 6) == 0)
			continue;
		*value++ = '\0';
		if (strcmp(line, "policy") == 0) {
			row = begun++;
			continue;
		}
		k = number_of(x, line);
		if (row < x->rows && k < FIGURES_MAX)
			x->value[row][k] = value;
	}
}

static int
write_kv(struct figures *x, const struct simulate_row *rows)
{
	size_t size = 0;
	FILE *f = open_memstream(&x->text, &size);
	int e;

	if (f == NULL)
		return KVR_ENOMEM;
	e = simulate_kv(f, rows, x->rows);
	if (fclose(f) != 0 && e == KVR_OK)
		e = KVR_ENOMEM;
	return e;
}

struct figures *
figures_new(const struct simulate_row *rows, size_t n, int *error)
{
	struct figures *x = calloc(1, sizeof(*x));

	*error = KVR_ENOMEM;
	if (x == NULL)
		return NULL;
	x->rows = n;
	x->value = calloc(n, sizeof(*x->value));
	*error = x->value == NULL ? KVR_ENOMEM : write_kv(x, rows);
	if (*error != KVR_OK) {
		figures_free(x);
		return NULL;
	}
	cut(x);
	return x;
}

void
figures_free(struct figures *x)
{
	if (x == NULL)
		return;
	free(x->text);
	free(x->value);
	free(x);
}

/* ------------------------------------------------------------- access --- */

size_t
figures_count(const struct figures *x)
{
	return x->n;
}

const char *
figures_name(const struct figures *x, size_t k)
{
	return x->name[k];
}

const char *
figures_heading(const struct figures *x, size_t k)
{
	return x->known[k] == NULL ? x->name[k] : x->known[k]->heading;
}

const char *
figures_unit(const struct figures *x, size_t k)
{
	return x->known[k] == NULL ? "" : x->known[k]->unit;
}

enum figure_group
figures_group(const struct figures *x, size_t k)
{
	return x->known[k] == NULL ? FIGURE_RUN : x->known[k]->group;
}

bool
figures_constant(const struct figures *x, size_t k)
{
	const char *first = x->value[0][k];
	size_t row;

	for (row = 1; row < x->rows; row++)
		if (first == NULL || x->value[row][k] == NULL ||
		    strcmp(first, x->value[row][k]) != 0)
			return false;
	return first != NULL;
}

/* NAN if the text is not a number. */
static double
number_in(const char *text)
{
	char *end;
	double d;

	if (text == NULL || *text == '\0')
		return NAN;
	d = strtod(text, &end);
	return *end == '\0' ? d : NAN;
}

/* Results and settings may be 0. */
bool
figures_blank(const struct figures *x, size_t k)
{
	size_t row;
	double d;

	if (figures_group(x, k) == FIGURE_RESULT ||
	    strcmp(x->name[k], "seed") == 0 ||
	    strcmp(x->name[k], "capacity_tokens") == 0)
		return false;
	for (row = 0; row < x->rows; row++) {
		d = number_in(x->value[row][k]);
		if (!isnan(d) && fabs(d) > 0)
			return false;
	}
	return true;
}

static int
decimals_of(const char *text)
{
	const char *point = strchr(text, '.');

	return point == NULL ? 0 : (int)strlen(point + 1);
}

struct number
figures_text(const struct figures *x, size_t row, size_t k)
{
	const struct known *of = x->known[k];
	const char *text = x->value[row][k];
	double d = number_in(text);
	struct number n;

	if (of != NULL && strcmp(of->name, "capacity_tokens") == 0 && d <= 0)
		text = "endless";
	else if (!isnan(d))
		return of == NULL ? number_full(d, decimals_of(text)) :
		    number_full(d * of->factor, of->decimals);
	(void)snprintf(n.text, sizeof(n.text), "%s", text == NULL ? "" : text);
	return n;
}

double
figures_value(const struct figures *x, size_t row, const char *name)
{
	size_t k;

	for (k = 0; k < x->n; k++)
		if (strcmp(x->name[k], name) == 0)
			return number_in(x->value[row][k]);
	return NAN;
}
