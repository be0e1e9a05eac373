/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_bars.c - hits and times to first token, by policy.
 *
 * A policy's name is above its bars, because names are long and phones are
 * narrow.
 */
#include "page.h"

#include "simulate.h"

#include <math.h>
#include <string.h>

enum {
	NAME_HEIGHT = 17, /* a name above its bars */
	BAR_HEIGHT = 14,
	ROW_GAP = 7,
	NUMBER_WIDTH = 62, /* after the longest bar */
	STEPS = 150        /* of a curve */
};

static const struct bar {
	const char *name; /* of the figure */
	const char *label;
	const char *class;
} times[] = {
	{ "ttft_p50", "p50", "bar light" },
	{ "ttft_p90", "p90", "bar" },
	{ "ttft_p99", "p99", "bar light" }
}, hits[] = { { "hit_ratio", "", "bar" } };
enum { TIMES = sizeof(times) / sizeof(times[0]), HITS = 1 };

static double
greatest(const struct page *p, const struct bar *bars, size_t n)
{
	double most = 0;
	size_t row, i;

	for (row = 0; row < p->n; row++)
		for (i = 0; i < n; i++)
			most = fmax(most, figures_value(p->figures, row,
			    bars[i].name));
	return most;
}

static double
bars_row_height(size_t bars)
{
	return NAME_HEIGHT + BAR_HEIGHT * (double)bars + ROW_GAP;
}

static void
draw_bar(struct page *p, size_t row, const struct bar *b,
    const struct svg_axis *x, double y, struct number (*label)(double))
{
	double value = figures_value(p->figures, row, b->name);
	double end = svg_place(x, value);

	if (isnan(value))
		return;
	if (b->label[0] != '\0')
		svg_text(p->f, "start", 0, y + 10.5, "%s", b->label);
	svg_rect(p->f, page_class(b->class, row).text, x->begin, y + 1,
	    end - x->begin, BAR_HEIGHT - 3);
	svg_text(p->f, "start number", end + 5, y + 10.5, "%s",
	    label(value).text);
}

static void
draw_rows(struct page *p, const struct bar *bars, size_t n,
    struct number (*label)(double))
{
	struct svg_axis x = { 0, greatest(p, bars, n),
	    bars[0].label[0] == '\0' ? 0 : 28, SVG_WIDTH - NUMBER_WIDTH, false,
	    label };
	size_t row, i;
	double y;

	for (row = 0; row < p->n; row++) {
		y = bars_row_height(n) * (double)row;
		svg_text(p->f, page_class("start name", row).text, 0, y + 12,
		    "%s", p->rows[row].name);
		for (i = 0; i < n; i++)
			draw_bar(p, row, &bars[i], &x,
			    y + NAME_HEIGHT + BAR_HEIGHT * (double)i, label);
	}
}

static struct number
seconds_label(double seconds)
{
	struct number n;

	(void)snprintf(n.text, sizeof(n.text), "%.3f" MARKUP_BLANK "s",
	    seconds);
	return n;
}

static struct number
ratio_label(double ratio)
{
	struct number n;

	(void)snprintf(n.text, sizeof(n.text), "%.2f" MARKUP_BLANK "%%",
	    ratio * 100);
	return n;
}

static void
describe(struct page *p, const struct bar *b, struct number (*label)(double))
{
	size_t row;

	for (row = 0; row < p->n; row++)
		markup_printf(p->f, "%s%s %s", row == 0 ? "" : ", ",
		    p->rows[row].name,
		    label(figures_value(p->figures, row, b->name)).text);
}

static void
draw_hits(struct page *p)
{
	page_chart(p, bars_row_height(HITS) * (double)p->n, "Cache hits");
	describe(p, &hits[0], ratio_label);
	svg_described(p->f);
	draw_rows(p, hits, HITS, ratio_label);
	page_chart_end(p);
}

static void
draw_times(struct page *p)
{
	page_chart(p, bars_row_height(TIMES) * (double)p->n,
	    "Time to first token");
	fputs("90th percentile: ", p->f);
	describe(p, &times[1], seconds_label);
	svg_described(p->f);
	draw_rows(p, times, TIMES, seconds_label);
	page_chart_end(p);
}

