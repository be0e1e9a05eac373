/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page_overlap.c - predicted and actual overlap.
 *
 * Overlaps range from 0 to the longest prompt, and most are short, so the axes
 * are logarithmic, with a separate cell for 0:
 *
 *   hit |        .:#     on the diagonal: as predicted
 *       |      .:#.      above: more was cached
 *       |    .:#.        below: less was cached
 *     0 |#  ..  ..  .    lowest row: nothing was cached
 *       +--------------
 *        0       predicted
 */
#include "page.h"

#include "simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	CELLS = 24, /* of the logarithmic axis */
	SIDE = 1 + CELLS,
	HEIGHT = 250,
	GAP = 5 /* between 0 and the rest */
};

/* One policy's requests. */
struct pairs {
	uint64_t counts[SIDE][SIDE]; /* [hit][predicted] */
	uint64_t requests;
	uint64_t exact;
	uint64_t over;  /* tokens predicted and not hit */
	uint64_t under; /* tokens hit and not predicted */
};

/* Smallest and largest overlap above 0 over all policies. */
static int
overlap_reach(const struct page *p, double *from, double *to)
{
	const struct simulate_ride *rides;
	size_t row, n, i, k;

	*from = INFINITY;
	*to = 0;
	for (row = 0; row < p->n; row++) {
		rides = simulate_rides(p->rows[row].simulation, &n);
		if (rides == NULL)
			return KVR_ENOMEM;
		for (i = 0; i < n; i++) {
			uint64_t both[] = { rides[i].predicted, rides[i].hit };

			for (k = 0; k < 2; k++) {
				if (both[k] == 0)
					continue;
				*from = fmin(*from, (double)both[k]);
				*to = fmax(*to, (double)both[k]);
			}
		}
	}
	*to = fmax(*to * 1.001, *from * 10);
	return KVR_OK;
}

static size_t
cell_of(const struct svg_axis *x, uint64_t tokens)
{
	struct svg_axis in_cells = *x;
	double at;

	if (tokens == 0)
		return 0;
	in_cells.begin = 0;
	in_cells.end = CELLS;
	at = svg_place(&in_cells, (double)tokens);
	return 1 + (at < CELLS ? (size_t)at : CELLS - 1);
}

static int
overlap_count(const struct page *p, size_t row, const struct svg_axis *x,
    struct pairs *c)
{
	const struct simulate_ride *rides;
	size_t n, i;

	memset(c, 0, sizeof(*c));
	rides = simulate_rides(p->rows[row].simulation, &n);
	if (rides == NULL)
		return KVR_ENOMEM;
	for (i = 0; i < n; i++) {
		uint64_t a = rides[i].predicted, b = rides[i].hit;

		if (rides[i].first < 0)
			continue;
		c->counts[cell_of(x, b)][cell_of(x, a)]++;
		c->requests++;
		c->exact += a == b;
		c->over += a > b ? a - b : 0;
		c->under += b > a ? b - a : 0;
	}
	return KVR_OK;
}

/* ------------------------------------------------------------- drawing --- */

/* Levels 2, 4, 6, 8 stand for 1, up to 10, up to 100, more requests. */
static uint8_t
level_of(uint64_t requests)
{
	double level = requests == 0 ? 0 :
	    2 * ceil(log10((double)requests) - 1e-9) + 2;

	return (uint8_t)fmin(level, SVG_LEVELS);
}

static void
draw_part(struct page *p, const struct pairs *c, const struct svg_axis *x,
    const struct svg_axis *y, bool hit, bool predicted)
{
	uint8_t levels[CELLS * CELLS];
	size_t rows = hit ? CELLS : 1, columns = predicted ? CELLS : 1, i, k;
	double width = (x->end - x->begin) / CELLS;
	double height = (y->begin - y->end) / CELLS;

	for (i = 0; i < rows; i++)
		for (k = 0; k < columns; k++)
			levels[i * columns + k] = level_of(
			    c->counts[hit ? rows - i : 0][predicted + k]);
	svg_cells(p->f, predicted ? x->begin : x->begin - GAP - width,
	    hit ? y->end : y->begin + GAP, width * (double)columns,
	    height * (double)rows, levels, rows, columns);
}

/* The cells for 0, and their label. */
static void
draw_zero(struct page *p, const struct svg_axis *x, const struct svg_axis *y)
{
	double width = (x->end - x->begin) / CELLS;
	double height = (y->begin - y->end) / CELLS;

	svg_rect(p->f, "zero", x->begin - GAP - width, y->end, width,
	    y->begin - y->end + GAP + height);
	svg_rect(p->f, "zero", x->begin - GAP - width, y->begin + GAP,
	    x->end - x->begin + GAP + width, height);
	svg_text(p->f, "end", x->begin - GAP - width - 4,
	    y->begin + GAP + height / 2 + 4, "0");
}

