/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * svg.h - the parts that charts are made of.
 *
 *        begin of y axis   end
 *              |            v
 *   0,0 +------+-----------------------+
 *       |  20 -|        __.--          |   a drawing is SVG_WIDTH units wide,
 *       |  10 -|  __.--'               |   about what a phone has; wider
 *       |   0 -+-----------------+     |   screens put several side by side
 *       |      0    10    20   time    |
 *       +------------------------------+
 *
 * Colours, fonts and widths of lines are left to the page's style: what is
 * drawn has classes, which svg.c lists. Everything drawn has a title and a
 * description for those who do not see it.
 */
#ifndef KVROUTE_SVG_H
#define KVROUTE_SVG_H

#include "markup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SVG_WIDTH = 360, SVG_TICKS = 16, SVG_LEVELS = 8 };

/* Values from `from` to `to` lie between begin and end of the drawing. */
struct svg_axis {
	double from, to;
	double begin, end;
	bool log;
	struct number (*label)(double value);
};
/* What lies outside is moved to the edge. */
double svg_place(const struct svg_axis *a, double value);
/* Round values on the axis, ascending; 2 <= most <= SVG_TICKS. */
size_t svg_ticks(const struct svg_axis *a, size_t most, double *ticks);
/* The least of 1, 2, 5, 10, 20, ... that is not below the value, above 0. */
double svg_round_up(double value);

/* The description follows as text, then svg_described. */
void svg_begin(FILE *f, unsigned id, double height, const char *title);
void svg_described(FILE *f);
void svg_end(FILE *f);

/* `where` is the class and decides which end of the text is at x. */
void svg_text(FILE *f, const char *where, double x, double y,
    const char *format, ...) __attribute__((format(printf, 5, 6)));
void svg_rect(FILE *f, const char *class, double x, double y, double width,
    double height);
void svg_line(FILE *f, const char *class, double x1, double y1, double x2,
    double y2);

/* Lines across the drawing with their values, and what they are below. */
void svg_axis_x(FILE *f, const struct svg_axis *x, const struct svg_axis *y,
    const char *name);
void svg_axis_y(FILE *f, const struct svg_axis *x, const struct svg_axis *y);
/* A line through n points. */
void svg_curve(FILE *f, const char *class, const struct svg_axis *x,
    const struct svg_axis *y, const double *xs, const double *ys, size_t n);
/*
 * A table of cells, each as dark as its level from 0 (nothing) to SVG_LEVELS;
 * [row][column], the first row at the top.
 */
void svg_cells(FILE *f, double x, double y, double width, double height,
    const uint8_t *levels, size_t rows, size_t columns);

#endif