/* -------------------------------------------------------------- curves --- */

/* Shortest and longest time over all policies, in s; INFINITY: none. */
static int
bars_reach(const struct page *p, double *from, double *to)
{
	const int64_t *sorted;
	size_t row, n;

	*from = INFINITY;
	*to = 0;
	for (row = 0; row < p->n; row++) {
		n = simulate_totals(p->rows[row].simulation)->finished;
		if (n == 0)
			continue;
		sorted = simulate_first_tokens(p->rows[row].simulation);
		if (sorted == NULL)
			return KVR_ENOMEM;
		*from = fmin(*from, (double)sorted[0] / 1e9);
		*to = fmax(*to, (double)sorted[n - 1] / 1e9);
	}
	*from = fmax(*from, 1e-4);
	*to = fmax(*to, *from * 10);
	return KVR_OK;
}

static bool
has_times(const struct page *p, size_t row)
{
	return simulate_totals(p->rows[row].simulation)->finished > 0;
}

/* Percent of requests that took at most x, or longer than x. */
static int
draw_curve(struct page *p, size_t row, bool longer, const struct svg_axis *x,
    const struct svg_axis *y)
{
	struct simulation *s = p->rows[row].simulation;
	const int64_t *sorted = simulate_first_tokens(s);
	size_t n = simulate_totals(s)->finished, done = 0, i;
	double xs[STEPS + 1], ys[STEPS + 1];

	if (sorted == NULL)
		return KVR_ENOMEM;
	for (i = 0; i <= STEPS && (i == 0 || ys[i - 1] > 0.1 || !longer);
	    i++) {
		xs[i] = x->from * pow(x->to / x->from, (double)i / STEPS);
		while (done < n && (double)sorted[done] / 1e9 <=
		    xs[i] * (1 + 1e-9))
			done++;
		ys[i] = 100 * (double)(longer ? n - done : done) / (double)n;
	}
	svg_curve(p->f, page_class("curve", row).text, x, y, xs, ys, i);
	return KVR_OK;
}

static int
draw_curves(struct page *p, bool longer, const char *title, const char *what)
{
	struct svg_axis x = { 0, 0, PAGE_LEFT, PAGE_RIGHT, true,
	    number_seconds };
	struct svg_axis y = { longer ? 0.1 : 0, 100, 250, PAGE_TOP, longer,
	    number_percent };
	size_t row;
	int e = bars_reach(p, &x.from, &x.to);

	if (e != KVR_OK || isinf(x.from))
		return e;
	fprintf(p->f, "<figure>\n<figcaption><b>%s.</b> %s</figcaption>\n",
	    title, what);
	page_chart(p, 284, title);
	fputs("One curve per policy over a logarithmic time axis; the table "
	    "lists percentiles.", p->f);
	svg_described(p->f);
	svg_axis_y(p->f, &x, &y);
	svg_axis_x(p->f, &x, &y, "time to first token");
	for (row = 0; e == KVR_OK && row < p->n; row++)
		if (has_times(p, row))
			e = draw_curve(p, row, longer, &x, &y);
	page_chart_end(p);
	page_keys(p, has_times);
	fputs("</figure>\n", p->f);
	return e;
}

int
page_bars(struct page *p)
{
	int e;

	fputs("<section>\n<h2>Hits and latency</h2>\n<div class=\"grid\">\n"
	    "<figure>\n<figcaption><b>Cache hits.</b> Share of prompt tokens "
	    "that the worker did not have to compute. Higher is better."
	    "</figcaption>\n", p->f);
	draw_hits(p);
	fputs("</figure>\n<figure>\n<figcaption><b>Time to first token."
	    "</b> 50th, 90th and 99th percentile. Lower is better."
	    "</figcaption>\n", p->f);
	draw_times(p);
	fputs("</figure>\n<div class=\"stack\">\n", p->f);
	e = draw_curves(p, false, "Distribution", "Share of requests that had "
	    "their first token within this time. Further left is better.");
	if (e == KVR_OK)
		e = draw_curves(p, true, "Tail", "Share of requests still "
		    "waiting, on a logarithmic scale. Lower is better.");
	fputs("</div>\n</div>\n</section>\n", p->f);
	return e;
}
