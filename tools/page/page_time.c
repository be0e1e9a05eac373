/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_time.c - load of workers and size of indexes, over time.
 *
 * Samples are put into bins of equal time, the same ones for all policies, so
 * that drawings side by side can be compared and none becomes large:
 *
 *   samples  . . . | . . . | . . . |       of thousands
 *   bins       4.3     5.0     7.7         their means; 96 at most
 *
 * Load: a row for each worker (for several where there are many), a cell for
 * each bin, as dark as the requests there were, by one scale for all.
 */
#include "page.h"

#include "simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BINS = 96, ROWS_MAX = 32 };

/* ---------------------------------------------------------------- time --- */

static struct svg_axis
time_axis(const struct page *p, const char **name)
{
	struct svg_axis x = { 0, (double)p->end / 1e9, PAGE_LEFT, PAGE_RIGHT,
	    false, number_short };

	*name = "seconds since the first arrival";
	if (x.to >= 3 * 3600) {
		x.to /= 3600;
		*name = "hours since the first arrival";
	} else if (x.to >= 180) {
		x.to /= 60;
		*name = "minutes since the first arrival";
	}
	return x;
}

static size_t
bin_of(const struct page *p, int64_t at)
{
	size_t bin = p->end <= 0 || at < 0 ? 0 :
	    (size_t)((double)at / (double)p->end * BINS);

	return bin < BINS ? bin : BINS - 1;
}

/* Sums become means; a bin without samples is as the one before. */
static void
make_means(double *sums, const size_t *counts)
{
	size_t i;

	for (i = 0; i < BINS; i++)
		if (counts[i] > 0)
			sums[i] /= (double)counts[i];
		else
			sums[i] = i > 0 ? sums[i - 1] : 0;
}

/* ---------------------------------------------------------------- load --- */

/* Requests at workers. */
struct load {
	size_t rows;            /* one worker each, or several */
	uint32_t each;          /* workers of a row */
	double (*cells)[BINS];  /* [policies * rows], a worker's mean */
	double most;            /* of all cells */
};

static void
sum_sample(const struct load *l, const struct simulate_sample *s,
    uint32_t workers, double (*cells)[BINS], size_t bin)
{
	uint32_t w, in_row;

	for (w = 0; w < workers; w++) {
		in_row = workers - w / l->each * l->each;
		in_row = in_row < l->each ? in_row : l->each;
		cells[w / l->each][bin] += ((double)s->running[w] +
		    (double)s->waiting[w]) / in_row;
	}
}

/* One policy. */
static void
fill_load(const struct page *p, size_t row, struct load *l)
{
	const struct simulation *s = p->rows[row].simulation;
	uint32_t workers = simulate_options(s)->workers;
	double (*cells)[BINS] = l->cells + row * l->rows;
	const struct simulate_sample *samples;
	size_t counts[BINS] = { 0 }, n, i, k;

	samples = simulate_samples(s, &n);
	for (i = 0; i < n; i++) {
		k = bin_of(p, samples[i].at);
		counts[k]++;
		sum_sample(l, &samples[i], workers, cells, k);
	}
	for (i = 0; i < l->rows; i++) {
		make_means(cells[i], counts);
		for (k = 0; k < BINS; k++)
			l->most = fmax(l->most, cells[i][k]);
	}
}

static struct load
make_load(const struct page *p)
{
	struct load l = { 0, 1, NULL, 0 };
	uint32_t workers = 0, w;
	size_t row;

	for (row = 0; row < p->n; row++) {
		w = simulate_options(p->rows[row].simulation)->workers;
		workers = w > workers ? w : workers;
	}
	l.each = (workers + ROWS_MAX - 1) / ROWS_MAX;
	l.rows = (workers + l.each - 1) / l.each;
	l.cells = calloc(p->n * l.rows, sizeof(*l.cells));
	for (row = 0; l.cells != NULL && row < p->n; row++)
		fill_load(p, row, &l);
	return l;
}

/* Requests from one level to the next: a round number. */
static double
level_step(const struct load *l)
{
	static const double round[] = { 1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10 };
	double least = l->most / SVG_LEVELS, power;
	size_t i = 0;

	if (!(least > 0))
		return 1;
	power = pow(10, floor(log10(least)));
	while (i < 9 && round[i] * power < least * (1 - 1e-9))
		i++;
	return round[i] * power;
}

