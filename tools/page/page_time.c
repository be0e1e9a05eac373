/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_time.c - worker load and index size over time.
 *
 * Samples are averaged in bins of equal time, the same for all policies, so
 * that charts are comparable and small:
 *
 *   samples  . . . | . . . | . . . |       of thousands
 *   bins       4.3     5.0     7.7         their means; 96 at most
 *
 * Load has one row per worker (or group of workers) and one cell per bin,
 * darker for more requests, on one scale for all charts.
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

/* Turns sums into means; a bin without samples repeats the previous one. */
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

/* Requests per worker. */
struct load {
	size_t rows;
	uint32_t each;          /* workers per row */
	double (*cells)[BINS];  /* [policies * rows], mean per worker */
	double most;            /* over all cells */
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

/* Requests per level: a round number. */
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

/* The number of levels; the last one is always the darkest. */
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

/* Mean requests per worker, and those of the busiest row. */
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
load_row_height(const struct load *l)
{
	return l->rows <= 8 ? 15 : l->rows <= 16 ? 9 : 6;
}

/* Worker numbers, as many as fit. */
static void
draw_names(struct page *p, const struct load *l, const struct svg_axis *y)
{
	size_t step = 1, i;

	while (load_row_height(l) * (double)step < 13)
		step *= 2;
	for (i = 0; i < l->rows; i += step)
		svg_text(p->f, "end", PAGE_LEFT - 5, y->end +
		    load_row_height(l) * ((double)i + 0.5) + 4, "%zu",
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
	struct svg_axis y = { 0, 1, PAGE_TOP + load_row_height(l) *
	    (double)l->rows, PAGE_TOP, false, number_short };
	const char *name;
	struct svg_axis x = time_axis(p, &name);
	double mean, busiest;
	int e;

	weigh(l, row, &mean, &busiest);
	fputs("<figure>\n<figcaption><b>", p->f);
	markup_text(p->f, p->rows[row].name);
	fprintf(p->f, "</b> On average %.2f requests per worker, %.2f %s."
	    "</figcaption>\n", mean, busiest, l->each == 1 ?
	    "at the busiest" : "in the busiest row");
	page_chart(p, y.begin + 34, "Worker load over time");
	markup_printf(p->f, "%s: one row per %s, darker for more requests.",
	    p->rows[row].name, l->each == 1 ? "worker" : "group of workers");
	svg_described(p->f);
	svg_axis_x(p->f, &x, &y, name);
	e = draw_cells(p, row, l, &x, &y);
	draw_names(p, l, &y);
	page_chart_end(p);
	fputs("</figure>\n", p->f);
	return e;
}

/* A legend of the levels. */
static void
load_print_scale(struct page *p, const struct load *l)
{
	unsigned i, levels = (unsigned)levels_used(l);

	fputs("<p class=\"scale\">Requests per worker, up to:", p->f);
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
	fputs("<section>\n<h2>Worker load</h2>\n<p>", p->f);
	if (l.each == 1)
		fputs("One row per worker: its", p->f);
	else
		fprintf(p->f, "One row per %u workers: their mean", l.each);
	fputs(" requests, running and waiting. Similar rows mean balanced "
	    "load.</p>\n", p->f);
	load_print_scale(p, &l);
	fputs("<div class=\"grid\">\n", p->f);
	for (row = 0; e == KVR_OK && row < p->n; row++)
		e = draw_load(p, row, &l);
	fputs("</div>\n</section>\n", p->f);
	free(l.cells);
	return e;
}

/* ---------------------------------------------------------- index size --- */

typedef double (*time_measure)(const struct simulate_sample *s);

static double
time_blocks(const struct simulate_sample *s)
{
	return (double)s->index_blocks;
}

static double
time_kilobytes(const struct simulate_sample *s)
{
	return (double)s->index_bytes / 1024;
}

/* An oracle's index holds only running requests, so it does not count. */
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

/* Fills means[BINS] and returns the greatest. */
static double
fill_means(const struct page *p, size_t row, time_measure m, double *means)
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
draw_size(struct page *p, time_measure m, const char *title, const char *what,
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
	markup_printf(p->f, "One line per policy with an index; maximum %s.",
	    number_short(most).text);
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
		blocks = fmax(blocks, fill_means(p, row, time_blocks, means));
		kilobytes = fmax(kilobytes, fill_means(p, row, time_kilobytes,
		    means));
	}
	if (!(blocks > 0))
		return KVR_OK;
	fputs("<section>\n<h2>Index size</h2>\n<div class=\"grid\">\n",
	    p->f);
	draw_size(p, time_blocks, "Blocks recorded.", "Predicted cache "
	    "contents; a block counts once per worker.", blocks);
	draw_size(p, time_kilobytes, "Memory in use, in KiB.", "Of the region "
	    "that holds the index.", kilobytes);
	fputs("</div>\n", p->f);
	page_keys(p, has_index);
	fputs("</section>\n", p->f);
	return KVR_OK;
}
