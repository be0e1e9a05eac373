/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * page.h - the inside of the page of page_document.h, for the files that share
 * it:
 *
 *   page_document.c   the document: the sentence at its top, the tables
 *   page_about.c      what was simulated
 *   page_figures.c    every number, by the names of --format kv
 *   page_bars.c       hits and times to the first token
 *   page_time.c       load of workers and size of indexes, over time
 *   page_overlap.c    what was predicted against what was hit
 *   page_style.c      how it looks
 *
 * The policy of row i has the classes pI (all that is its own), and ci, dI
 * with I % 8 (colour and dashes; together different for 64 policies).
 */
#ifndef KVROUTE_PAGE_H
#define KVROUTE_PAGE_H

#include "simulate_report.h"
#include "svg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The edges of what is drawn into: room for labels around it. */
enum { PAGE_LEFT = 44, PAGE_RIGHT = SVG_WIDTH - 16, PAGE_TOP = 10 };

struct figures;

struct page {
	FILE *f;
	const struct simulate_about *about;
	const struct simulate_row *rows;
	size_t n;
	struct figures *figures;
	int64_t end;  /* of the last simulation, in simulated nanoseconds */
	unsigned ids; /* given to drawings so far */
};

/* ------------------------------------------------------------- figures --- */

enum figure_group {
	FIGURE_RESULT, FIGURE_PREDICTION, FIGURE_INDEX, FIGURE_RUN
};

/* What simulate_kv writes of these rows; NULL: no memory, or *error. */
struct figures *figures_new(const struct simulate_row *rows, size_t n,
    int *error);
void figures_free(struct figures *x);
size_t figures_count(const struct figures *x);
/* Of figure k: its name in --format kv, its heading, its unit (or ""). */
const char *figures_name(const struct figures *x, size_t k);
const char *figures_heading(const struct figures *x, size_t k);
const char *figures_unit(const struct figures *x, size_t k);
enum figure_group figures_group(const struct figures *x, size_t k);
/* Is it the same in all rows? */
bool figures_constant(const struct figures *x, size_t k);
/* Figure k of a row as text, for people. */
struct number figures_text(const struct figures *x, size_t row, size_t k);
/* By its name in --format kv; NAN if there is none. */
double figures_value(const struct figures *x, size_t row, const char *name);

/* ---------------------------------------------------------- the charts --- */

/* "KIND pI cI dI", for the class of something of this row. */
struct page_class {
	char text[48];
};
struct page_class page_class(const char *kind, size_t row);
/* A chart's beginning up to its description, and its end. */
void page_chart(struct page *p, double height, const char *title);
void page_chart_end(struct page *p);
/* Does the router of this row see into the engines' caches? */
bool page_is_oracle(const struct page *p, size_t row);
/* Which line is which policy, of those that are drawn. */
void page_keys(struct page *p,
    bool (*drawn)(const struct page *p, size_t row));

/* Is this figure said once, above everything, instead of in a table? */
bool page_is_common(const struct page *p, size_t k);
void page_about(const struct page *p);

/* Each gives an enum kvr_error and writes nothing where nothing was found. */
int page_bars(struct page *p);
int page_load(struct page *p);
int page_index(struct page *p);
int page_overlap(struct page *p);

extern const char page_style[];
extern const char page_script[];

#endif
