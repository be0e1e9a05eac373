/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * svg.c - see svg.h. Classes to be styled by the page:
 *
 *   grid    lines across the drawing          axis    the line at its edge
 *   start, middle, end                        text, by its anchor at x
 *   l1 ... l8                                 cells, by level
 */
#include "svg.h"

#include <math.h>
#include <stdarg.h>

enum { TEXT_BYTES = 256, LABEL_WIDTH = 46 };

/* ---------------------------------------------------------------- axes --- */

double
svg_place(const struct svg_axis *a, double value)
{
	double share;

	if (!(a->to > a->from))
		return a->begin;
	if (a->log)
		share = value <= a->from ? 0 : log(value / a->from) /
		    log(a->to / a->from);
	else
		share = (value - a->from) / (a->to - a->from);
	share = share > 1 ? 1 : share > 0 ? share : 0;
	return a->begin + share * (a->end - a->begin);
}

double
svg_round_up(double value)
{
	static const double steps[] = { 1, 2, 5, 10 };
	double power;
	size_t i = 0;

	if (!(value > 0))
		return 1;
	power = pow(10, floor(log10(value)));
	while (i < 3 && steps[i] * power < value * (1 - 1e-9))
		i++;
	return steps[i] * power;
}

static size_t
linear_ticks(const struct svg_axis *a, size_t most, double *ticks)
{
	double step = svg_round_up((a->to - a->from) / ((double)most - 1));
	double first = ceil(a->from / step - 1e-9), slack = step * 1e-6;
	size_t n = 0;

	while (n < most && (first + (double)n) * step <= a->to + slack) {
		ticks[n] = (first + (double)n) * step;
		n++;
	}
	return n;
}

/* Powers of ten; with 2 and 5 between if they are few, not all if many. */
static size_t
log_ticks(const struct svg_axis *a, size_t most, double *ticks)
{
	static const double between[] = { 1, 2, 5 };
	double decades = log10(a->to / a->from);
	size_t each = decades * 3 <= (double)most ? 3 : 1, n = 0, i;
	int skip = (int)floor(decades / ((double)most - 1)) + 1;
	int power = (int)floor(log10(a->from) + 1e-9);
	double tick;

	for (;; power += skip)
		for (i = 0; i < each; i++) {
			tick = between[i] * pow(10, power);
			if (tick > a->to * (1 + 1e-9) || n == most)
				return n;
			if (tick >= a->from * (1 - 1e-9))
				ticks[n++] = tick;
		}
}

size_t
svg_ticks(const struct svg_axis *a, size_t most, double *ticks)
{
	if (!(a->to > a->from) || most < 2 || most > SVG_TICKS)
		return 0;
	if (a->log)
		return a->from > 0 ? log_ticks(a, most, ticks) : 0;
	return linear_ticks(a, most, ticks);
}

/* --------------------------------------------------------------- parts --- */

void
svg_begin(FILE *f, unsigned id, double height, const char *title)
{
	fprintf(f, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" "
	    "aria-labelledby=\"t%u d%u\">\n<title id=\"t%u\">", SVG_WIDTH,
	    height, id, id, id);
	markup_text(f, title);
	fprintf(f, "</title>\n<desc id=\"d%u\">", id);
}

void
svg_described(FILE *f)
{
	fputs("</desc>\n", f);
}

void
svg_end(FILE *f)
{
	fputs("</svg>\n", f);
}

void
svg_text(FILE *f, const char *where, double x, double y, const char *format,
    ...)
{
	char text[TEXT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(f, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", where, x, y);
	markup_text(f, text);
	fputs("</text>\n", f);
}

void
svg_rect(FILE *f, const char *class, double x, double y, double width,
    double height)
{
	fprintf(f, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
	    "height=\"%.1f\"/>\n", class, x, y, width, height);
}

void
svg_line(FILE *f, const char *class, double x1, double y1, double x2,
    double y2)
{
	fprintf(f, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" "
	    "y2=\"%.1f\"/>\n", class, x1, y1, x2, y2);
}

/* If 1 and 2 are close on a logarithmic axis, only powers of ten do. */
static bool
has_label(const struct svg_axis *a, double tick)
{
	double power = log10(tick);

	return !a->log || fabs(power - round(power)) < 1e-9 ||
	    fabs(a->end - a->begin) * log10(2) / log10(a->to / a->from) >=
	    LABEL_WIDTH;
}

void
svg_axis_x(FILE *f, const struct svg_axis *x, const struct svg_axis *y,
    const char *name)
{
	double ticks[SVG_TICKS], at;
	size_t n = svg_ticks(x, x->log ? SVG_TICKS : 8, ticks), i;

	for (i = 0; i < n; i++) {
		at = svg_place(x, ticks[i]);
		svg_line(f, "grid", at, y->begin, at, y->end);
		if (has_label(x, ticks[i]))
			svg_text(f, "middle", at, y->begin + 14, "%s",
			    x->label(ticks[i]).text);
	}
	svg_line(f, "axis", x->begin, y->begin, x->end, y->begin);
	svg_text(f, "middle", (x->begin + x->end) / 2, y->begin + 30, "%s",
	    name);
}

void
svg_axis_y(FILE *f, const struct svg_axis *x, const struct svg_axis *y)
{
	double ticks[SVG_TICKS], at;
	size_t n = svg_ticks(y, 6, ticks), i;

	for (i = 0; i < n; i++) {
		at = svg_place(y, ticks[i]);
		svg_line(f, "grid", x->begin, at, x->end, at);
		svg_text(f, "end", x->begin - 5, at + 4, "%s",
		    y->label(ticks[i]).text);
	}
}

void
svg_curve(FILE *f, const char *class, const struct svg_axis *x,
    const struct svg_axis *y, const double *xs, const double *ys, size_t n)
{
	size_t i;

	if (n == 0)
		return;
	fprintf(f, "<path class=\"%s\" d=\"", class);
	for (i = 0; i < n; i++)
		fprintf(f, "%c%.1f %.1f", i == 0 ? 'M' : 'L',
		    svg_place(x, xs[i]), svg_place(y, ys[i]));
	fputs("\"/>\n", f);
}

/* --------------------------------------------------------------- cells --- */

static bool
has_level(const uint8_t *levels, size_t n, unsigned level)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (levels[i] == level)
			return true;
	return false;
}

/* Adjacent cells of one level in a row become one rectangle. */
static void
print_level(FILE *f, const uint8_t *levels, size_t rows, size_t columns,
    unsigned level)
{
	size_t row, from, to;

	for (row = 0; row < rows; row++, levels += columns)
		for (from = 0; from < columns; from = to) {
			to = from + 1;
			if (levels[from] != level)
				continue;
			while (to < columns && levels[to] == level)
				to++;
			fprintf(f, "M%zu %zuh%zuv1h-%zuz", from, row,
			    to - from, to - from);
		}
}

void
svg_cells(FILE *f, double x, double y, double width, double height,
    const uint8_t *levels, size_t rows, size_t columns)
{
	unsigned level;

	if (rows == 0 || columns == 0)
		return;
	fprintf(f, "<g class=\"cells\" transform=\"translate(%.1f %.1f) "
	    "scale(%.5f %.5f)\">\n", x, y, width / (double)columns,
	    height / (double)rows);
	for (level = 1; level <= SVG_LEVELS; level++) {
		if (!has_level(levels, rows * columns, level))
			continue;
		fprintf(f, "<path class=\"l%u\" d=\"", level);
		print_level(f, levels, rows, columns, level);
		fputs("\"/>\n", f);
	}
	fputs("</g>\n", f);
}
