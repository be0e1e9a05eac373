/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * svg.h - primitives for charts.
 *
 *        begin of y axis   end
 *              |            v
 *   0,0 +------+-----------------------+
 *       |  20 -|        __.--          |   a drawing is SVG_WIDTH units wide,
 *       |  10 -|  __.--'               |   about as wide as a phone; wider
 *       |   0 -+-----------------+     |   screens show several side by side
 *       |      0    10    20   time    |
 *       +------------------------------+
 *
 * Colours, fonts and line widths come from the page's style, by the classes
 * that svg.c lists. Each drawing has a title and a description for screen
 * readers.
 */
#ifndef KVROUTE_SVG_H
#define KVROUTE_SVG_H

#include "markup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SVG_WIDTH = 360, SVG_TICKS = 16, SVG_LEVELS = 8 };

/* Maps values from `from` to `to` to coordinates from `begin` to `end`. */
struct svg_axis {
	double from, to;
	double begin, end;
	bool log;
	struct number (*label)(double value);
};
/* Values outside are clamped. */
double svg_place(const struct svg_axis *a, double value);
/* Round values on the axis, ascending; 2 <= most <= SVG_TICKS. */
size_t svg_ticks(const struct svg_axis *a, size_t most, double *ticks);
/* The least of ..., 1, 2, 5, 10, 20, ... that is not below a value above 0. */
double svg_round_up(double value);

/* Followed by the description as text, then svg_described. */
void svg_begin(FILE *f, unsigned id, double height, const char *title);
void svg_described(FILE *f);
void svg_end(FILE *f);

/* `where` is the class, which decides the anchor of the text at x. */
void svg_text(FILE *f, const char *where, double x, double y,
    const char *format, ...) __attribute__((format(printf, 5, 6)));
void svg_rect(FILE *f, const char *class, double x, double y, double width,
    double height);
void svg_line(FILE *f, const char *class, double x1, double y1, double x2,
    double y2);

/* Grid lines with their labels; the x axis has its name below. */
void svg_axis_x(FILE *f, const struct svg_axis *x, const struct svg_axis *y,
    const char *name);
void svg_axis_y(FILE *f, const struct svg_axis *x, const struct svg_axis *y);
/* A line through n points. */
void svg_curve(FILE *f, const char *class, const struct svg_axis *x,
    const struct svg_axis *y, const double *xs, const double *ys, size_t n);
/*
 * A table of cells [row][column], the first row at the top, with levels of
 * darkness from 0 (nothing) to SVG_LEVELS.
 */
void svg_cells(FILE *f, double x, double y, double width, double height,
    const uint8_t *levels, size_t rows, size_t columns);

#endif