static void
draw_ticks(struct page *p, const struct svg_axis *x, const struct svg_axis *y)
{
	double height = (y->begin - y->end) / CELLS;
	double width = (x->end - x->begin) / CELLS;
	double ticks[SVG_TICKS], below = y->begin + GAP + height;
	size_t n = svg_ticks(x, 6, ticks), i;

	for (i = 0; i < n; i++) {
		double left = svg_place(x, ticks[i]);
		double up = svg_place(y, ticks[i]);

		svg_line(p->f, "grid", left, below, left, y->end);
		svg_line(p->f, "grid", x->begin - GAP - width, up, x->end, up);
		svg_text(p->f, "middle", left, below + 13, "%s",
		    number_short(ticks[i]).text);
		svg_text(p->f, "end", x->begin - GAP - width - 4, up + 4,
		    "%s", number_short(ticks[i]).text);
	}
	svg_text(p->f, "middle", (x->begin + x->end) / 2, below + 29,
	    "predicted, tokens");
	svg_text(p->f, "start", 0, PAGE_TOP + 1, "hit, tokens");
}

static void
print_caption(struct page *p, size_t row, const struct pairs *c)
{
	double n = c->requests > 0 ? (double)c->requests : 1;

	fputs("<figcaption><b>", p->f);
	markup_text(p->f, p->rows[row].name);
	fprintf(p->f, "</b> Exact for %.4g" MARKUP_BLANK "%% of requests. "
	    "On average, %s tokens too many and %s too few were predicted."
	    "</figcaption>\n", 100 * (double)c->exact / n,
	    number_full((double)c->over / n, 0).text,
	    number_full((double)c->under / n, 0).text);
}

static int
draw_pairs(struct page *p, size_t row, const struct svg_axis *x,
    const struct svg_axis *y)
{
	struct pairs c;
	int e = overlap_count(p, row, x, &c);

	if (e != KVR_OK)
		return e;
	fputs("<figure>\n", p->f);
	print_caption(p, row, &c);
	page_chart(p, HEIGHT + 52, "Predicted and actual overlap");
	markup_printf(p->f, "%s: requests by predicted and hit tokens, which "
	    "are equal on the diagonal.", p->rows[row].name);
	svg_described(p->f);
	draw_zero(p, x, y);
	draw_ticks(p, x, y);
	draw_part(p, &c, x, y, true, true);
	draw_part(p, &c, x, y, true, false);
	draw_part(p, &c, x, y, false, true);
	draw_part(p, &c, x, y, false, false);
	svg_line(p->f, "axis", x->begin, y->begin, x->end, y->end);
	page_chart_end(p);
	fputs("</figure>\n", p->f);
	return KVR_OK;
}

static void
overlap_print_scale(struct page *p)
{
	static const char *const upto[] = { "1", "10", "100", "more" };
	size_t i;

	fputs("<p class=\"scale\">Requests per cell, up to:", p->f);
	for (i = 0; i < 4; i++)
		fprintf(p->f, " <span><svg viewBox=\"0 0 14 14\" "
		    "aria-hidden=\"true\"><rect class=\"l%zu\" width=\"14\" "
		    "height=\"14\"/></svg> %s</span>", 2 * i + 2, upto[i]);
	fputs("</p>\n", p->f);
}

/* A policy without an index predicts nothing. */
static bool
predicts(const struct page *p, size_t row)
{
	return simulate_totals(p->rows[row].simulation)->predicted_tokens > 0;
}

int
page_overlap(struct page *p)
{
	struct svg_axis x = { 0, 0, PAGE_LEFT + 18, PAGE_RIGHT, true,
	    number_short };
	struct svg_axis y = { 0, 0, PAGE_TOP + 10 + HEIGHT - 20,
	    PAGE_TOP + 10, true, number_short };
	size_t row, last = p->n;
	int e = KVR_OK;

	for (row = 0; row < p->n; row++)
		last = predicts(p, row) ? row : last;
	if (last == p->n)
		return KVR_OK;
	e = overlap_reach(p, &x.from, &x.to);
	y.from = x.from;
	y.to = x.to;
	fputs("<section>\n<h2>Predicted and actual overlap</h2>\n<p>Requests "
	    "by the tokens predicted to be cached on the chosen worker and "
	    "the tokens hit. On the diagonal both are equal; below it, less "
	    "was cached than predicted.</p>\n", p->f);
	overlap_print_scale(p);
	fputs("<div class=\"grid\">\n", p->f);
	for (row = 0; e == KVR_OK && row < p->n; row++)
		if (predicts(p, row))
			e = draw_pairs(p, row, &x, &y);
	fputs("</div>\n</section>\n", p->f);
	return e;
}