/* How many levels there are; the last of them is always as dark as can be. */
static double
levels_used(const struct load *l)
{
	return fmax(1, ceil(l->most / level_step(l) - 1e-9));
}

static uint8_t
darkness(const struct load *l, double level)
{
	return (uint8_t)fmin(ceil(level * SVG_LEVELS / levels_used(l) - 1e-9),
	    SVG_LEVELS);
}

/* How many requests the busiest worker had, and how many the mean one. */
static void
weigh(const struct load *l, size_t row, double *mean, double *busiest)
{
	double sum, all = 0;
	size_t i, k;

	*busiest = 0;
	for (i = 0; i < l->rows; i++) {
		sum = 0;
		for (k = 0; k < BINS; k++)
			sum += l->cells[row * l->rows + i][k];
		all += sum / BINS;
		*busiest = fmax(*busiest, sum / BINS);
	}
	*mean = all / (double)l->rows;
}

static double
row_height(const struct load *l)
{
	return l->rows <= 8 ? 15 : l->rows <= 16 ? 9 : 6;
}

/* Each worker's name where there is room for it, else some of them. */
static void
draw_names(struct page *p, const struct load *l, const struct svg_axis *y)
{
	size_t step = 1, i;

	while (row_height(l) * (double)step < 13)
		step *= 2;
	for (i = 0; i < l->rows; i += step)
		svg_text(p->f, "end", PAGE_LEFT - 5, y->end +
		    row_height(l) * ((double)i + 0.5) + 4, "%zu",
		    i * l->each + 1);
}

static int
draw_cells(struct page *p, size_t row, const struct load *l,
    const struct svg_axis *x, const struct svg_axis *y)
{
	uint8_t *levels = calloc(l->rows, BINS);
	double step = level_step(l), level;
	size_t i;

	if (levels == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < l->rows * BINS; i++) {
		level = ceil(l->cells[row * l->rows + i / BINS][i % BINS] /
		    step - 1e-9);
		levels[i] = darkness(l, level);
	}
	svg_cells(p->f, x->begin, y->end, x->end - x->begin,
	    y->begin - y->end, levels, l->rows, BINS);
	free(levels);
	return KVR_OK;
}

static int
draw_load(struct page *p, size_t row, const struct load *l)
{
	struct svg_axis y = { 0, 1, PAGE_TOP + row_height(l) *
	    (double)l->rows, PAGE_TOP, false, number_short };
	const char *name;
	struct svg_axis x = time_axis(p, &name);
	double mean, busiest;
	int e;

	weigh(l, row, &mean, &busiest);
	fputs("<figure>\n<figcaption><b>", p->f);
	markup_text(p->f, p->rows[row].name);
	fprintf(p->f, "</b> On average %.2f requests at a worker, %.2f %s."
	    "</figcaption>\n", mean, busiest, l->each == 1 ?
	    "at the busiest" : "in the busiest row");
	page_chart(p, y.begin + 34, "Load of each worker over time");
	markup_printf(p->f, "%s: a row for each %s, darker where it had more "
	    "requests.", p->rows[row].name, l->each == 1 ? "worker" :
	    "group of workers");
	svg_described(p->f);
	svg_axis_x(p->f, &x, &y, name);
	e = draw_cells(p, row, l, &x, &y);
	draw_names(p, l, &y);
	page_chart_end(p);
	fputs("</figure>\n", p->f);
	return e;
}

/* What the levels stand for. */
static void
print_scale(struct page *p, const struct load *l)
{
	unsigned i, levels = (unsigned)levels_used(l);

	fputs("<p class=\"scale\">Requests at a worker, up to:", p->f);
	for (i = 1; i <= levels; i++)
		fprintf(p->f, " <span><svg viewBox=\"0 0 14 14\" "
		    "aria-hidden=\"true\"><rect class=\"l%u\" width=\"14\" "
		    "height=\"14\"/></svg> %s</span>", darkness(l, i),
		    number_short(level_step(l) * i).text);
	fputs("</p>\n", p->f);
}

static bool
have_samples(const struct page *p)
{
	size_t row, n;

	for (row = 0; row < p->n; row++) {
		(void)simulate_samples(p->rows[row].simulation, &n);
		if (n > 0)
			return true;
	}
	return false;
}

