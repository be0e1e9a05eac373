/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page.h - internals of the page of page_document.h:
 *
 *   page_document.c   the document: summary and tables
 *   page_about.c      the parameters of the simulation
 *   page_figures.c    all numbers, by the names of --format kv
 *   page_bars.c       hits and times to first token
 *   page_time.c       worker load and index size over time
 *   page_overlap.c    predicted and actual overlap
 *   page_style.c      style and script
 *
 * Elements of row i have the classes pI (the policy), cJ (colour) and dK
 * (dashes); J and K are below 8, and their pairs differ for 64 policies.
 */
#ifndef KVROUTE_PAGE_H
#define KVROUTE_PAGE_H

#include "simulate_report.h"
#include "svg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Edges of the plot area; labels are outside. */
enum { PAGE_LEFT = 44, PAGE_RIGHT = SVG_WIDTH - 16, PAGE_TOP = 10 };

struct figures;

struct page {
	FILE *f;
	const struct simulate_about *about;
	const struct simulate_row *rows;
	size_t n;
	struct figures *figures;
	int64_t end;  /* of the longest simulation, in simulated nanoseconds */
	unsigned ids; /* of charts, used so far */
};

/* ------------------------------------------------------------- figures --- */

enum figure_group {
	FIGURE_RESULT, FIGURE_PREDICTION, FIGURE_INDEX, FIGURE_RUN
};

/* Parses the output of simulate_kv. NULL: see *error. */
struct figures *figures_new(const struct simulate_row *rows, size_t n,
    int *error);
void figures_free(struct figures *x);
size_t figures_count(const struct figures *x);
/* Figure k: its name in --format kv, its heading, its unit (or ""). */
const char *figures_name(const struct figures *x, size_t k);
const char *figures_heading(const struct figures *x, size_t k);
const char *figures_unit(const struct figures *x, size_t k);
enum figure_group figures_group(const struct figures *x, size_t k);
/* Is figure k the same in all rows? */
bool figures_constant(const struct figures *x, size_t k);
/* A counter or an error that is 0 or missing in all rows: not worth a line. */
bool figures_blank(const struct figures *x, size_t k);
/* Figure k of a row, formatted. */
struct number figures_text(const struct figures *x, size_t row, size_t k);
/* A figure by its name in --format kv; NAN if there is none. */
double figures_value(const struct figures *x, size_t row, const char *name);

/* ---------------------------------------------------------- the charts --- */

/* The class attribute "KIND pI cJ dK" of an element of this row. */
struct page_class {
	char text[48];
};
struct page_class page_class(const char *kind, size_t row);
/* Begins a chart; its description follows, then svg_described. */
void page_chart(struct page *p, double height, const char *title);
void page_chart_end(struct page *p);
/* Does the policy of this row see the engines' caches? */
bool page_is_oracle(const struct page *p, size_t row);
/* A legend of the policies that are drawn. */
void page_keys(struct page *p,
    bool (*drawn)(const struct page *p, size_t row));

/* Is this figure shown once at the top instead of in a table? */
bool page_is_common(const struct page *p, size_t k);
void page_about(const struct page *p);

/* Return an enum kvr_error. A section without data is omitted. */
int page_bars(struct page *p);
int page_load(struct page *p);
int page_index(struct page *p);
int page_overlap(struct page *p);

extern const char page_style[];
extern const char page_script[];

#endif