int
page_load(struct page *p)
{
	struct load l;
	size_t row;
	int e = KVR_OK;

	if (!have_samples(p))
		return KVR_OK;
	l = make_load(p);
	if (l.cells == NULL)
		return KVR_ENOMEM;
	fputs("<section>\n<h2>Load of the workers</h2>\n<p>", p->f);
	if (l.each == 1)
		fputs("A row for each worker: its", p->f);
	else
		fprintf(p->f, "A row for every %u workers: their mean", l.each);
	fputs(" requests, running and waiting. Rows that look alike share the "
	    "work.</p>\n", p->f);
	print_scale(p, &l);
	fputs("<div class=\"grid\">\n", p->f);
	for (row = 0; e == KVR_OK && row < p->n; row++)
		e = draw_load(p, row, &l);
	fputs("</div>\n</section>\n", p->f);
	free(l.cells);
	return e;
}

/* ----------------------------------------------------- size of indexes --- */

typedef double (*measure)(const struct simulate_sample *s);

static double
blocks_of(const struct simulate_sample *s)
{
	return (double)s->index_blocks;
}

static double
kilobytes_of(const struct simulate_sample *s)
{
	return (double)s->index_bytes / 1024;
}

/* An oracle's holds what is running, to count it, and nothing else. */
static bool
has_index(const struct page *p, size_t row)
{
	const struct simulate_sample *samples;
	size_t n, i;

	samples = simulate_samples(p->rows[row].simulation, &n);
	for (i = 0; i < n; i++)
		if (samples[i].index_blocks > 0)
			return !page_is_oracle(p, row);
	return false;
}

/* The greatest mean of the bins; means [BINS]. */
static double
fill_means(const struct page *p, size_t row, measure m, double *means)
{
	const struct simulate_sample *samples;
	size_t counts[BINS] = { 0 }, n, i;
	double most = 0;

	memset(means, 0, BINS * sizeof(*means));
	samples = simulate_samples(p->rows[row].simulation, &n);
	for (i = 0; i < n; i++) {
		size_t bin = bin_of(p, samples[i].at);

		counts[bin]++;
		means[bin] += m(&samples[i]);
	}
	make_means(means, counts);
	for (i = 0; i < BINS; i++)
		most = fmax(most, means[i]);
	return most;
}

static void
draw_size(struct page *p, measure m, const char *title, const char *what,
    double most)
{
	const char *name;
	struct svg_axis x = time_axis(p, &name);
	struct svg_axis y = { 0, most, 200, PAGE_TOP, false, number_short };
	double at[BINS], means[BINS];
	size_t row, i;

	for (i = 0; i < BINS; i++)
		at[i] = x.to * ((double)i + 0.5) / BINS;
	fputs("<figure>\n<figcaption><b>", p->f);
	markup_text(p->f, title);
	fprintf(p->f, "</b> %s</figcaption>\n", what);
	page_chart(p, 234, title);
	markup_printf(p->f, "A line for each policy that has an index; at "
	    "most %s.", number_short(most).text);
	svg_described(p->f);
	svg_axis_y(p->f, &x, &y);
	svg_axis_x(p->f, &x, &y, name);
	for (row = 0; row < p->n; row++)
		if (has_index(p, row) && fill_means(p, row, m, means) > 0)
			svg_curve(p->f, page_class("curve", row).text, &x, &y,
			    at, means, BINS);
	page_chart_end(p);
	fputs("</figure>\n", p->f);
}

int
page_index(struct page *p)
{
	double means[BINS], blocks = 0, kilobytes = 0;
	size_t row;

	for (row = 0; row < p->n; row++) {
		if (!has_index(p, row))
			continue;
		blocks = fmax(blocks, fill_means(p, row, blocks_of, means));
		kilobytes = fmax(kilobytes, fill_means(p, row, kilobytes_of,
		    means));
	}
	if (!(blocks > 0))
		return KVR_OK;
	fputs("<section>\n<h2>Size of the index</h2>\n<div class=\"grid\">\n",
	    p->f);
	draw_size(p, blocks_of, "Blocks remembered.", "What workers are "
	    "believed to hold, counted for each worker that holds it.",
	    blocks);
	draw_size(p, kilobytes_of, "Memory in use, in KiB.", "Of the index's "
	    "region, in which all of it lies.", kilobytes);
	fputs("</div>\n", p->f);
	page_keys(p, has_index);
	fputs("</section>\n", p->f);
	return KVR_OK;
}
